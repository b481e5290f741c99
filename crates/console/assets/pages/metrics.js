// Metrics: twelve small charts, of up to a day, to see whether now is different from before.

import { html, loadStyle, useMemo, useState } from '../lib/html.js';
import { search } from '../lib/api.js';
import { Chart } from '../lib/chart.js';
import { serverNow, useGet } from '../lib/live.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Ago, Text, Time, duration } from '../lib/words.js';
import { Choice } from './names.js';

loadStyle('./pages.css', import.meta.url);

/** @typedef {{server: number, name: string, unit: string, values: (number | null)[]}} Series */
/** @typedef {{step_ms: number, since_ms: number, series: Series[], marks: {at_ms: number, kind: string, sentence: string}[], servers?: any[]}} Metrics */

/** Title, names of the series, and how the values of several servers become one. @type {[string, string[], 'sum' | 'highest', boolean?][]} */
const CHARTS = [
  ['Operations per second', ['operations'], 'sum'], ['Latency', ['latency_p50', 'latency_p99'], 'highest'], ['Longest latency', ['latency_max'], 'highest', true],
  ['Outstanding requests', ['outstanding'], 'sum'], ['Time of a disk sync', ['sync_time'], 'highest'], ['Connections', ['connections'], 'sum'],
  ['Sessions', ['sessions'], 'highest'], ['Znodes', ['znodes'], 'highest'], ['Bytes of data', ['bytes'], 'highest'],
  ['Watches', ['watches'], 'sum'], ['Memory', ['memory'], 'sum'], ['Open descriptors', ['descriptors'], 'sum'],
];
const RANGES = /** @type {[string, string][]} */ ([['15min', '15 min'], ['1h', '1 h'], ['6h', '6 h'], ['24h', '24 h']]);
const MINUTE = 60_000;
/** @type {Record<string, number>} */
const SPANS = { '15min': 15 * MINUTE, '1h': 60 * MINUTE, '6h': 360 * MINUTE, '24h': 1440 * MINUTE };
/** More points than these are no longer seen in a small chart. */
const POINTS_MAX = 480;

/** @param {import('../lib/route.js').PageProps} props */
export default function MetricsPage({ query, go }) {
  const range = SPANS[query.range] ? query.range : '1h';
  const span = SPANS[range];
  // The same address for a quarter of an hour, so that old data need not be greyed at each answer.
  const since_ms = Math.floor(serverNow() / (15 * MINUTE)) * 15 * MINUTE - span;
  const asked = `/metrics${search({ since_ms })}`;
  const metrics = useGet(asked, { every: 10_000, keep: true });
  const view = query.server ?? 'all';
  const servers = useMemo(() => [...new Set((metrics.data?.series ?? []).map((/** @type {Series} */ one) => one.server))].sort(), [metrics.data]);
  return html`<header class="page-head"><h1>Metrics</h1>
      <span class="end"><a href="../metrics" target="_blank" rel="noopener">for Prometheus</a></span></header>
    <div class="toolbar"><${Choice} label="Time" of=${RANGES} value=${range} onPick=${(/** @type {string} */ next) => go({ range: next === '1h' ? null : next })} />
      ${servers.length > 1 && html`<span class="end"><${Choice} label="Servers" of=${[['all', 'Together'], ['each', 'Each'], ...servers.map((id) => [String(id), `Server ${id}`])]} value=${view}
        onPick=${(/** @type {string} */ next) => go({ server: next === 'all' ? null : next })} /></span>`}</div>
    <${Loaded} of=${metrics} rows=${12}>${(/** @type {Metrics} */ data) => html`<div class="stack"><${Silent} servers=${data.servers} /><${Charts} data=${data} span=${span} view=${view} /></div>`}</>`;
}

