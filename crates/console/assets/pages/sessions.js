// Sessions: who is connected, which session will soon expire, what it owns, and why one ended.

import {
  Act, address, Ago, answeredBy, asked, choice, COLUMN, count, Dialog, duration, empty, EndedByLeader, facts, html, loaded, Name, Note, number, path,
  paths, plural, search, session, silence, table, Term, Text, Time, useGet, useIsNarrow, useIsOperator, usePages, useRef, useState, when,
} from './parts.js';

/** @param {PageProps} props */
export default function Sessions({ query, go }) {
  const isLive = query.state !== 'ended';
  const json = `/sessions${search({ state: isLive ? 'live' : 'ended', address: query.address, server: query.server })}`;
  const sessions = usePages(json, { every: 5000 });
  const isNarrow = useIsNarrow();
  const rates = useRates(isLive ? sessions : null);
  const fields = html`${asked('Address', query.address, (address) => go({ address }), '10.0.4.17')}${asked('Server', query.server, (server) => go({ server }), '1')}`;
  const open = (/** @type {Live | Ended} */ { id }) => go({ id });
  const isFiltered = query.address || query.server;
  const live = (/** @type {any} */ data) => html`${table('live sessions', isNarrow ? NARROW : liveColumns(rates), {
    name: 'live', of: sessions, key: (row) => `${row.id} ${row.server}`, sort: '-silence', json, open, fields,
    empty: isFiltered ? empty('No live session has this address and server.') : empty(`No client is connected to ${answeredBy(data.servers)}.`, 'A session appears here as soon as a client connects, such as ostler shell.'),
  })}<p><small>A bar is the longest silence, and its whole length the session’s timeout. A client speaks at each third of its timeout. A <${Term} of="local session">local session</> is known to its own server alone.</small></p>`;
  const ended = () => html`${table('ended sessions', isNarrow ? NARROW_ENDED : ENDED, {
    name: 'ended', of: sessions, key: (row) => `${row.id} ${row.server} ${row.ended_ms}`, sort: '-ended_ms', json, open, fields,
    empty: isFiltered ? empty('No end has this address and server.') : empty('No session has ended since the servers started.', 'One that is closed, expires or is ended by somebody appears here with its cause.'),
  })}<p><small>A server keeps its last 1,000 ends, a leader more. It loses them when it restarts.</small></p>`;
  return html`<h1>Sessions</h1>
    ${choice('Sessions', [['live', 'Live'], ['ended', 'Ended']], isLive ? 'live' : 'ended', (state) => go({ state: state === 'live' ? null : state }))}
    ${loaded(sessions, isLive ? live : ended)}
    ${query.id && html`<${Detail} key=${query.id} id=${query.id} close=${() => go({ id: null })} done=${sessions.reload} />`}`;
}

/** @param {Live} row */
const client = (row) => (row.address ? address(row.address) : html`<span title="The server knows the session; its client is connected to another server, or to none.">not connected here</span>`);
/** @param {Live} row */
const identities = (row) => row.ids.length > 0 && html`<small class="ids">${row.ids.map((id, at) => html`${at > 0 && ', '}<${Name} key=${id} of=${id} />`)}</small>`;
/** A standalone server has no id, and an end of a connection may be known before its server. @param {Live} row */
const at = (row) => (row.server === null ? 'server not known' : `server ${row.server}`);
/** @param {Live} row */
const longest = (row) => silence(row.longest_silence_ms, row.timeout_ms);

/** @param {Live} row */
function lastHeard({ last_heard_ago_ms: ago, timeout_ms }) {
  if (ago === null) return '–';
  return html`${duration(ago)} ago${ago > (timeout_ms * 2) / 3 && html`<br /><span class="badge critical">expires in ${duration(Math.max(0, timeout_ms - ago))}</span>`}`;
}

/** @type {Column} */
const SILENCE = { key: 'silence', label: 'Longest silence', value: (row) => row.longest_silence_ms && row.longest_silence_ms / row.timeout_ms, render: longest };
/** @param {Live} row */
const clientText = (row) => [row.address, ...row.ids, row.id].join(' ');

