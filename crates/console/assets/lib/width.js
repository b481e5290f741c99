// The width that a picture has on the page.

import { useEffect, useRef, useState } from './html.js';

/** The width of an element, in CSS pixels. @returns {[{current: HTMLElement | null}, number]} */
export function useWidth(first = 360) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, set] = useState(first);
  useEffect(() => {
    if (!box.current) return;
    const watcher = new ResizeObserver(([entry]) => set(Math.round(entry.contentRect.width) || first));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}
