// Line charts: one line per server, marks, gaps where a value is not known, and the same numbers as a table.

import { html, useId, useState } from './html.js';
import { useWidth } from './width.js';
import { bytes, clock, count, duration, utc } from './words.js';

/** @typedef {{name: string, values: (number | null)[]}} Series */
/** @typedef {{at_ms: number, sentence: string}} Mark */

const LEFT = 52;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 20;

/** A value in its unit: `ms`, `bytes`, or a word. @param {number | null | undefined} value @param {string} unit */
export function inUnit(value, unit) {
  if (value === null || value === undefined) return '–';
  if (unit === 'ms') return duration(value);
  if (unit === 'bytes' || unit === 'B') return bytes(value);
  const short = value >= 1e6 ? `${Number((value / 1e6).toPrecision(3))}M` : value >= 1e4 ? `${Number((value / 1e3).toPrecision(3))}k` : count(Number(value.toPrecision(3)));
  return unit === '' || unit === 'count' ? short : `${short} ${unit}`;
}

/** Round numbers from 0 (or, by powers of ten, from 1) up to the highest value. @param {number} top @param {boolean} isLog */
function ticksOf(top, isLog) {
  if (isLog) return Array.from({ length: Math.max(1, Math.ceil(Math.log10(Math.max(top, 10)))) + 1 }, (_, at) => 10 ** at);
  const rough = Math.max(top, Number.MIN_VALUE) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  return Array.from({ length: Math.max(1, Math.ceil(top / step - 1e-9)) + 1 }, (_, at) => at * step);
}

const STEPS = [60, 300, 600, 1800, 3600, 7200, 14_400, 21_600, 43_200].map((seconds) => seconds * 1000);

/** Times for the axis, at round minutes or hours. @param {number} from @param {number} to @param {number} most */
function timesOf(from, to, most) {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 86_400_000;
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, at) => first + at * step);
}

/** A path with gaps. @param {(number | null)[]} values @param {(at: number) => number} x @param {(value: number) => number} y */
function pathOf(values, x, y) {
  let text = '';
  let isDrawing = false;
  values.forEach((value, at) => {
    if (value === null) {
      isDrawing = false;
      return;
    }
    const isAlone = !isDrawing && (values[at + 1] ?? null) === null;
    text += `${isDrawing ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}${isAlone ? 'h.1' : ''}`;
    isDrawing = true;
  });
  return text;
}

/**
 * A chart. All series have the same times: `since_ms`, and from there each `step_ms`. `at` and `onAt` share the pointer's place among
 * charts. `isLog`: the axis of values by powers of ten, which is written.
 * @param {{title: any, unit: string, since_ms: number, step_ms: number, series: Series[], marks?: Mark[], height?: number, isLog?: boolean,
 *   at?: number | null, onAt?: (at: number | null) => void}} props
 */
