// Sessions: who is connected, who is about to expire, what it owns, and why it ended.

import { html, loadStyle, useMemo, useRef, useState } from '../lib/html.js';
import { search } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { useGet, usePages } from '../lib/live.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { Ago, Duration, Text, Time, count, duration, plural } from '../lib/words.js';
import { Act } from './act.js';
import { Address, Asked, Choice, Name, Path, Paths, Session, Share, answeredBy, useIsNarrow, useIsOperator } from './names.js';

loadStyle('./pages.css', import.meta.url);

/** @typedef {{id: string, server: number, address: string | null, ids: string[], is_local: boolean, timeout_ms: number, last_heard_ago_ms: number | null,
 *   longest_silence_ms: number | null, ephemerals: number, watches: number, outstanding: number, requests: number, has_tls: boolean, since_ms: number}} Live */
/** @typedef {{id: string, server: number, address: string | null, ended_ms: number, cause: string, sentence: string, verdict: string | null, gaps_ms: number[],
 *   ephemerals: string[], passed_on: {path: string, to: string}[], timeout_ms: number}} Ended */

/** A client speaks when a third of its timeout has passed, so after two thirds it has missed a turn. */
const NEAR = 2 / 3;

/** @param {import('../lib/route.js').PageProps} props */
export default function Sessions({ query, go }) {
  const state = query.state === 'ended' ? 'ended' : 'live';
  const asked = `/sessions${search({ state, address: query.address, server: query.server })}`;
  const sessions = usePages(asked, { every: 5000 });
  const open = (/** @type {{id: string}} */ { id }) => go({ id });
  const fields = html`<${Asked} label="Address" value=${query.address ?? ''} placeholder="10.0.4.17" onSet=${(/** @type {string} */ address) => go({ address })} />
    <${Asked} label="Server" value=${query.server ?? ''} placeholder="1" onSet=${(/** @type {string} */ server) => go({ server })} />`;
  const isFiltered = !!(query.address || query.server);
  const List = state === 'live' ? LiveTable : EndedTable;
  return html`<h1>Sessions</h1>
    <${Choice} label="Sessions" of=${[['live', 'Live'], ['ended', 'Ended']]} value=${state} onPick=${(/** @type {string} */ next) => go({ state: next === 'live' ? null : next })} />
    <${Loaded} of=${sessions} rows=${8}>${(/** @type {any} */ data) => html`
      <${Silent} servers=${data.servers} />
      <${List} key=${state} data=${data} more=${sessions.more} at=${sessions.at} json=${asked} onOpen=${open} fields=${fields} isFiltered=${isFiltered} />`}</>
    ${query.id && html`<${Detail} key=${query.id} id=${query.id} onClose=${() => go({ id: null })} onChange=${sessions.reload} />`}`;
}

/** @typedef {{data: any, more: any, at: number | null, json: string, onOpen: (row: any) => void, fields: any, isFiltered: boolean}} ListProps */

/** @param {ListProps} props */
function LiveTable({ data, more, at, json, onOpen, fields, isFiltered }) {
  const rates = useRates(data.items, at);
  const isNarrow = useIsNarrow();
  const columns = useMemo(() => (isNarrow ? narrowColumns() : liveColumns(rates)), [isNarrow, rates]);
  const empty = isFiltered
    ? html`<${Empty} title="No session matches the address and the server."><p>The fields above ask the servers; clear them to see all sessions.</p></>`
    : html`<${Empty} title=${`No client is connected to ${answeredBy(data.servers)}.`}><p>A session appears here as soon as a client connects, such as <code>ostler shell</code>.</p></>`;
  return html`<${Table} name="live" caption="live sessions" rows=${data.items} columns=${columns} rowKey=${liveKey} sort="-silence" json=${json} more=${more} truncated=${data.truncated}
    onOpen=${onOpen} tools=${fields} empty=${empty} rowClass=${(/** @type {Live} */ row) => (isNear(row) ? 'is-near' : '')} />
    <p><small>The longest silence is a bar against the session’s timeout. A client speaks at each third of its timeout; one that nearly was silent for all of it will expire sooner or later.
      A <${Term} of="local session">local session</> is known to its own server alone.</small></p>`;
}

/** A session may be known to two servers while it moves. @param {Live} row */
const liveKey = (row) => `${row.id} ${row.server}`;

/** @param {Live} row */
const silence = (row) => (row.longest_silence_ms === null ? null : row.longest_silence_ms / row.timeout_ms);
/** @param {Live} row */
const isNear = (row) => (row.last_heard_ago_ms ?? 0) > row.timeout_ms * NEAR;