/** @param {{data: Metrics, span: number, view: string}} props */
function Charts({ data, span, view }) {
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  const shown = useMemo(() => prepare(data, span), [data, span]);
  if (data.series.every((one) => one.values.length < 2)) {
    return html`<${Empty} title="Nothing is measured yet."><p>The servers measure each ${duration(data.step_ms)} and keep a day in memory. Come back in a moment.</p></>`;
  }
  const since_ms = shown.since_ms;
  const missing = serverNow() - span + 2 * data.step_ms < since_ms;
  return html`${missing && html`<${Note} level="info" sentence="The servers remember less than this range, since they forget at a restart."><p>There are data since <${Time} ms=${since_ms} />.</p></>`}
    <${Marks} of=${data.marks.filter((mark) => mark.at_ms >= since_ms)} />
    <div class="charts">${CHARTS.map(([title, names, how, isLog]) => {
      const series = lines(shown.series, names, how, view);
      if (series.length === 0) return html`<section class="panel" key=${title}><h2>${title}</h2><${Empty} title="Not measured here." /></section>`;
      const unit = shown.series.find((one) => names.includes(one.name))?.unit ?? '';
      return html`<section class="panel" key=${title}><${Chart} title=${title} unit=${['ms', 'bytes'].includes(unit) ? unit : ''} since_ms=${since_ms} step_ms=${shown.step_ms} series=${series}
        marks=${data.marks} height=${132} isLog=${!!isLog} at=${at} onAt=${setAt} /></section>`;
    })}</div>
    <p><small>${view === 'all' && 'Together: counts of clients and of memory are sums over the servers; latencies, and what all servers have in common, are the highest of them. '}
      A point is ${duration(shown.step_ms)}. For longer times, let Prometheus read <code>/metrics</code> of each server.</small></p>`;
}

/** The last part of the data, of at most so many points. @param {Metrics} data @param {number} span */
function prepare({ since_ms, step_ms, series }, span) {
  const length = Math.max(0, ...series.map((one) => one.values.length));
  const wanted = Math.min(length, Math.ceil(span / step_ms));
  const each = Math.max(1, Math.ceil(wanted / POINTS_MAX));
  const first = length - Math.floor(wanted / each) * each;
  const cut = series.map((one) => ({ ...one, values: joined(one.values.slice(first), each, one.name.endsWith('max')) }));
  return { since_ms: since_ms + first * step_ms, step_ms: step_ms * each, series: cut };
}

/** @param {(number | null)[]} values @param {number} each @param {boolean} isHighest */
function joined(values, each, isHighest) {
  if (each === 1) return values;
  return Array.from({ length: Math.floor(values.length / each) }, (_, at) => {
    const part = values.slice(at * each, (at + 1) * each).filter((value) => value !== null);
    if (part.length === 0) return null;
    return isHighest ? Math.max(...part) : part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

/**
 * The lines of one chart.
 * @param {Series[]} all
 * @param {string[]} names
 * @param {'sum' | 'highest'} how
 * @param {string} view `all`, `each`, or a server's id
 */
function lines(all, names, how, view) {
  // With a line per server, only the last series of a chart is shown.
  const wanted = view === 'each' ? names.slice(-1) : names;
  return wanted.flatMap((name) => {
    const own = all.filter((one) => one.name === name && (view === 'all' || view === 'each' || String(one.server) === view));
    const short = name.replace(/^latency_/, '').replaceAll('_', ' ');
    if (view === 'each') return own.map((one) => ({ name: `server ${one.server}${names.length > 1 ? ` ${short}` : ''}`, values: one.values }));
    return own.length ? [{ name: short, values: merged(own.map((one) => one.values), how) }] : [];
  });
}

/** @param {(number | null)[][]} rows @param {'sum' | 'highest'} how */
function merged(rows, how) {
  if (rows.length === 1) return rows[0];
  // The rows end at the same time; a server that began later has fewer values.
  const length = Math.max(...rows.map((row) => row.length));
  return Array.from({ length }, (_, at) => {
    const known = rows.map((row) => row[at - length + row.length] ?? null).filter((value) => value !== null);
    if (known.length === 0) return null;
    return how === 'sum' ? known.reduce((sum, value) => sum + value, 0) : Math.max(...known);
  });
}

/** Elections and starts in this time; the charts have a mark at each. @param {{of: Metrics['marks']}} props */
function Marks({ of }) {
  if (of.length === 0) return null;
  return html`<ul class="marks" aria-label="Elections and starts">${[...of].reverse().slice(0, 8).map((mark) => html`<li key=${`${mark.at_ms} ${mark.sentence}`}><span class="badge ${mark.kind === 'election' ? 'critical' : 'muted'}">▼ ${mark.kind}</span>
    <small><${Ago} ms=${mark.at_ms} /></small> ${mark.kind === 'election' ? html`<a href="#/elections"><${Text} of=${mark.sentence} /></a>` : html`<${Text} of=${mark.sentence} />`}</li>`)}</ul>`;
}
