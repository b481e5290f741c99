// Small parts that the panels of a znode share.

import { html, useState } from '../lib/html.js';

/** @param {any} props those of a button; `on`: what it does */
export const Button = ({ on, children, ...rest }) => html`<button type="button" onClick=${on} ...${rest}>${children}</button>`;

/** Handles the input of a field. @param {(value: any) => void} set */
export const typed = (set) => (/** @type {any} */ event) => set(event.target.value);

/** A file that somebody chooses, as bytes. @param {{of: (bytes: Uint8Array | null) => void, label: string}} props */
export function FileField({ of, label }) {
  const pick = async (/** @type {any} */ { target: { files } }) => of(files[0] ? new Uint8Array(await files[0].arrayBuffer()) : null);
  return html`<label class="row">${label} <input type="file" onChange=${pick} /></label>`;
}

/** Buttons of which one is pressed. @param {{label: string, names: [string, string][], is: string, set: (name: string) => void, children?: any}} props */
export const Choice = ({ label, names, is, set, children }) => html`<div class="row views" role="group" aria-label=${label}>${names.map(([name, title]) => html`<${Button} key=${name} aria-pressed=${name === is} on=${() => set(name)}>${title}</>`)}${children}</div>`;

/** Runs a change; its error stays on the screen until the next try. @returns {[any, boolean, (act: () => Promise<any>) => (event?: Event) => void]} */
export function useAct() {
  const [error, fail] = useState(/** @type {any} */ (null));
  const [isBusy, busy] = useState(false);
  const run = (/** @type {() => Promise<any>} */ act) => (/** @type {Event | undefined} */ event) => {
    event?.preventDefault();
    busy(true);
    fail(null);
    act().catch(fail).finally(() => busy(false));
  };
  return [error, isBusy, run];
}