/** @param {Live} row */
const client = (row) => (row.address ? html`<${Address} of=${row.address} />` : html`<span title="The server knows the session; its client is connected to another server, or to none.">not connected here</span>`);
/** @param {Live} row */
const identities = (row) => row.ids.length > 0 && html`<small class="ids">${row.ids.map((id, at) => html`${at > 0 && ', '}<${Name} key=${id} of=${id} />`)}</small>`;

/** @param {{row: Live}} props */
function Silence({ row }) {
  const part = silence(row);
  if (part === null || row.longest_silence_ms === null) return html`–`;
  const words = `${duration(row.longest_silence_ms)} of ${duration(row.timeout_ms)}`;
  const level = part > 0.9 ? 'critical' : part > NEAR ? 'warning' : 'ok';
  return html`<${Share} part=${part} whole=${1} level=${level} label=${`Longest silence: ${words}`}>${words}${level !== 'ok' && html` <span class="badge ${level}">close</span>`}</>`;
}

/** @param {{row: Live}} props */
function LastHeard({ row }) {
  if (row.last_heard_ago_ms === null) return html`–`;
  const left = row.timeout_ms - row.last_heard_ago_ms;
  return html`${duration(row.last_heard_ago_ms)} ago${isNear(row) && html` <span class="badge critical">expires in ${duration(Math.max(0, left))}</span>`}`;
}

/** @param {Map<string, number>} rates @returns {import('../lib/table.js').Column[]} */
const liveColumns = (rates) => [
  { key: 'id', label: 'Session', render: (row) => html`<${Session} of=${row.id} />${row.is_local && html` <span class="badge muted">local</span>`}` },
  { key: 'address', label: 'Client', value: (row) => [row.address, ...row.ids].join(' '), render: (row) => html`${client(row)}${identities(row)}` },
  { key: 'server', label: 'Server', align: 'end' },
  { key: 'silence', label: 'Longest silence', value: silence, render: (row) => html`<${Silence} row=${row} />` },
  { key: 'last', label: 'Last heard', value: (row) => row.last_heard_ago_ms, render: (row) => html`<${LastHeard} row=${row} />` },
  { key: 'ephemerals', label: 'Ephemerals', align: 'end' },
  { key: 'watches', label: 'Watches', align: 'end' },
  { key: 'outstanding', label: 'Waiting', align: 'end', title: 'Requests that came and are not answered yet' },
  { key: 'requests', label: 'Requests', align: 'end', render: (row) => html`${count(row.requests)}${rates.has(row.id) && html`<br /><small>${count(rates.get(row.id))} per s</small>`}` },
  { key: 'since', label: 'Connected', value: (row) => row.since_ms, render: (row) => html`<${Ago} ms=${row.since_ms} />` },
  { key: 'tls', label: 'TLS', value: (row) => (row.has_tls ? 'yes' : 'no') },
];

/** For a telephone: the session and its client, its silence, and what it has. @returns {import('../lib/table.js').Column[]} */
const narrowColumns = () => [
  { key: 'address', label: 'Session', value: (row) => [row.address, ...row.ids, row.id].join(' '),
    render: (row) => html`${client(row)}<br /><small><code>${row.id}</code> at server ${row.server}${row.is_local && ', local'}</small>${identities(row)}` },
  { key: 'silence', label: 'Longest silence', value: silence,
    render: (row) => html`<${Silence} row=${row} /><small>last heard <${LastHeard} row=${row} /><br />${plural(row.ephemerals, 'ephemeral')}, ${plural(row.watches, 'watch', 'watches')}</small>` },
];

/** Requests per second of each session, from two answers. @param {Live[]} rows @param {number | null} at */
function useRates(rows, at) {
  const known = useRef({ at: 0, requests: new Map(), rates: new Map() });
  const before = known.current;
  const span = (at ?? 0) - before.at;
  if (span > 0) {
    const rates = new Map();
    for (const row of rows) {
      const earlier = before.requests.get(row.id);
      if (earlier !== undefined && before.at > 0 && row.requests >= earlier) rates.set(row.id, Math.round(((row.requests - earlier) * 1000) / span));
    }
    known.current = { at: at ?? 0, requests: new Map(rows.map((row) => [row.id, row.requests])), rates };
  }
  return known.current.rates;
}

/** @type {Record<string, [string, string, string]>} */
const VERDICTS = {
  client: ['Client', 'warning', 'The client was silent or ended, while others of its address were heard.'],
  network: ['Network', 'warning', 'The network, or the client’s whole host, was gone.'],
  server: ['Server', 'critical', 'A server stood still, was stopped or had no leader.'],
};

