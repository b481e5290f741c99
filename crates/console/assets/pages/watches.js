// Watches: which connections hear of a change, and what one write would cost.

import {
  answeredBy, asked, choice, COLUMN, count, empty, html, loaded, Name, Note, number, path, plural, search, session, table, Term, usePages,
} from './parts.js';
import { link } from '../lib/route.js';

/** A number that opens what it counts. @param {number} of @param {Record<string, string>} query */
const opens = (of, query) => html`<a href=${link('watches', query)}>${count(of)}</a>`;

/** @param {PageProps} props */
export default function Watches({ query, go }) {
  const { path: one, session: who, address } = query;
  const by = one || (query.by === 'session' && !who) ? 'session' : 'path';
  const json = `/watches${search({ by, path: one, session: who, address })}`;
  const watches = usePages(json, { every: 10_000 });
  const set = (/** @type {string} */ key) => (/** @type {string} */ value) => go({ [key]: value });
  /** @type {Column[]} */
  const columns = by === 'path'
    ? [COLUMN.path, { ...number('connections', 'Notified'), title: 'Connections that hear of a change', render: (row) => opens(row.connections, { path: row.path }) },
      number('data', 'Data'), number('children', 'Children'), number('persistent', 'Persistent'), COLUMN.server]
    : [COLUMN.session, COLUMN.address, COLUMN.server,
      one ? { key: 'kinds', label: 'Kinds', value: (row) => [row.kinds].flat().join(', ').replaceAll('_', ' ') }
        : { ...number('count', 'Watches'), render: (row) => opens(row.count, { session: row.session }) }];
  return html`<h1>Watches</h1>
    ${one || who ? html`<p><button type="button" onClick=${() => go({ path: null, session: null })}>← All watches</button></p>`
      : choice('Watches', [['path', 'By path'], ['session', 'By session']], by, set('by'))}
    ${loaded(watches, (data) => html`
      ${one ? html`<p class="answer">A change of ${path(one)} notifies <b>${plural(data.totals.connections, 'connection')}</b> of ${answeredBy(data.servers)}.</p>` : totals(data.totals)}
      ${who && html`<p>The watches of session ${session(who)}</p>`}
      ${by === 'path' && !who && html`<${Most} rows=${data.items} />`}
      ${table(by === 'path' ? 'watched paths' : 'sessions with watches', columns, {
        name: one ? 'of' : by, of: watches, key: (row) => `${row.path ?? row.session} ${row.server}`, sort: one ? '' : by === 'path' ? '-connections' : '-count', json,
        fields: html`${asked('Path', one, set('path'), '/config')}${asked('Session', who, set('session'), '0x…')}${asked('Address', address, set('address'), '10.0.4.17')}`,
        empty: empty(one || who || address ? `No watch fits, at ${answeredBy(data.servers)}.` : `No client of ${answeredBy(data.servers)} watches anything.`,
          'A client sets a watch when it reads with one, such as “get -w /config” in ostler shell. Only the server that the client is connected to knows it.'),
      })}`)}`;
}

/** @param {any} of */
const totals = (of) => html`<dl class="counts">${[['Data', of.data], ['Children', of.children], ['Persistent', of.persistent], ['Recursive', of.persistent_recursive], ['Connections', of.connections], ['Paths', of.paths]].map(
  ([name, number]) => html`<div key=${name}><dt>${name}</dt><dd>${count(number)}</dd></div>`)}</dl>
  <p><small>A <${Term} of="watch">watch</> is known to the server that its client is connected to; these are those of the servers that answered.</small></p>`;

/** The path with the most watches, if a write to it costs much. @param {{rows: {path: string, connections: number}[]}} props */
function Most({ rows }) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { path, connections } of rows) sums.set(path, (sums.get(path) ?? 0) + connections);
  const [most] = [...sums].sort((a, b) => b[1] - a[1]);
  return most?.[1] >= 100 && html`<${Note} level="info" sentence=${`One change notifies ${count(most[1])} connections at once:`}><code><${Name} of=${most[0]} /></code></>`;
}
