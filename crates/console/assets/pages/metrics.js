// Metrics: twelve small charts, of up to a day, to see whether now is different from before.

import { Ago, choice, duration, empty, html, loaded, Note, search, serverNow, Text, Time, useGet, useState } from './parts.js';
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
/** @param {PageProps} props */
export default function MetricsPage({ query, go }) {
  const range = SPANS[query.range] ? query.range : '1 h';
  const span = SPANS[range];
  // The same address for a minute, of no more than the range, for which the server has its finest steps.
  const since_ms = Math.ceil(serverNow() / MINUTE) * MINUTE - span;
  const metrics = useGet(`/metrics${search({ since_ms })}`, { every: 10_000, keep: true });
  // Data of a minute ago are not old here.
  const shown = metrics.data && !metrics.error ? { ...metrics, state: /** @type {const} */ ('ok') } : metrics;
  const view = query.server ?? 'together';
  const ids = [...new Set((metrics.data?.series ?? []).map((/** @type {Series} */ one) => `${one.server}`))].sort();
  return html`<header class="page-head"><h1>Metrics</h1><span class="end"><a href="../metrics" target="_blank" rel="noopener">for Prometheus</a></span></header>
    <div class="toolbar">${choice('Time', Object.keys(SPANS).map((name) => [name, name]), range, (next) => go({ range: next }))}
      <span class="end">${ids.length > 1 && choice('Servers', [['together', 'Together'], ['each', 'Each'], ...ids.map((id) => /** @type {[string, string]} */ ([id, `Server ${id}`]))], view, (next) => go({ server: next }))}</span></div>
    ${loaded(shown, (data) => html`<${Charts} data=${data} since=${since_ms} view=${view} />`)}`;
}

/** @param {{data: Metrics, since: number, view: string}} props */
function Charts({ data: { since_ms, step_ms, series, marks: all }, since, view }) {
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  if (series.every((one) => one.values.length < 2)) return empty('Nothing is measured yet.', `The servers measure each ${duration(step_ms)} and keep a day in memory. Come back in a moment.`);
  return html`${since_ms > since + 3 * step_ms && html`<${Note} level="info" sentence="The servers remember less than this range, as they forget at a restart."><p>There are data since <${Time} ms=${since_ms} />.</p></>`}
    ${marks(all.filter((mark) => mark.at_ms >= since_ms))}
    <div class="charts">${CHARTS.map(([title, names, how, isLog]) => {
      const unit = series.find((one) => names.includes(one.name))?.unit ?? '';
      const shown = lines(series, names, how, view);
      return html`<section class="panel" key=${title}>${shown.length === 0 ? html`<h2>${title}</h2>${empty('Not measured here.')}` : html`<${Chart} title=${title} unit=${['ms', 'bytes'].includes(unit) ? unit : ''}
        since_ms=${since_ms} step_ms=${step_ms} series=${shown} marks=${all} height=${132} isLog=${isLog} at=${at} onAt=${setAt} />`}</section>`;
    })}</div>
    <p><small>${view === 'together' && 'Together: what each server has of its own is summed; of latencies, and of what all have in common, the highest is shown. '}
      A point is ${duration(step_ms)}. For longer times, let Prometheus read <code>/metrics</code> of each server.</small></p>`;
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

/** @param {(number | null)[]} row */
const lastKnown = (row) => row.findLastIndex((value) => value !== null);
/** @param {(number | null)[][]} rows @param {'sum' | 'highest'} how */
const merged = (rows, how) => rows[0].map((_, at) => {
  // A server whose newest step is not over is no server without requests.
  if (how === 'sum' && rows.some((row) => at > lastKnown(row))) return null;
  const known = rows.map((row) => row[at] ?? null).filter((value) => value !== null);
  if (known.length === 0) return null;
  return how === 'sum' ? known.reduce((sum, value) => sum + value, 0) : Math.max(...known);
});

/** Elections and starts in this time; the charts have a mark at each. @param {Mark[]} of */
const marks = (of) => of.length > 0 && html`<ul class="paths">${of.slice(-8).reverse().map((mark) => html`<li key=${mark.at_ms + mark.sentence}><span class="badge ${mark.kind === 'election' && 'critical'}">▼ ${mark.kind}</span>${' '}
  <small><${Ago} ms=${mark.at_ms} /></small> <${Text} of=${mark.sentence} />${mark.kind === 'election' && html` <a href="#/elections">Why?</a>`}</li>`)}</ul>`;