/** @param {{of: string | null}} props */
function Verdict({ of }) {
  const [word, level, title] = VERDICTS[of ?? ''] ?? ['–', '', ''];
  return level ? html`<span class="badge ${level}" title=${title}>${word}</span>` : html`${of ?? word}`;
}

/** @returns {import('../lib/table.js').Column[]} */
const endedColumns = () => [
  { key: 'ended', label: 'Ended', value: (row) => row.ended_ms, render: (row) => html`<${Ago} ms=${row.ended_ms} />` },
  { key: 'sentence', label: 'Why', wide: true, value: (row) => `${row.cause} ${row.sentence}`, render: (row) => html`<b>${cause(row)}</b><br /><${Text} of=${row.sentence} />` },
  { key: 'verdict', label: 'Where the cause lies', render: (row) => html`<${Verdict} of=${row.verdict} />` },
  { key: 'id', label: 'Session', render: (row) => html`<${Session} of=${row.id} />` },
  { key: 'address', label: 'Client', render: (row) => html`<${Address} of=${row.address} />` },
  { key: 'server', label: 'Server', align: 'end' },
  { key: 'gap', label: 'Last gap', align: 'end', value: (row) => row.gaps_ms[row.gaps_ms.length - 1] ?? null, render: (row) => html`<${Duration} ms=${row.gaps_ms[row.gaps_ms.length - 1]} />` },
  { key: 'went', label: 'Ephemerals', align: 'end', title: 'The ephemeral znodes that went with the session', value: (row) => row.ephemerals.length },
  { key: 'passed', label: 'Passed on', align: 'end', title: 'Locks and places in queues that went to another session', value: (row) => row.passed_on.length },
];

/** @returns {import('../lib/table.js').Column[]} */
const narrowEndedColumns = () => [
  { key: 'sentence', label: 'Why', wide: true, value: (row) => `${row.cause} ${row.sentence} ${row.address} ${row.id}`,
    render: (row) => html`<b>${cause(row)}</b> <${Verdict} of=${row.verdict} /><br /><${Text} of=${row.sentence} /><br />
      <small><code>${row.id}</code> of <${Name} of=${row.address} /> at server ${row.server}</small>` },
  { key: 'ended', label: 'Ended', value: (row) => row.ended_ms, render: (row) => html`<${Ago} ms=${row.ended_ms} />` },
];

/** @param {Ended} row */
const cause = (row) => row.cause.replaceAll('_', ' ');

/** @param {ListProps} props */
function EndedTable({ data, more, json, onOpen, fields, isFiltered }) {
  const isNarrow = useIsNarrow();
  const columns = useMemo(() => (isNarrow ? narrowEndedColumns() : endedColumns()), [isNarrow]);
  const empty = isFiltered
    ? html`<${Empty} title="No end matches the address and the server." />`
    : html`<${Empty} title="No session has ended since the servers started."><p>Each session that is closed, expires or is ended by somebody appears here with its cause.</p></>`;
  return html`<${Table} name="ended" caption="ended sessions" rows=${data.items} columns=${columns} rowKey=${(/** @type {Ended} */ row) => `${row.id} ${row.server} ${row.ended_ms}`} sort="-ended" json=${json}
    more=${more} truncated=${data.truncated} onOpen=${onOpen} tools=${fields} empty=${empty} />
    <p><small>Each server keeps its last 1,000 ends, the leader more, and a server that restarts loses its own. So an older end may be missing here.</small></p>`;
}

/** One session, live or ended. @param {{id: string, onClose: () => void, onChange: () => void}} props */
function Detail({ id, onClose, onChange }) {
  const session = useGet(`/sessions/${encodeURIComponent(id)}`);
  const isOperator = useIsOperator();
  const [isAsked, ask] = useState(false);
  const title = html`${isAsked ? 'Expire session' : 'Session'} <code><${Name} of=${id} /></code>`;
  return html`<${Dialog} title=${title} wide onClose=${onClose}><${Loaded} of=${session}>${(/** @type {any} */ data) => {
    if (isAsked) {
      return html`<${Act} path=${`/sessions/${encodeURIComponent(id)}/expire`} label="Expire the session" isDangerous onDone=${onChange} onClose=${onClose}
        said=${() => 'The session has ended, and all ephemeral znodes that it owned are deleted.'}><${Consequences} data=${data} /></>`;
    }
    return html`${data.sentences.length > 0 && html`<ul class="sentences">${data.sentences.map((/** @type {string} */ one) => html`<li key=${one}><${Text} of=${one} /></li>`)}</ul>`}
      ${data.live && html`<${LiveFacts} of=${data.live} />`}
      ${data.ended && html`<${EndedFacts} of=${data.ended} />`}
      ${!data.live && !data.ended && html`<${Empty} title="No server has a record of this session."><p>It ended before the servers started, or more than 1,000 ends ago.</p></>`}
      ${data.live && html`<h3>Ephemeral znodes that it owns (${data.ephemerals.length})</h3>
        ${data.ephemerals.length > 0 ? html`<${Paths} of=${data.ephemerals} />` : html`<p>It owns none.</p>`}`}
      <footer class="row end">${data.live && isOperator && html`<button type="button" class="danger" onClick=${() => ask(true)}>Expire this session …</button>`}
        <button type="button" onClick=${onClose}>Close</button></footer>`;
  }}</></>`;
}

