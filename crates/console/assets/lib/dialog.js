// A dialog that takes the focus and gives it back.

import { html, useEffect, useId, useRef } from './html.js';

/**
 * Open while it is drawn. Escape and the cross call `onClose`. The browser keeps the focus within it.
 * @param {{title: any, onClose: () => void, wide?: boolean, children: any}} props
 */
export function Dialog({ title, onClose, wide, children }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const dialog = box.current;
    dialog?.showModal();
    return () => {
      // While it is open, nothing outside of it takes the focus.
      dialog?.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${box} class=${wide ? 'wide' : ''} aria-labelledby=${id} onCancel=${cancel}>
    <header><h2 id=${id}>${title}</h2><button type="button" class="plain" aria-label="Close" onClick=${onClose}>✕</button></header>
    ${children}
  </dialog>`;
}
