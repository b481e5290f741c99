// Parts that several pages share, with those of the library that they need.
/// <reference path="./types.d.ts" />

import { html, loadStyle, useEffect, useState } from '../lib/html.js';
import { post, useMe } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { link } from '../lib/route.js';
import { Empty, ErrorBox, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { Ago, Copy, Text, duration } from '../lib/words.js';

export { html, useEffect, useMemo, useRef, useState } from '../lib/html.js';
export { post, search, url, useMe } from '../lib/api.js';
export { Dialog } from '../lib/dialog.js';
export { serverNow, useGet, usePages } from '../lib/live.js';
export { ErrorBox, Loaded, Note } from '../lib/states.js';
export { Term } from '../lib/terms.js';
export { Ago, Copy, Id, Text, Time, Zxid, bytes, count, duration, plural } from '../lib/words.js';

loadStyle('./pages.css', import.meta.url);

/** More characters of one name are not drawn: a name may have a million. */
const SHOWN_MAX = 120;
/** Browsers do not take much longer addresses. */
const LINK_MAX = 8000;
/** More paths are not listed. */
const PATHS_MAX = 100;

/** An answer in its states, and the servers that are not in it. @param {Answer} answer @param {(data: any) => any} draw */
export const loaded = (answer, draw) => html`<${Loaded} of=${answer} rows=${8}>${(/** @type {any} */ data) => html`<div class="stack"><${Silent} servers=${data.servers} />${draw(data)}</div>`}</>`;

/** @param {string} title @param {any} [text] what would fill it */
export const empty = (title, text) => html`<${Empty} title=${title}>${text && html`<p>${text}</p>`}</>`;

/**
 * A table of an answer's `items`, or of `rows`. `fields` are those of the toolbar.
 * @param {string} caption
 * @param {Column[]} columns
 * @param {{name: string, of?: Answer, rows?: any[], key: (row: any) => string, sort?: string, json?: string, open?: (row: any) => void, fields?: any, empty: any, filter?: boolean}} how
 */
export const table = (caption, columns, { of, key, open, fields, ...how }) => html`<${Table} caption=${caption} columns=${columns} rows=${of?.data.items} ...${how} rowKey=${key} onOpen=${open} tools=${fields}
  more=${of?.more} truncated=${of?.data.truncated} />`;

/** A text from outside, without its middle if it is long. @param {{of: string | null | undefined}} props */
export const Name = ({ of }) => (of ? html`<${Text} of=${of.length > SHOWN_MAX ? `${of.slice(0, 80)}…${of.slice(-30)}` : of} />` : '–');

/** A name with a button to copy it. @param {string | null | undefined} of @param {string} what @param {string} [href] @param {string} [kind] */
function named(of, what, href, kind = '') {
  if (!of) return '–';
  const code = html`<code><${Name} of=${of} /></code>`;
  return html`<span class="id ${kind}">${href ? html`<a href=${href}>${code}</a>` : code}<${Copy} text=${of} what=${what} /></span>`;
}

/** A znode's path, which opens it in the tree. A path that ends with "/..." may not be seen as a whole. @param {string | null | undefined} of */
export const path = (of) => named(of, 'this path', of && !of.endsWith('/...') && of.length < LINK_MAX ? link('tree', { path: of }) : '', 'path');
/** A session's id, which opens its record. @param {string | null | undefined} of */
export const session = (of) => named(of, 'this session’s id', link('sessions', { id: of }));
/** @param {string | null | undefined} of */
export const address = (of) => named(of, 'this address');

/** @param {string[]} of @param {(path: string) => any} [draw] */
export const paths = (of, draw = path) => html`<ul class="paths">${of.slice(0, PATHS_MAX).map((one) => html`<li key=${one}>${draw(one)}</li>`)}${of.length > PATHS_MAX && html`<li>and ${of.length - PATHS_MAX} more</li>`}</ul>`;

/** Columns that are the same in all tables. @type {Record<'session' | 'address' | 'server' | 'path', Column>} */
export const COLUMN = {
  session: { key: 'session', label: 'Session', render: (row) => session(row.session ?? row.id) },
  address: { key: 'address', label: 'Client', render: (row) => address(row.address) },
  server: { key: 'server', label: 'Server', align: 'end' },
  path: { key: 'path', label: 'Path', render: (row) => path(row.path) },
};
/** A column of numbers. @param {string} key @param {string} label @param {(value: any) => any} [write] @param {string} [title] @returns {Column} */
export const number = (key, label, write, title) => ({ key, label, title, align: 'end', ...(write && { render: (row) => write(row[key]) }) });
/** A column of times. @param {string} key @param {string} label @returns {Column} */
export const when = (key, label) => ({ key, label, render: (row) => html`<${Ago} ms=${row[key]} />` });

/** Facts in two columns; those that are false are left out. @param {(false | null | [any, any])[]} of */
export const facts = (of) => html`<dl class="facts">${of.map((one) => one && html`<dt>${one[0]}</dt><dd>${one[1]}</dd>`)}</dl>`;

/** A part of a whole as a bar, with its numbers at its side. @param {number} part from 0 to 1 @param {any} words @param {string} [level] */
export const share = (part, words, level = '') => html`<span class="share"><span class="meter ${level}" aria-hidden="true"><i style=${{ width: `${Math.min(100, Math.max(0, 100 * part))}%` }} /></span><span>${words}</span></span>`;

/** One choice among several, as tabs. @param {string} label @param {[string, any][]} of @param {string} value @param {(value: string) => void} pick */
export const choice = (label, of, value, pick) => html`<nav class="tabs" aria-label=${label}>${of.map(
  ([key, text]) => html`<button type="button" key=${key} aria-current=${key === value ? 'true' : undefined} onClick=${() => pick(key)}>${text}</button>`,
)}</nav>`;

/** A field that asks the server anew when it is left, or by Enter. @param {string} label @param {string | undefined} value @param {(value: string) => void} set @param {string} [placeholder] */
export const asked = (label, value, set, placeholder) => html`<label class="asked">${label}<input type="search" value=${value ?? ''} placeholder=${placeholder} spellcheck=${false}
  onChange=${(/** @type {any} */ event) => set(event.target.value.trim())} /></label>`;

/** "server 1", "servers 1 and 2". @param {{id: number, state: string}[]} [servers] */
export function answeredBy(servers = []) {
  const ids = servers.filter((server) => server.state === 'answered').map((server) => server.id);
  return ids.length === 1 ? `server ${ids[0]}` : `servers ${ids.slice(0, -1).join(', ')} and ${ids.at(-1)}`;
}

/** Whether the page may offer acts on the server: in read-only mode it has none. */
export function useIsOperator() {
  const me = useMe();
  return !!me?.operator && !me.read_only;
}

/** Who ends a session: one that does not lead must ask the leader. */
export const EndedByLeader = () => !useMe()?.server.standalone && html`<p><small>Only the <${Term} of="leader" /> ends sessions. A server that does not lead asks it, and does nothing while there is no leader.</small></p>`;

/** Whether the window is as narrow as a telephone's. */
export function useIsNarrow() {
  const [query] = useState(() => matchMedia('(max-width: 700px)'));
  const [isNarrow, set] = useState(query.matches);
  useEffect(() => {
    query.onchange = () => set(query.matches);
  }, []);
  return isNarrow;
}

/**
 * A dialog that says what an act does, does it, and says what happened.
 * @param {{title: any, path: string, body?: unknown, label: string, level?: string, said: string, later?: string, done: () => void, close: () => void, children?: any}} props
 * `said`: the sentence afterwards, if the server has none; `later`: the one while the server is not done. `level`: `danger`
 */
export function Act({ title, path, body, label, level = 'primary', said, later, done, close, children }) {
  const [state, set] = useState(/** @type {{is: string, answer?: any, error?: any}} */ ({ is: '' }));
  const act = async () => {
    set({ is: 'busy' });
    try {
      set({ is: 'done', answer: await post(path, body) });
      done();
    } catch (error) {
      set({ is: 'failed', error });
    }
  };
  const isDone = state.is === 'done';
  const isLate = state.answer?.done === false;
  return html`<${Dialog} title=${title} onClose=${close}>
    ${isDone ? html`<div role="status"><${Note} level=${isLate ? 'pending' : 'ok'} sentence=${state.answer.sentence ?? (isLate ? later : said)} /></div>` : children}
    ${state.error && html`<${ErrorBox} error=${state.error} />`}
    <footer class="row"><button type="button" onClick=${close}>${isDone ? 'Close' : 'Cancel'}</button>
      ${!isDone && html`<button type="button" class=${level} disabled=${state.is === 'busy'} onClick=${act}>${label}</button>`}</footer></>`;
}

/** @param {number | null | undefined} part @param {number} whole a silence, and the timeout */
export function silence(part, whole) {
  if (part === null || part === undefined) return '–';
  // A client speaks at each third of its timeout, so after two thirds it has missed a turn.
  const level = part > whole * 0.9 ? 'critical' : part > (whole * 2) / 3 ? 'warning' : '';
  return share(part / whole, html`${duration(part)} of ${duration(whole)}${level && html` <span class="badge ${level}">${part < whole ? 'close' : 'over'}</span>`}`, level);
}