/** @param {{data: {live: Live | null, ephemerals: string[]}}} props */
const Consequences = ({ data }) => html`
  <${Note} level="warning" sentence=${`The session of ${data.live?.address ?? 'a client that is not connected here'} ends at once. Its client hears so when it next connects, and has to begin a new session. This cannot be undone.`} />
  ${data.ephemerals.length > 0
    ? html`<p>It owns ${plural(data.ephemerals.length, 'ephemeral znode')}. All are deleted; locks and leaderships among them go to whoever is next:</p><${Paths} of=${data.ephemerals} />`
    : html`<p>It owns no ephemeral znodes.</p>`}
  ${(data.live?.watches ?? 0) > 0 && html`<p>Its ${plural(data.live?.watches ?? 0, 'watch', 'watches')} end, too.</p>`}`;

/** @param {{of: Live}} props */
const LiveFacts = ({ of }) => html`<dl class="facts">
  <dt>Client</dt><dd>${client(of)}${of.has_tls ? ', by TLS' : ', in plain text'}</dd>
  <dt>Identities</dt><dd>${of.ids.length ? identities(of) : 'none'}</dd>
  <dt>Server</dt><dd>${of.server}, as a ${of.is_local ? html`<${Term} of="local session">local session</>: only this server knows it` : 'global session'}</dd>
  <dt>Connected</dt><dd><${Time} ms=${of.since_ms} /></dd>
  <dt>Longest silence</dt><dd><${Silence} row=${of} /></dd>
  <dt>Last heard</dt><dd><${LastHeard} row=${of} /></dd>
  <dt>Requests</dt><dd>${count(of.requests)}, of which ${count(of.outstanding)} wait for an answer</dd>
  <dt>Watches</dt><dd>${count(of.watches)}</dd></dl>`;

/** @param {{of: Ended}} props */
const EndedFacts = ({ of }) => html`<dl class="facts">
  <dt>Ended</dt><dd><${Time} ms=${of.ended_ms} />, ${cause(of)}</dd>
  <dt>Why</dt><dd><${Text} of=${of.sentence} /></dd>
  <dt>Where the cause lies</dt><dd>${of.verdict ? html`<${Verdict} of=${of.verdict} /> ${VERDICTS[of.verdict]?.[2]}` : 'not to be said from the records'}</dd>
  <dt>Client</dt><dd><${Address} of=${of.address} /></dd><dt>Server</dt><dd>${of.server}</dd><dt>Timeout</dt><dd>${duration(of.timeout_ms)}</dd></dl>
  ${of.gaps_ms.length > 0 && html`<h3>The last gaps between its requests</h3><ol class="gaps">${of.gaps_ms.map((gap, at) => html`<li key=${at}>
    <${Share} part=${gap} whole=${of.timeout_ms} level=${gap > of.timeout_ms * 0.9 ? 'critical' : gap > of.timeout_ms * NEAR ? 'warning' : 'ok'} label=${`${duration(gap)} of ${duration(of.timeout_ms)}`}>${duration(gap)}</></li>`)}</ol>
    <p><small>The oldest is first. A full bar is the timeout.</small></p>`}
  ${of.ephemerals.length > 0 && html`<h3>Ephemeral znodes that went with it (${of.ephemerals.length})</h3><${Paths} of=${of.ephemerals} />`}
  ${of.passed_on.length > 0 && html`<h3>Passed on to others</h3><ul class="paths">${of.passed_on.map((one) => html`<li key=${one.path}><${Path} of=${one.path} /> <span class="arrow">→</span> <${Path} of=${one.to} /></li>`)}</ul>`}`;