/** @param {Map<string, number>} rates @returns {Column[]} */
const liveColumns = (rates) => [
  { key: 'id', label: 'Session', value: (row) => `${row.id} ${at(row)}`, render: (row) => html`${session(row.id)}<br /><small>${at(row)}${row.since_ms && html`, since <${Ago} ms=${row.since_ms} />`}</small>${row.is_local && html` <span class="badge">local</span>`}` },
  { ...COLUMN.address, value: clientText, render: (row) => html`${client(row)}<br />${row.has_tls && html`<span class="badge">TLS</span> `}${identities(row)}` },
  SILENCE,
  { key: 'heard', label: 'Last heard', value: (row) => row.last_heard_ago_ms, render: lastHeard },
  number('ephemerals', 'Ephemerals'), number('watches', 'Watches'),
  { ...number('requests', 'Requests'), render: (row) => html`${count(row.requests)}<br /><small>${rates.has(row.id) && `${count(rates.get(row.id))} per s`} ${row.outstanding > 0 && html`<b>${count(row.outstanding)} wait</b>`}</small>` },
];
/** One column for a telephone. It is sorted by the beginning of its value, and filtered by all of it. @type {Column[]} */
const NARROW = [{ ...SILENCE, label: 'Session, with its longest silence', wide: true, value: (row) => `${(row.longest_silence_ms / row.timeout_ms).toFixed(3)} ${clientText(row)} ${at(row)}`,
  render: (row) => html`${client(row)}${row.is_local && html` <span class="badge">local</span>`}${identities(row)}${longest(row)}
    <small>${at(row)}, ${plural(row.ephemerals, 'ephemeral')}, ${count(row.watches)} watches, last heard ${lastHeard(row)}<br />${session(row.id)}</small>` }];

/** Requests per second of each session, from two answers. @param {Answer | null} answer */
function useRates(answer) {
  const last = useRef({ at: 0, requests: new Map(), rates: new Map() });
  const { at, requests } = last.current;
  if (answer?.data && answer.at && answer.at > at) {
    /** @type {Live[]} */
    const rows = answer.data.items;
    const span = (answer.at - at) / 1000;
    const known = at ? rows.filter((row) => Number(row.requests) >= (requests.get(row.id) ?? Infinity)) : [];
    last.current = { at: answer.at, requests: new Map(rows.map((row) => [row.id, row.requests ?? Infinity])), rates: new Map(known.map((row) => [row.id, Math.round((Number(row.requests) - requests.get(row.id)) / span)])) };
  }
  return last.current.rates;
}

/** Where the cause lies, its level, and why. @type {Record<string, [string, string]>} */
const VERDICTS = {
  client: ['warning', 'The client was silent or ended, while others of its address were heard.'],
  network: ['warning', 'The network, or the client’s whole host, was gone.'],
  server: ['critical', 'A server stood still, was stopped or had no leader.'],
};
/** @param {Ended} row */
const verdict = (row) => (row.verdict ? html`<span class="badge ${VERDICTS[row.verdict]?.[0]}" title=${VERDICTS[row.verdict]?.[1]}>${row.verdict}</span>` : '–');
/** @param {Ended} row */
const why = (row) => html`<b>${row.cause.replaceAll('_', ' ')}</b><br /><${Text} of=${row.sentence} />`;
/** @param {Ended} row */
const whyText = (row) => `${row.cause} ${row.sentence}`;

/** @type {Column[]} */
const ENDED = [
  when('ended_ms', 'Ended'), { key: 'sentence', label: 'Why', wide: true, value: whyText, render: why }, { key: 'verdict', label: 'Caused by', render: verdict },
  { ...COLUMN.session, value: (row) => row.id }, COLUMN.address, COLUMN.server,
  { ...number('gap', 'Last gap'), value: (row) => row.gaps_ms.at(-1), render: (row) => duration(row.gaps_ms.at(-1)) },
  { ...number('went', 'Ephemerals'), title: 'Ephemeral znodes that went with the session', value: (row) => row.ephemerals.length },
  { ...number('passed', 'Passed on'), title: 'Locks and places in queues that went to another session', value: (row) => row.passed_on.length },
];
/** @type {Column[]} */
const NARROW_ENDED = [{ key: 'ended_ms', label: 'Ended sessions', wide: true, value: (row) => `${row.ended_ms} ${whyText(row)} ${row.address} ${row.id}`,
  render: (row) => html`<${Ago} ms=${row.ended_ms} /> ${verdict(row)}<br />${why(row)}<br /><small>${address(row.address)}<br />${session(row.id)}</small>` }];

