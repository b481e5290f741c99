// An act on a server: the dialog says what happens, and afterwards what has happened.

import { html, useState } from '../lib/html.js';
import { post } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { ErrorBox, Note } from '../lib/states.js';

/**
 * The steps of an act within a dialog: what will happen, a button, and the result or the error.
 * @param {{path: string, body?: unknown, label: string, isDangerous?: boolean, said?: (answer: any) => string, onDone?: () => void,
 *   onClose: () => void, children: any}} props
 */
export function Act({ path, body = {}, label, isDangerous, said, onDone, onClose, children }) {
  const [state, set] = useState(/** @type {{is: 'asked' | 'busy' | 'done' | 'failed', answer?: any, error?: any}} */ ({ is: 'asked' }));
  const act = async () => {
    set({ is: 'busy' });
    try {
      const answer = await post(path, body);
      set({ is: 'done', answer });
      onDone?.();
    } catch (error) {
      set({ is: 'failed', error });
    }
  };
  if (state.is === 'done') {
    const sentence = said?.(state.answer) ?? state.answer.sentence ?? 'Done.';
    return html`<div role="status"><${Note} level=${state.answer.done === false ? 'warning' : 'ok'} sentence=${sentence} /></div>
      <footer class="row end"><button type="button" class="primary" autofocus onClick=${onClose}>Close</button></footer>`;
  }
  return html`${children}
    ${state.is === 'failed' && html`<${ErrorBox} error=${state.error} />`}
    <footer class="row end"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class=${isDangerous ? 'danger' : 'primary'} disabled=${state.is === 'busy'} onClick=${act}>${state.is === 'busy' ? `${label} …` : label}</button></footer>`;
}

/** An act in a dialog of its own. @param {Parameters<typeof Act>[0] & {title: any}} props */
export const ActDialog = ({ title, ...act }) => html`<${Dialog} title=${title} onClose=${act.onClose}><${Act} ...${act} /></>`;
