// The three states of each part of a page: it is loading, it is empty, it failed.

import { html, useErrorBoundary } from './html.js';
import { link } from './route.js';
import { Ago, Text } from './words.js';

/** Grey bars in the place of what comes. @param {{rows?: number, label?: string}} props */
export function Loading({ rows = 3, label = 'Loading' }) {
  return html`<div class="loading" role="status" aria-busy="true"><span class="unseen">${label} …</span>
    ${Array.from({ length: rows }, (_, at) => html`<span key=${at} class="bar" style=${{ width: `${[92, 78, 85, 64][at % 4]}%` }} />`)}</div>`;
}

/** Says why there is nothing, and, as its content, what would fill it. @param {{title: any, children?: any}} props */
export const Empty = ({ title, children }) => html`<div class="empty"><p><strong>${title}</strong></p>${children}</div>`;

/** What failed, since when the data are old, and a way to try again.
 *  @param {{error: {sentence?: string, message?: string, code?: string, status?: number, path?: string}, at?: number | null, retry?: () => void}} props */
export function ErrorBox({ error, at, retry }) {
  return html`<div class="note critical" role="alert">
    <p><strong class="level">Error</strong> <${Text} of=${error.sentence ?? error.message} />${error.path && html` <code><${Text} of=${error.path} /></code>`}</p>
    <p class="row"><small>${error.code}${at && html`${' '}· the data are from <${Ago} ms=${at} />`}</small>
      ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
      ${[401, 403].includes(error.status ?? 0) && error.code !== 'OTHER_SITE' && html`<a class="button" href=${link('sign-in', { back: location.hash })}>Sign in</a>`}</p>
  </div>`;
}

/** Picks the state of an answer: `<${Loaded} of=${useGet('/disk')}>${(data) => …}</>`. Old data stay, greyed.
 *  @param {{of: import('./live.js').Answer, rows?: number, children: (data: any) => any}} props */
export function Loaded({ of, rows, children }) {
  if (of.state === 'loading') return html`<${Loading} rows=${rows} />`;
  if (of.state === 'error') return html`<${ErrorBox} error=${of.error} retry=${of.reload} />`;
  return html`${of.error && html`<${ErrorBox} error=${of.error} at=${of.at} retry=${of.reload} />`}
    <div class=${of.state === 'stale' ? 'stale' : ''}>${children(of.data)}</div>`;
}

/** A sentence with a level: `ok`, `warning`, `critical`, `pending` or `info`. The level is written, not only coloured.
 *  @param {{level: string, sentence: string, way_out?: string | null, children?: any}} props */
export function Note({ level, sentence, way_out, children }) {
  const word = /** @type {Record<string, string>} */ ({ ok: 'Good', warning: 'Warning', critical: 'Critical', pending: 'Not done yet', info: 'Note' })[level] ?? level;
  return html`<div class="note ${level}"><p><strong class="level">${word}</strong> <${Text} of=${sentence} />${way_out && html` <span class="way"><${Text} of=${way_out} /></span>`}</p>${children}</div>`;
}

/** The servers of an answer that did not tell: a list, or nothing. @param {{servers?: {id: number, name: string, state: string, reason: string | null}[]}} props */
export function Silent({ servers = [] }) {
  const silent = servers.filter((server) => server.state !== 'answered');
  if (silent.length === 0) return null;
  return html`<ul class="silent" aria-label="Servers that did not answer">${silent.map((server) => html`<li key=${server.id}>
    <strong>Server ${server.id}</strong> is not in these data: <${Text} of=${server.reason ?? server.state} /></li>`)}</ul>`;
}

/** Keeps an error of one part of the page from taking the others along. @param {{children: any, name?: string}} props */
export function Guard({ children, name = 'This page' }) {
  const [error, reset] = useErrorBoundary((error) => console.error(error));
  if (error) return html`<${ErrorBox} error=${{ sentence: `${name} cannot be shown: ${error.message ?? error}`, code: 'PAGE' }} retry=${reset} />`;
  return children;
}
