// Keys. Each part of a page registers its own; the newest wins.

import { useEffect } from './html.js';

/** @typedef {{help: string, keys: Record<string, (event: KeyboardEvent) => unknown>}} Layer */

/** @type {Layer[]} */
const layers = [];
let prefix = '';
let timer = 0;
let isListening = false;

/** All keys that work now, for the list that `?` opens. */
export const allKeys = () => layers.map(({ help, keys }) => ({ help, keys: Object.keys(keys) }));

/**
 * Keys while a component is on the screen: `useKeys('Step', { ArrowLeft: back, 'g e': elections })`. A function that returns false
 * leaves the key to others. Keys are not seen while somebody writes, nor with Ctrl, Alt or Meta, nor while a dialog is open.
 * @param {string} help for the list of keys
 * @param {Record<string, (event: KeyboardEvent) => unknown>} keys
 */
export function useKeys(help, keys) {
  useEffect(() => {
    if (!isListening) addEventListener('keydown', press);
    isListening = true;
    const layer = { help, keys };
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  });
}

/** @param {Element | null} element */
const isWriting = (element) => !!element?.closest('input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable]');

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  if (isWriting(document.activeElement) || document.querySelector('dialog[open]')) return;
  const key = prefix ? `${prefix} ${event.key}` : event.key;
  const isPrefix = !prefix && layers.some(({ keys }) => Object.keys(keys).some((one) => one.startsWith(`${event.key} `)));
  clearTimeout(timer);
  prefix = isPrefix ? event.key : '';
  if (isPrefix) timer = setTimeout(() => (prefix = ''), 1500);
  // Enter and space on a button or a link are theirs.
  if ((key === 'Enter' || key === ' ') && document.activeElement?.closest('button, a, summary')) return;
  for (const { keys } of [...layers].reverse()) {
    if (!keys[key] || keys[key](event) === false) continue;
    event.preventDefault();
    return;
  }
}

/** Puts the focus into the page's first search box. */
export function useSearchKey() {
  useKeys('Search', {
    '/': () => {
      const box = /** @type {HTMLInputElement | null} */ (document.querySelector('main [data-search]'));
      if (!box) return false;
      box.focus();
      box.select();
    },
  });
  useEffect(() => {
    const leave = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === 'Escape' && event.target instanceof HTMLElement && event.target.matches('[data-search]')) event.target.blur();
    };
    addEventListener('keydown', leave);
    return () => removeEventListener('keydown', leave);
  }, []);
}
