// Slow and hot: the slowest operations with their stages, the paths and clients with the most requests, and pauses.

import {
  address, choice, COLUMN, count, Dialog, duration, empty, ErrorBox, html, loaded, number, path, plural, post, search, serverNow, session,
  share, table, Term, Time, useEffect, useGet, useIsOperator, usePages, useState, when,
} from './parts.js';

/** @type {Record<string, string>} */
const STAGES = {
  parse: 'The bytes were split and decoded.',
  queue: 'The request waited for its turn: for other connections, and for earlier writes of its own.',
  propose: 'Until the proposal was made; at a follower, the way to the leader and back.',
  own_disk: 'Until the proposal was on this server’s disk.',
  quorum: 'Until a quorum had the proposal on disk.',
  apply: 'It was applied to the tree, and the answer was made.',
  write: 'Until the answer’s bytes were with the system.',
};
const HOUR = '3600000';
const MEASURE_SECONDS = 30;

/** @param {PageProps} props */
export default function Operations({ query, go }) {
  return html`<h1>Slow and hot</h1><${Slow} span=${query.since ?? HOUR} go=${go} /><${Hot} /><${Pauses} />`;
}

/** @param {string} stage */
const words = (stage) => stage.replace('_', ' ');
/** @param {{stages: Stage[]}} row */
const longest = ({ stages }) => stages.reduce((most, one) => (one.for_ms > most.for_ms ? one : most), { name: '', for_ms: -1 });

/** The stages side by side; the longest is named. @param {{stages: Stage[]}} row */
function bar(row) {
  const most = longest(row);
  const sum = row.stages.reduce((sum, one) => sum + one.for_ms, 0) || 1;
  const numbers = row.stages.map((one) => `${words(one.name)} ${duration(one.for_ms)}`).join(', ');
  return most.name && html`<span class="stages" role="img" aria-label=${numbers} title=${numbers}>${row.stages.map((one) => html`<i key=${one.name} class="stage-${one.name}" style=${{ flexGrow: one.for_ms / sum }} />`)}</span>
    <small>mostly ${words(most.name)}: ${duration(most.for_ms)}</small>`;
}

/** @type {Column[]} */
const SLOW = [
  when('at_ms', 'When'), number('total_ms', 'Took', duration, 'Until the answer was made. The stage write comes after that.'), { key: 'stages', label: 'Stages', value: (row) => longest(row).name, render: bar },
  { key: 'kind', label: 'Operation' }, COLUMN.path, COLUMN.session,
  { ...COLUMN.address, value: (row) => `${row.address} server ${row.server}`, render: (row) => html`${address(row.address)}<br /><small>server ${row.server}</small>` },
];

/** @param {{span: string, go: Go}} props */
function Slow({ span, go }) {
  // The same address for five minutes, so that the rows need not be greyed at each answer.
  const json = `/slow${search({ since_ms: Math.floor(serverNow() / 300_000) * 300_000 - Number(span) })}`;
  const slow = usePages(json, { every: 5000, keep: true });
  const [open, setOpen] = useState(/** @type {any} */ (null));
  return html`<section class="panel"><header><h2>Slow operations</h2><span class="end">
      ${choice('Time', [['900000', '15 min'], [HOUR, '1 h'], ['21600000', '6 h']], span, (since) => go({ since: since === HOUR ? null : since }))}</span></header>
    ${loaded(slow, (data) => html`<p>${plural(data.count, 'operation')} took longer than ${duration(data.threshold_ms)}; the slowest are kept. A row opens the numbers of its <${Term} of="stages">stages</>.</p>
      <ul class="row" aria-hidden="true">${Object.keys(STAGES).map((stage) => html`<li key=${stage}><i class="key stage-${stage}" />${words(stage)}</li>`)}</ul>
      ${table('slow operations', SLOW, { name: 'slow', of: slow, key: (row) => `${row.server} ${row.at_ms} ${row.session} ${row.total_ms}`, sort: '-total_ms', json, open: setOpen,
        empty: empty(`No operation took longer than ${duration(data.threshold_ms)}.`, 'One that does is listed here with the time of each stage.') })}`)}
    ${open && html`<${Dialog} title="${open.kind}: ${duration(open.total_ms)}" onClose=${() => setOpen(null)}>
      <p>${path(open.path)}</p><p><${Time} ms=${open.at_ms} /> at server ${open.server}</p>
      <table><thead><tr><th scope="col">Stage</th><th scope="col" class="end">Took</th><th scope="col">Part</th></tr></thead>
        <tbody>${open.stages.map((/** @type {Stage} */ { name, for_ms }) => html`<tr key=${name}><th scope="row"><i class="key stage-${name}" />${words(name)}</th><td class="end">${duration(for_ms)}</td><td>${STAGES[name]}</td></tr>`)}</tbody></table></>`}
  </section>`;
}

