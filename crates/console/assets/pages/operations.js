// Slow and hot: the slowest operations and their stages, the paths and clients with the most requests, and pauses.

import { html, loadStyle, useEffect, useMemo, useState } from '../lib/html.js';
import { post, search } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { serverNow, useGet, usePages } from '../lib/live.js';
import { Empty, ErrorBox, Loaded, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { Ago, Time, count, duration, plural } from '../lib/words.js';
import { Address, Choice, Path, Session, Share, useIsOperator } from './names.js';

loadStyle('./pages.css', import.meta.url);

/** What happens in each stage. @type {Record<string, string>} */
const STAGES = {
  parse: 'The bytes were split and decoded.',
  queue: 'The request waited for its turn: for other connections, and for earlier writes of its own.',
  propose: 'Until the proposal was made; at a follower, the way to the leader and back.',
  own_disk: 'Until the proposal was on this server’s disk.',
  quorum: 'Until a quorum had the proposal on disk.',
  apply: 'It was applied to the tree, and the answer was made.',
  write: 'Until the answer’s bytes were with the system.',
};
const SPANS = /** @type {[string, string][]} */ ([['900000', '15 min'], ['3600000', '1 h'], ['21600000', '6 h']]);
const HOUR = '3600000';
const MEASURE_SECONDS = 30;

/** @param {import('../lib/route.js').PageProps} props */
export default function Operations({ query, go }) {
  return html`<h1>Slow and hot</h1><${Slow} span=${query.since ?? HOUR} go=${go} /><${Hot} /><${Pauses} />`;
}

/** @param {string} stage */
const inWords = (stage) => stage.replaceAll('_', ' ');
/** @param {any} row */
const worst = ({ stages }) => stages.reduce((/** @type {any} */ most, /** @type {any} */ one) => (one.for_ms > (most?.for_ms ?? -1) ? one : most), null);

/** The stages side by side; the longest is named. @param {{row: any}} props */
function Stages({ row }) {
  const most = worst(row);
  if (!most) return html`–`;
  const numbers = row.stages.map((/** @type {any} */ one) => `${inWords(one.name)} ${duration(one.for_ms)}`).join(', ');
  return html`<span class="stages" role="img" aria-label=${numbers} title=${numbers}>${row.stages.map((/** @type {any} */ one) => html`<i key=${one.name} class=${`stage-${one.name}`} style=${{ flexGrow: one.for_ms }} />`)}</span>
    <small>mostly ${inWords(most.name)}: ${duration(most.for_ms)}</small>`;
}

/** @type {import('../lib/table.js').Column[]} */
const SLOW = [
  { key: 'at', label: 'When', value: (row) => row.at_ms, render: (row) => html`<${Ago} ms=${row.at_ms} />` },
  { key: 'total', label: 'Took', align: 'end', value: (row) => row.total_ms, render: (row) => duration(row.total_ms) },
  { key: 'stages', label: 'Stages', value: (row) => worst(row)?.name, render: (row) => html`<${Stages} row=${row} />` },
  { key: 'kind', label: 'Operation' },
  { key: 'path', label: 'Path', render: (row) => html`<${Path} of=${row.path} />` },
  { key: 'session', label: 'Session', render: (row) => html`<${Session} of=${row.session} />` },
  { key: 'address', label: 'Client', render: (row) => html`<${Address} of=${row.address} />` },
  { key: 'server', label: 'Server', align: 'end' },
];

/** @param {any} row */
const slowKey = (row) => `${row.server} ${row.at_ms} ${row.session} ${row.path?.slice(0, 99)}`;

/** @param {{span: string, go: import('../lib/route.js').Go}} props */
function Slow({ span, go }) {
  const asked = useMemo(() => `/slow${search({ since_ms: Math.round(serverNow()) - Number(span) })}`, [span]);
  const slow = usePages(asked, { every: 5000, keep: true });
  const [open, setOpen] = useState(/** @type {any} */ (null));
  return html`<section class="panel"><header class="row"><h2>Slow operations</h2>
      <${Choice} label="Time" of=${SPANS} value=${span} onPick=${(/** @type {string} */ since) => go({ since: since === HOUR ? null : since })} /></header>
    <${Loaded} of=${slow} rows=${6}>${(/** @type {any} */ data) => html`<${Silent} servers=${data.servers} />
      <p>${plural(data.count, 'operation')} took longer than ${duration(data.threshold_ms)}; the slowest are kept. Click one for the numbers of its <${Term} of="stages">stages</>.</p>
      <ul class="stage-names" aria-hidden="true">${Object.keys(STAGES).map((stage) => html`<li key=${stage}><i class=${`stage-${stage}`} />${inWords(stage)}</li>`)}</ul>
      <${Table} name="slow" caption="slow operations" rows=${data.items} columns=${SLOW} rowKey=${slowKey} sort="-total" json=${asked} more=${slow.more} truncated=${data.truncated} onOpen=${setOpen}
        empty=${html`<${Empty} title=${`No operation took longer than ${duration(data.threshold_ms)}.`}><p>Requests that do are listed here with the time of each stage.</p></>`} />`}</>
    ${open && html`<${Dialog} title=${`${open.kind}: ${duration(open.total_ms)}`} onClose=${() => setOpen(null)}>
      <p><${Path} of=${open.path} /></p><p><${Time} ms=${open.at_ms} /> at server ${open.server}</p>
      <table><thead><tr><th scope="col">Stage</th><th scope="col" class="end">Took</th><th scope="col"></th></tr></thead>
        <tbody>${open.stages.map((/** @type {any} */ one) => html`<tr key=${one.name}><th scope="row"><i class=${`stage-${one.name}`} /> ${inWords(one.name)}</th><td class="end">${duration(one.for_ms)}</td><td>${STAGES[one.name]}</td></tr>`)}</tbody></table></>`}
  </section>`;
}

/** @type {[string, string, (row: any) => any, (row: any) => string][]} */
const HOT = [
  ['reads', 'Reads by path', ({ path }) => html`<${Path} of=${path} />`, ({ path }) => path],
  ['writes', 'Writes by path', ({ path }) => html`<${Path} of=${path} />`, ({ path }) => path],
  ['addresses', 'Requests by client', ({ address }) => html`<${Address} of=${address} />`, ({ address }) => address],
  ['sessions', 'Requests by session', ({ session }) => html`<${Session} of=${session} />`, ({ session }) => session],
];

function Hot() {
  const hot = useGet('/hot', { every: 5000 });
  return html`<section class="panel"><header class="row"><h2>Hot paths and clients</h2><${Measure} reload=${hot.reload} /></header>
    <${Loaded} of=${hot} rows=${6}>${(/** @type {any} */ data) => html`<${Silent} servers=${data.servers} />
      <p>Over the last ${duration(data.span_ms)}. ${data.sampled_one_in > 1 ? `One of ${count(data.sampled_one_in)} requests was counted, so the numbers are estimates.` : 'Each request was counted.'}</p>
      <div class="hot">${HOT.map(([key, title, render, name]) => html`<section key=${key}><h3>${title}</h3><${Counts} rows=${data[key]} span_ms=${data.span_ms} render=${render} name=${name} title=${title} /></section>`)}</div>`}</>
  </section>`;
}

/** @param {{rows: any[], span_ms: number, render: (row: any) => any, name: (row: any) => string, title: string}} props */
function Counts({ rows, span_ms, render, name, title }) {
  if (rows.length === 0) return html`<${Empty} title=${`No ${title.toLowerCase().replace(/ by.*/, '')} in this time.`} />`;
  const most = Math.max(...rows.map((row) => row.count));
  return html`<table class="hot-rows"><thead class="unseen"><tr><th scope="col">${title}</th><th scope="col">Requests</th></tr></thead><tbody>${rows.map((row) => html`<tr key=${name(row)}><td>${render(row)}</td>
    <td><${Share} part=${row.count} whole=${most} label=${`${count(row.count)} requests`}>${rate((row.count * 1000) / span_ms)} per s</></td></tr>`)}</tbody></table>`;
}

/** @param {number} perSecond */
const rate = (perSecond) => (perSecond < 9.95 ? Number(perSecond.toFixed(1)) : count(Math.round(perSecond)));

/** Counts each request for half a minute. @param {{reload: () => void}} props */
function Measure({ reload }) {
  const isOperator = useIsOperator();
  const [left, set] = useState(0);
  const [error, fail] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (left === 0) return;
    const timer = setTimeout(() => {
      set(left - 1);
      if (left === 1) reload();
    }, 1000);
    return () => clearTimeout(timer);
  }, [left]);
  if (!isOperator) return null;
  const measure = () => post('/hot/measure', { seconds: MEASURE_SECONDS }).then(() => (fail(null), set(MEASURE_SECONDS)), fail);
  return html`<span role="status">${left > 0 && `Each request is counted: ${left} s left.`}</span>
    <button type="button" disabled=${left > 0} title="Counts each request instead of a sample, for half a minute" onClick=${measure}>Measure for ${MEASURE_SECONDS} s</button>
    ${error && html`<${ErrorBox} error=${error} />`}`;
}

/** @type {import('../lib/table.js').Column[]} */
const PAUSES = [
  { key: 'at', label: 'When', value: (row) => row.at_ms, render: (row) => html`<${Time} ms=${row.at_ms} />` },
  { key: 'server', label: 'Server', align: 'end' },
  { key: 'for', label: 'For', align: 'end', value: (row) => row.for_ms, render: (row) => duration(row.for_ms) },
  { key: 'kind', label: 'Cause', value: (row) => (row.kind === 'disk' ? 'A write to the disk took long' : row.kind === 'process' ? 'The process did not run' : row.kind) },
];

function Pauses() {
  const pauses = useGet('/pauses', { every: 10_000 });
  return html`<section class="panel"><h2>Pauses</h2><${Loaded} of=${pauses}>${(/** @type {any} */ data) => html`<${Silent} servers=${data.servers} />
    <${Table} name="pauses" caption="pauses" rows=${data.items} columns=${PAUSES} rowKey=${(/** @type {any} */ row) => `${row.server} ${row.at_ms} ${row.kind}`} sort="-at" json="/pauses" truncated=${data.truncated}
      empty=${html`<${Empty} title="No server stood still."><p>A pause of a process or of a disk that could end sessions is listed here.</p></>`} />`}</></section>`;
}
