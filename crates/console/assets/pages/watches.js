// Watches: who hears of a change, and what one write would cost.

import { html, loadStyle } from '../lib/html.js';
import { search } from '../lib/api.js';
import { usePages } from '../lib/live.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { count, plural } from '../lib/words.js';
import { Address, Asked, Choice, Name, Path, Session, answeredBy } from './names.js';

loadStyle('./pages.css', import.meta.url);

const SERVER = { key: 'server', label: 'Server', align: /** @type {const} */ ('end') };
/** @param {(row: any) => void} pick @returns {import('../lib/table.js').Column[]} */
const byPath = (pick) => [
  { key: 'path', label: 'Path', render: (row) => html`<${Path} of=${row.path} />` },
  { key: 'connections', label: 'Notified', align: 'end', title: 'Connections that hear of a change, at this server', render: (row) => html`<button type="button" class="plain" aria-label=${`${row.connections} connections: show them`} onClick=${() => pick(row)}>${count(row.connections)}</button>` },
  { key: 'data', label: 'Data', align: 'end' }, { key: 'children', label: 'Children', align: 'end' }, { key: 'persistent', label: 'Persistent', align: 'end' }, SERVER,
];
/** @type {import('../lib/table.js').Column[]} */
const WHO = [
  { key: 'session', label: 'Session', render: (row) => html`<${Session} of=${row.session} />` },
  { key: 'address', label: 'Client', render: (row) => html`<${Address} of=${row.address} />` }, SERVER,
];
/** @param {(row: any) => void} pick @returns {import('../lib/table.js').Column[]} */
const bySession = (pick) => [
  ...WHO,
  { key: 'count', label: 'Watches', align: 'end', render: (row) => html`<button type="button" class="plain" aria-label=${`${row.count} watches: show them`} onClick=${() => pick(row)}>${count(row.count)}</button>` },
];
/** @type {import('../lib/table.js').Column[]} */
const OF_PATH = [...WHO, { key: 'kinds', label: 'Kinds', value: (row) => [row.kinds].flat().join(', ').replaceAll('_', ' ') }];

/** @param {import('../lib/route.js').PageProps} props */
export default function Watches({ query, go }) {
  const { path, session, address } = query;
  const by = path ? 'session' : session ? 'path' : query.by === 'session' ? 'session' : 'path';
  const asked = `/watches${search({ by, path, session, address })}`;
  const watches = usePages(asked, { every: 10_000 });
  const set = (/** @type {string} */ key) => (/** @type {string} */ value) => go({ [key]: value });
  const tools = html`<${Asked} label="Path" value=${path ?? ''} placeholder="/config" onSet=${set('path')} />
    <${Asked} label="Session" value=${session ?? ''} placeholder="0x…" onSet=${set('session')} />
    <${Asked} label="Address" value=${address ?? ''} placeholder="10.0.4.17" onSet=${set('address')} />`;
  const columns = path ? OF_PATH : by === 'path' ? byPath((row) => go({ path: row.path })) : bySession((row) => go({ session: row.session }));
  return html`<h1>Watches</h1>
    ${!path && !session && html`<${Choice} label="Watches" of=${[['path', 'By path'], ['session', 'By session']]} value=${by} onPick=${set('by')} />`}
    <${Loaded} of=${watches} rows=${8}>${(/** @type {any} */ data) => html`<${Silent} servers=${data.servers} />
      ${path ? html`<p class="answer">A change of <${Path} of=${path} /> notifies <b>${plural(data.totals.connections, 'connection')}</b> of ${answeredBy(data.servers)}.</p>` : html`<${Totals} of=${data.totals} />`}
      ${session && html`<p>The watches of session <${Session} of=${session} />.</p>`}
      ${by === 'path' && !session && html`<${Most} rows=${data.items} />`}
      ${(path || session) && html`<p><button type="button" onClick=${() => go({ path: null, session: null })}>← All watches</button></p>`}
      <${Table} key=${by} name=${path ? 'of' : by} caption=${by === 'path' ? 'watched paths' : 'sessions with watches'} rows=${data.items} columns=${columns}
        rowKey=${(/** @type {any} */ row) => `${row.path ?? row.session} ${row.server}`} sort=${path ? '' : by === 'path' ? '-connections' : '-count'} json=${asked} more=${watches.more} truncated=${data.truncated} tools=${tools}
        empty=${html`<${Empty} title=${path || session || address ? `No watch fits, at ${answeredBy(data.servers)}.` : `No client of ${answeredBy(data.servers)} watches anything.`}>
          <p>A watch is set by a client that reads with it, such as <code>get -w /config</code> in <code>ostler shell</code>. It is known only to the server that the client is connected to.</p></>`} />`}</>`;
}

/** @param {{of: any}} props */
const Totals = ({ of }) => html`<dl class="counts">
  ${[['Data', of.data], ['Children', of.children], ['Persistent', of.persistent], ['Recursive', of.persistent_recursive], ['Connections', of.connections], ['Paths', of.paths]].map(
    ([name, number]) => html`<div key=${name}><dt>${name}</dt><dd>${count(number)}</dd></div>`)}</dl>
  <p><small>A <${Term} of="watch">watch</> belongs to the server that its client is connected to; these are those of the servers that answered.</small></p>`;

/** The path with the most, as one sentence: what one write costs. @param {{rows: {path: string, connections: number}[]}} props */
function Most({ rows }) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { path, connections } of rows) sums.set(path, (sums.get(path) ?? 0) + connections);
  const [most] = [...sums].sort((a, b) => b[1] - a[1]);
  if (!most || most[1] < 100) return null;
  return html`<${Note} level="info" sentence=${`One change notifies ${plural(most[1], 'connection')} at once:`}><p><code><${Name} of=${most[0]} /></code></p></>`;
}