export function Chart({ title, unit, since_ms, step_ms, series, marks = [], height = 150, isLog = false, at = null, onAt }) {
  const [box, width] = useWidth();
  const [own, setOwn] = useState(/** @type {number | null} */ (null));
  const id = useId();
  const length = Math.max(2, ...series.map(({ values }) => values.length));
  const until = since_ms + (length - 1) * step_ms;
  const highest = series.reduce((top, { values }) => values.reduce((/** @type {number} */ max, value) => Math.max(max, value ?? 0), top), 0);
  const ticks = ticksOf(highest || 1, isLog);
  const top = ticks[ticks.length - 1];
  const inner = Math.max(40, width - LEFT - RIGHT);
  const x = (/** @type {number} */ index) => LEFT + (index / (length - 1)) * inner;
  const xOf = (/** @type {number} */ ms) => x((ms - since_ms) / step_ms);
  const tall = height - TOP - BOTTOM;
  const y = (/** @type {number} */ value) => TOP + tall * (1 - (isLog ? Math.log10(Math.max(value, 1)) / Math.log10(top) : value / top));
  const picked = own ?? at;
  const point = (/** @type {any} */ event) => {
    const left = event.currentTarget.getBoundingClientRect().left;
    const index = Math.min(length - 1, Math.max(0, Math.round(((event.clientX - left - LEFT) / inner) * (length - 1))));
    setOwn(index);
    onAt?.(index);
  };
  const leave = () => {
    setOwn(null);
    onAt?.(null);
  };
  const seen = marks.filter((mark) => mark.at_ms >= since_ms && mark.at_ms <= until);
  return html`<figure class="chart" ref=${box} aria-labelledby=${id}>
    <figcaption id=${id}><strong>${title}</strong> <small>${unit}${isLog ? ', by powers of ten' : ''}${picked === null ? '' : ` · ${clock(since_ms + picked * step_ms).slice(0, 8)} UTC`}</small></figcaption>
    <svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label=${summary(series, unit)} onPointerMove=${point} onPointerLeave=${leave}>
      ${ticks.map((tick) => html`<g key=${tick}><line class="grid" x1=${LEFT} x2=${LEFT + inner} y1=${y(tick)} y2=${y(tick)} /><text x=${LEFT - 6} y=${y(tick) + 4} text-anchor="end">${inUnit(tick, unit)}</text></g>`)}
      ${timesOf(since_ms, until, Math.max(2, inner / 70)).map((time) => html`<text key=${time} x=${xOf(time)} y=${height - 4} text-anchor="middle">${clock(time).slice(0, 5)}</text>`)}
      ${seen.map((mark) => html`<g key=${mark.at_ms} class="mark"><title>${`${utc(mark.at_ms)}: ${mark.sentence}`}</title><line x1=${xOf(mark.at_ms)} x2=${xOf(mark.at_ms)} y1=${TOP} y2=${TOP + tall} /><path d="M${xOf(mark.at_ms) - 4} ${TOP - 6}h8l-4 6z" /></g>`)}
      ${series.map(({ name, values }, number) => html`<path key=${name} class="line s${number % 6}" d=${pathOf(values, x, y)} />`)}
      ${picked !== null && html`<line class="cursor" x1=${x(picked)} x2=${x(picked)} y1=${TOP} y2=${TOP + tall} />
        ${series.map(({ name, values }, number) => (values[picked] ?? null) !== null && html`<circle key=${name} class="dot s${number % 6}" cx=${x(picked)} cy=${y(values[picked] ?? 0)} r="3" />`)}`}
    </svg>
    <ul class="legend">${series.map(({ name, values }, number) => html`<li key=${name}><span class="key s${number % 6}" aria-hidden="true" />${name} <b>${inUnit(picked === null ? last(values) : values[picked], unit)}</b></li>`)}</ul>
    <details><summary>Numbers of ${title}</summary><${Numbers} ...${{ title, unit, since_ms, step_ms, series, length }} /></details>
  </figure>`;
}

/** @param {(number | null)[]} values */
const last = (values) => values.findLast((value) => value !== null) ?? null;

/** @param {Series[]} series @param {string} unit */
function summary(series, unit) {
  return series.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: no values`;
    return `${name}: ${inUnit(last(values), unit)} now, at most ${inUnit(known.reduce((a, b) => Math.max(a, b), 0), unit)}`;
  }).join('; ');
}

/** At most 60 rows: each is the last of its span. @param {{title: any, unit: string, since_ms: number, step_ms: number, series: Series[], length: number}} props */
function Numbers({ title, unit, since_ms, step_ms, series, length }) {
  const each = Math.ceil(length / 60);
  const rows = Array.from({ length: Math.ceil(length / each) }, (_, at) => length - 1 - at * each).filter((at) => at >= 0);
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${`Numbers of ${title}`}><table><thead><tr><th scope="col">UTC</th>${series.map(({ name }) => html`<th scope="col" key=${name} class="end">${name}</th>`)}</tr></thead>
    <tbody>${rows.map((at) => html`<tr key=${at}><td>${clock(since_ms + at * step_ms).slice(0, 8)}</td>${series.map(({ name, values }) => html`<td key=${name} class="end">${inUnit(values[at], unit)}</td>`)}</tr>`)}</tbody></table></div>`;
}