/** One session, live or ended. @param {{id: string, close: () => void, done: () => void}} props */
function Detail({ id, close, done }) {
  const where = `/sessions/${encodeURIComponent(id)}`;
  const answer = useGet(where);
  const isOperator = useIsOperator();
  const [isAsked, ask] = useState(false);
  const { live, ended, ephemerals, sentences } = answer.data ?? {};
  if (isAsked) {
    return html`<${Act} title="Expire session ${id}" path="${where}/expire" label="Expire the session" level="danger" said="The session has ended, and the ephemeral znodes that it owned are deleted." later="The session has not ended yet." done=${done} close=${close}>
      <${Note} level="warning" sentence="The session ends at once. Its client has to begin a new one. This cannot be undone." />
      <p>It belongs to ${client(live)}, has ${count(live.watches)} watches and owns ${plural(ephemerals.length, 'ephemeral znode')}${ephemerals.length > 0 ? '. All of them are deleted; locks and leaderships among them go to others:' : '.'}</p>${paths(ephemerals)}<${EndedByLeader} /></>`;
  }
  return html`<${Dialog} title=${html`Session <code><${Name} of=${id} /></code>`} wide onClose=${close}>${loaded(answer, () => html`
      ${sentences.length > 0 && html`<ul class="paths">${sentences.map((/** @type {string} */ one) => html`<li key=${one}><${Text} of=${one} /></li>`)}</ul>`}
      ${live && liveFacts(live)}${ended && endedFacts(ended)}
      ${!live && !ended && empty('No server has a record of this session.', 'It ended before the servers started, or 1,000 others have ended since.')}
      ${live && html`<h3>Ephemeral znodes that it owns</h3>${ephemerals.length > 0 ? paths(ephemerals) : html`<p>None.</p>`}`}`)}
    <footer class="row">${live && isOperator && html`<button type="button" class="danger" onClick=${() => ask(true)}>Expire …</button>`}<button type="button" onClick=${close}>Close</button></footer></>`;
}

/** @param {Live} of */
const liveFacts = (of) => facts([
  ['Client', html`${client(of)} ${of.has_tls === true && 'by TLS'}${of.has_tls === false && 'in plain text'}`], ['Identities', identities(of) || 'none'],
  ['Server', html`${of.server ?? '–'}${of.is_local && html`, as a <${Term} of="local session">local session</>`}`], ['Connected', html`<${Time} ms=${of.since_ms} />`],
  ['Longest silence', longest(of)], ['Last heard', lastHeard(of)], ['Requests', `${count(of.requests)}; ${count(of.outstanding)} wait`], ['Watches', count(of.watches)],
]);

/** @param {Ended} of */
const endedFacts = (of) => html`${facts([
  ['Ended', html`<${Time} ms=${of.ended_ms} />`], ['Why', html`<b>${of.cause.replaceAll('_', ' ')}</b>`], ['Caused by', of.verdict ? html`${verdict(of)} ${VERDICTS[of.verdict]?.[1]}` : 'The records do not show it.'],
  ['Client', address(of.address)], ['Server', of.server], ['Timeout', duration(of.timeout_ms)],
])}
  ${of.gaps_ms.length > 0 && html`<h3>The last gaps between its requests, against its timeout</h3><ol>${of.gaps_ms.map((gap, at) => html`<li key=${at}>${silence(gap, of.timeout_ms)}</li>`)}</ol>`}
  ${of.ephemerals.length > 0 && html`<h3>Ephemeral znodes that went with it</h3>${paths(of.ephemerals)}`}
  ${of.passed_on.length > 0 && html`<h3>Passed on to others</h3>${of.passed_on.map((one) => html`<p key=${one.path}>${path(one.path)} → ${path(one.to)}</p>`)}`}`;
