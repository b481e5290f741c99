// Metrics: twelve small charts, of up to a day, to see whether now is different from before.

import { Ago, Note, Text, Time, choice, duration, empty, html, loaded, search, serverNow, useGet, useMemo, useState } from './parts.js';
import { Chart } from '../lib/chart.js';

/** Title, names of the series, and how the values of several servers become one. @type {[string, string[], 'sum' | 'highest', boolean?][]} */
const CHARTS = [
  ['Operations per second', ['operations'], 'sum'], ['Latency', ['latency_p50', 'latency_p99'], 'highest'], ['Longest latency', ['latency_max'], 'highest', true],
  ['Outstanding requests', ['outstanding'], 'sum'], ['Time of a disk sync', ['sync_time'], 'highest'], ['Connections', ['connections'], 'sum'],
  ['Sessions', ['sessions'], 'highest'], ['Znodes', ['znodes'], 'highest'], ['Bytes of data', ['bytes'], 'highest'],
  ['Watches', ['watches'], 'sum'], ['Memory', ['memory'], 'sum'], ['Open descriptors', ['descriptors'], 'sum'],
];
const MINUTE = 60_000;
/** @type {Record<string, number>} */
const SPANS = { '15 min': 15 * MINUTE, '1 h': 60 * MINUTE, '6 h': 360 * MINUTE, '24 h': 1440 * MINUTE };
/** More points than these are no longer seen in a small chart. */
const POINTS_MAX = 480;

/** @param {PageProps} props */
export default function MetricsPage({ query, go }) {
  const range = SPANS[query.range] ? query.range : '1 h';
  const span = SPANS[range];
  // The same address for a quarter of an hour, so that the data need not be greyed at each answer.
  const since_ms = Math.floor(serverNow() / (15 * MINUTE)) * 15 * MINUTE - span;
  const metrics = useGet(`/metrics${search({ since_ms })}`, { every: 10_000, keep: true });
  const view = query.server ?? 'together';
  const ids = [...new Set((metrics.data?.series ?? []).map((/** @type {Series} */ one) => String(one.server)))].sort();
  return html`<header class="page-head"><h1>Metrics</h1><span class="end"><a href="../metrics" target="_blank" rel="noopener">for Prometheus</a></span></header>
    <div class="toolbar">${choice('Time', Object.keys(SPANS).map((name) => [name, name]), range, (next) => go({ range: next }))}
      <span class="end">${ids.length > 1 && choice('Servers', [['together', 'Together'], ['each', 'Each'], ...ids.map((id) => /** @type {[string, string]} */ ([id, `Server ${id}`]))], view, (next) => go({ server: next }))}</span></div>
    ${loaded(metrics, (data) => html`<${Charts} data=${data} span=${span} view=${view} />`)}`;
}

/** @param {{data: Metrics, span: number, view: string}} props */
function Charts({ data, span, view }) {
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  const { since_ms, step_ms, series } = useMemo(() => prepare(data, span), [data, span]);
  if (data.series.every((one) => one.values.length < 2)) return empty('Nothing is measured yet.', `The servers measure each ${duration(data.step_ms)} and keep a day in memory. Come back in a moment.`);
  return html`${serverNow() - span + 3 * step_ms < since_ms && html`<${Note} level="info" sentence="The servers remember less than this range, as they forget at a restart."><p>There are data since <${Time} ms=${since_ms} />.</p></>`}
    ${marks(data.marks.filter((mark) => mark.at_ms >= since_ms))}
    <div class="charts">${CHARTS.map(([title, names, how, isLog]) => {
      const unit = series.find((one) => names.includes(one.name))?.unit ?? '';
      const shown = lines(series, names, how, view);
      return html`<section class="panel" key=${title}>${shown.length === 0 ? html`<h2>${title}</h2>${empty('Not measured here.')}` : html`<${Chart} title=${title} unit=${['ms', 'bytes'].includes(unit) ? unit : ''}
        since_ms=${since_ms} step_ms=${step_ms} series=${shown} marks=${data.marks} height=${132} isLog=${isLog} at=${at} onAt=${setAt} />`}</section>`;
    })}</div>
    <p><small>${view === 'together' && 'Together: what each server has of its own is summed; of latencies, and of what all have in common, the highest is shown. '}
      A point is ${duration(step_ms)}. For longer times, let Prometheus read <code>/metrics</code> of each server.</small></p>`;
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
 * @param {string} view `together`, `each`, or a server's id
 */
function lines(all, names, how, view) {
  // With a line per server, only the last series of a chart is shown.
  const wanted = view === 'each' ? names.slice(-1) : names;
  return wanted.flatMap((name) => {
    const own = all.filter((one) => one.name === name && (['together', 'each'].includes(view) || String(one.server) === view));
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

/** Elections and starts in this time; the charts have a mark at each. @param {Mark[]} of */
const marks = (of) => of.length > 0 && html`<ul class="paths">${of.slice(-8).reverse().map((mark) => html`<li key=${mark.at_ms + mark.sentence}><span class="badge ${mark.kind === 'election' && 'critical'}">▼ ${mark.kind}</span>${' '}
  <small><${Ago} ms=${mark.at_ms} /></small> <${Text} of=${mark.sentence} />${mark.kind === 'election' && html` <a href="#/elections">Why?</a>`}</li>`)}</ul>`;
