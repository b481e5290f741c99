// Names that lead to other pages: znodes, sessions, servers.

import { html, useEffect, useState } from '../lib/html.js';
import { useMe } from '../lib/api.js';
import { link } from '../lib/route.js';
import { Copy, Text } from '../lib/words.js';

/** More characters of one name are not drawn: a name may have a million. */
const SHOWN_MAX = 120;
/** Longer paths are no links, as browsers do not take them. */
const LINK_MAX = 8000;

/** A text without its middle if it is long. @param {string} text */
export const short = (text) => (text.length <= SHOWN_MAX ? text : `${text.slice(0, 80)}…${text.slice(-30)}`);

/** A text from outside, without its middle if it is long. @param {{of: string | null | undefined}} props */
export const Name = ({ of }) => (of ? html`<${Text} of=${short(of)} />` : html`–`);

/**
 * A znode's path, which opens it in the tree. The end of a path that the caller may not see is "/...".
 * @param {{of: string | null | undefined}} props
 */
export function Path({ of }) {
  if (!of) return html`–`;
  const shown = html`<code><${Name} of=${of} /></code>`;
  if (of.endsWith('/...')) return html`<span class="id" title="You may not read this znode, so only its parent is named.">${shown}</span>`;
  return html`<span class="id">${of.length > LINK_MAX ? shown : html`<a href=${link('tree', { path: of })}>${shown}</a>`}<${Copy} text=${of} what="this path" /></span>`;
}

/** A session's id, which opens its record. @param {{of: string | null | undefined}} props */
export const Session = ({ of }) =>
  of ? html`<span class="id"><a href=${link('sessions', { id: of })}><code>${of}</code></a><${Copy} text=${of} what="this session's id" /></span>` : html`–`;

/** @param {{of: string | null | undefined}} props an address, with a button to copy it */
export const Address = ({ of }) => (of ? html`<span class="id"><code><${Name} of=${of} /></code><${Copy} text=${of} what="this address" /></span>` : html`–`);

/** Paths as a list, at first 20 of them. @param {{of: string[]}} props */
export function Paths({ of }) {
  const [all, show] = useState(false);
  const shown = all ? of.slice(0, 1000) : of.slice(0, 20);
  return html`<ul class="paths">${shown.map((path) => html`<li key=${path}><${Path} of=${path} /></li>`)}</ul>
    ${of.length > shown.length && (all ? html`<p>and ${of.length - shown.length} more</p>` : html`<button type="button" onClick=${() => show(true)}>Show all ${of.length}</button>`)}`;
}

/** Whether the page may offer acts on the server. In read-only mode it has none. */
export function useIsOperator() {
  const me = useMe();
  return !!me?.operator && !me.read_only;
}

/** Whether the window is as narrow as a telephone's. */
export function useIsNarrow() {
  const [query] = useState(() => matchMedia('(max-width: 700px)'));
  const [isNarrow, set] = useState(query.matches);
  useEffect(() => {
    const listen = () => set(query.matches);
    query.addEventListener('change', listen);
    return () => query.removeEventListener('change', listen);
  }, [query]);
  return isNarrow;
}

/**
 * A part of a whole as a bar, with its numbers at its side.
 * @param {{part: number, whole: number, children: any, level?: string, label: string}} props `level`: `ok`, `warning`, `critical`
 */
export function Share({ part, whole, children, level = 'ok', label }) {
  const percent = whole > 0 ? Math.min(100, Math.max(0, (100 * part) / whole)) : 0;
  return html`<span class="share"><span class="share-bar" role="img" aria-label=${label}><i class=${level} style=${{ width: `${percent}%` }} /></span>
    <span class="share-words">${children}</span></span>`;
}

/** A value of the URL as one choice among several, as tabs. @param {{label: string, of: [string, any][], value: string, onPick: (value: string) => void}} props */
export const Choice = ({ label, of, value, onPick }) => html`<nav class="tabs" aria-label=${label}>${of.map(
  ([key, text]) => html`<button type="button" key=${key} aria-current=${key === value ? 'true' : undefined} onClick=${() => onPick(key)}>${text}</button>`,
)}</nav>`;

/**
 * A field of the toolbar that asks the server anew: it takes effect by Enter, or when it is left.
 * @param {{label: string, value: string, onSet: (value: string) => void, placeholder?: string, list?: string[]}} props
 */
export function Asked({ label, value, onSet, placeholder, list }) {
  if (list) {
    return html`<label class="asked"><span>${label}</span><select value=${value} onChange=${(/** @type {any} */ event) => onSet(event.target.value)}>
      <option value="">all</option>${list.map((one) => html`<option key=${one} value=${one}>${one.replaceAll('_', ' ')}</option>`)}</select></label>`;
  }
  return html`<label class="asked"><span>${label}</span><input type="search" value=${value} placeholder=${placeholder} spellcheck=${false}
    onChange=${(/** @type {any} */ event) => onSet(event.target.value.trim())} /></label>`;
}

/** The number of servers that are in the data, in words. @param {{id: number, state: string}[]} servers */
export function answeredBy(servers = []) {
  const ids = servers.filter((server) => server.state === 'answered').map((server) => server.id);
  return ids.length === 1 ? `server ${ids[0]}` : `servers ${ids.slice(0, -1).join(', ')} and ${ids[ids.length - 1]}`;
}