/** @type {[string, string, (row: any) => any][]} */
const HOT = [
  ['reads', 'Reads by path', (row) => path(row.path)], ['writes', 'Writes by path', (row) => path(row.path)],
  ['addresses', 'Requests by client', (row) => address(row.address)], ['sessions', 'Requests by session', (row) => session(row.session)],
];

function Hot() {
  const hot = useGet('/hot', { every: 5000 });
  return html`<section class="panel"><header><h2>Hot paths and clients</h2><${Measure} done=${hot.reload} /></header>
    ${loaded(hot, (data) => html`<p>Over the last ${duration(data.span_ms)}. ${data.sampled_one_in > 1 ? `One of ${count(data.sampled_one_in)} requests was counted, so these are estimates.` : 'Each request was counted.'}</p>
      <div class="halves">${HOT.map(([key, title, draw]) => html`<section key=${key}><h3>${title}</h3>${counts(data[key], data.span_ms, draw, title)}</section>`)}</div>`)}
  </section>`;
}

/** @param {{count: number}[]} rows @param {number} span_ms @param {(row: any) => any} draw @param {string} title */
function counts(rows, span_ms, draw, title) {
  if (rows.length === 0) return empty(`No ${title.toLowerCase().split(' ')[0]} in this time.`);
  const most = Math.max(...rows.map((row) => row.count));
  return html`<table class="hot"><thead class="unseen"><tr><th scope="col">${title}</th><th scope="col">Per second</th></tr></thead><tbody>${rows.map((row, at) => html`<tr key=${at}><td>${draw(row)}</td>
    <td>${share(row.count / most, `${Number(((row.count * 1000) / span_ms).toPrecision(3)).toLocaleString('en-US')} per s`)}</td></tr>`)}</tbody></table>`;
}

/** Counts each request for half a minute. @param {{done: () => void}} props */
function Measure({ done }) {
  const isOperator = useIsOperator();
  const [left, set] = useState(0);
  const [error, fail] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (left === 0) return;
    const timer = setTimeout(() => {
      set(left - 1);
      if (left === 1) done();
    }, 1000);
    return () => clearTimeout(timer);
  }, [left]);
  const measure = () => post('/hot/measure', { seconds: MEASURE_SECONDS }).then(() => (fail(null), set(MEASURE_SECONDS)), fail);
  return isOperator && html`<span class="end row">${error && html`<${ErrorBox} error=${error} />`}${left > 0 && `Each request is counted: ${left} s left`}
    <button type="button" disabled=${left > 0} title="Counts each request instead of a sample" onClick=${measure}>Measure for ${MEASURE_SECONDS} s</button></span>`;
}

/** @type {Column[]} */
const PAUSES = [
  { ...when('at_ms', 'When'), render: (row) => html`<${Time} ms=${row.at_ms} />` }, COLUMN.server, number('for_ms', 'For', duration),
  { key: 'kind', label: 'Cause', value: ({ kind }) => ({ disk: 'A sync of the disk took long', process: 'The process did not run' })[/** @type {'disk'} */ (kind)] ?? kind },
];

function Pauses() {
  const pauses = usePages('/pauses', { every: 10_000 });
  return html`<section class="panel"><h2>Pauses</h2>${loaded(pauses, () => table('pauses', PAUSES, { name: 'pauses', of: pauses, key: (row) => `${row.server} ${row.at_ms}`, sort: '-at_ms', json: '/pauses',
    empty: empty('No server stood still.', 'A pause of a process or a disk that could end sessions is listed here.') }))}</section>`;
}
