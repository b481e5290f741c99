// An election as lanes: a line for each server, time to the right, phases as bands, moments as marks.

import { html, useId, useRef } from '../../lib/html.js';
import { useWidth } from '../../lib/width.js';
import { clock, duration, escaped } from '../../lib/words.js';

/** @typedef {import('./record.js').Election} Election */

const TALL = 54;
const HEAD = 22;
export const PHASES = ['detect', 'elect', 'discover', 'synchronise', 'first_commit'];

/** `first commit`. @param {string} phase */
export const phaseInWords = (phase) => phase.replace('_', ' ');

/** The moments at which a phase begins, by kind. @type {Record<string, string[]>} */
const BEGINS = { elect: ['loss', 'start'], discover: ['decide'], synchronise: ['lead', 'follow'], first_commit: ['serving', 'synced'] };

/**
 * Places on the axis of time. Each moment gets some room of its own, so that those of one millisecond are seen apart; the rest of the
 * room is given by time.
 * @param {Election} election
 * @param {number} left
 * @param {number} inner
 */
export function scaleOf(election, left, inner) {
  const { moments, lanes } = election;
  const bands = lanes.flatMap((lane) => lane.bands);
  const times = [...moments.map((moment) => moment.at_ms), ...bands.flatMap((band) => [band.from_ms, band.to_ms ?? band.from_ms]), election.total_for_ms ?? 0];
  const from = times.reduce((a, b) => Math.min(a, b), 0);
  const to = times.reduce((a, b) => Math.max(a, b), from + 1);
  const gap = Math.min(18, (inner * .6) / (moments.length + 1));
  const rest = inner - gap * (moments.length + 1);
  const byTime = (/** @type {number} */ ms) => left + ((ms - from) / (to - from)) * rest;
  const places = moments.map((moment, at) => byTime(moment.at_ms) + gap * (at + 1));
  const before = (/** @type {number} */ ms) => byTime(ms) + gap * moments.filter((moment) => moment.at_ms < ms).length;
  /** The end of a server's phase: at the moment that ended it, if there is one. */
  const boundary = (/** @type {number} */ server, /** @type {number} */ ms, /** @type {string} */ next) => {
    const own = moments.map((moment, at) => ({ moment, at })).filter(({ moment }) => moment.server === server && moment.at_ms === ms);
    const exact = own.filter(({ moment }) => BEGINS[next]?.includes(moment.kind));
    const found = next === 'elect' ? exact[0] : exact.at(-1);
    return found ? places[found.at] : own.length > 0 ? places[own[own.length - 1].at] : before(ms);
  };
  return { from, to, places, before, boundary, right: left + inner };
}

/** @param {number} from @param {number} to */
function ticks(from, to) {
  const rough = (to - from) / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough);
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, at) => from + at * step);
}

/** Whom a server votes for after a moment, by its own record. @param {Election} election @param {number} server @param {number} step */
function voteAt({ moments }, server, step) {
  return moments.slice(0, step + 1).findLast(({ changed }) => changed?.voter === server)?.changed?.candidate ?? null;
}

/**
 * @param {{election: Election, step: number, onStep: (step: number) => void, why: (server: number) => string}} props
 * `why`: why a server has no record
 */
export function Lanes({ election, step, onStep, why }) {
  const [box, width] = useWidth(800);
  const id = useId();
  const isHeld = useRef(false);
  const { lanes, moments } = election;
  const left = 84;
  const scale = scaleOf(election, left, Math.max(80, width - left - 12));
  const tall = HEAD + lanes.length * TALL;
  const middle = (/** @type {number} */ server) => HEAD + lanes.findIndex((lane) => lane.server === server) * TALL + TALL / 2;
  const pick = (/** @type {any} */ event) => {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    onStep(scale.places.reduce((best, place, index) => (Math.abs(place - at) < Math.abs(scale.places[best] - at) ? index : best), 0));
  };
  const hold = (/** @type {any} */ event) => {
    isHeld.current = true;
    event.currentTarget.setPointerCapture(event.pointerId);
    pick(event);
  };
  const cursor = scale.places[step];
  let free = -Infinity;
  return html`<div class="lanes" ref=${box}>
    <svg width=${width} height=${tall + 24} viewBox="0 0 ${width} ${tall + 24}" role="img" aria-labelledby=${id} onPointerDown=${hold}
      onPointerMove=${(/** @type {any} */ event) => isHeld.current && pick(event)} onPointerUp=${() => (isHeld.current = false)} onPointerCancel=${() => (isHeld.current = false)}>
      <title id=${id}>${`${lanes.length} servers, ${moments.length} moments in ${duration(scale.to - scale.from)}. The moments are in the table below.`}</title>
      <defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" x2="0" y1="0" y2="8" /></pattern></defs>
      ${ticks(scale.from, scale.to).map((time) => {
        const x = scale.before(time);
        if (x < free) return null;
        free = x + 58;
        return html`<g key=${time}><line class="grid" x1=${x} x2=${x} y1=${HEAD} y2=${tall} /><text x=${x} y=${tall + 16} text-anchor="middle">${duration(time)}</text></g>`;
      })}
      ${lanes.map((lane) => html`<${LaneRow} key=${lane.server} ...${{ lane, election, scale, step, left, middle: middle(lane.server), why: why(lane.server) }} />`)}
      ${moments.map((moment, at) => html`<${Mark} key=${at} ...${{ moment, x: scale.places[at], y: middle(moment.server), target: moment.changed ? middle(moment.changed.candidate) : 0, isNow: at === step, isPast: at <= step }} />`)}
      ${cursor !== undefined && html`<g class="now"><line x1=${cursor} x2=${cursor} y1=${HEAD - 4} y2=${tall} /><path d=${`M${cursor - 6} ${HEAD - 12}h12v5l-6 6-6-6z`} />
        <text x=${Math.min(Math.max(cursor, left + 44), width - 52)} y=${HEAD - 13} text-anchor="middle">${clock(election.began_ms + moments[step].at_ms)}</text></g>`}
    </svg></div>`;
}

/** @param {string} text @param {number} most */
const shortened = (text, most) => (escaped(text).length <= most ? escaped(text) : `${escaped(text).slice(0, Math.max(0, most - 2))} …`);

/** @param {{lane: import('./record.js').Lane, election: Election, scale: ReturnType<typeof scaleOf>, step: number, left: number, middle: number, why: string}} props */
function LaneRow({ lane, election, scale, step, left, middle, why }) {
  const { server, known, bands } = lane;
  const vote = voteAt(election, server, step);
  const isWinner = server === election.winner;
  return html`<g class="lane">
    <text class="who" x="0" y=${middle - 3}>Server ${server}${isWinner ? ' ★' : ''}</text>
    <text x="0" y=${middle + 12}>${vote === null ? '' : vote === server ? 'for itself' : `for server ${vote}`}</text>
    <line class="base" x1=${left} x2=${scale.right} y1=${middle} y2=${middle} />
    ${!known && html`<rect class="unknown" x=${left} y=${middle - 15} width=${scale.right - left} height="30" rx="4" /><text x=${left + 10} y=${middle + 4}>${shortened(why, (scale.right - left - 20) / 6.2)}</text>`}
    ${bands.map((band, at) => {
      const from = band.phase === 'detect' || at === 0 && band.phase !== 'elect' ? scale.before(band.from_ms) : scale.boundary(server, band.from_ms, band.phase);
      const next = PHASES[PHASES.indexOf(band.phase) + 1];
      const to = band.to_ms === null ? scale.right : scale.boundary(server, band.to_ms, next);
      const wide = Math.max(2, to - from);
      const name = phaseInWords(band.phase);
      return html`<g key=${at} class="band ${band.phase}"><title>${`${name}: ${band.to_ms === null ? 'goes on' : duration(band.to_ms - band.from_ms)}`}</title>
        <rect x=${from} y=${middle - 15} width=${wide} height="30" rx="3" class=${band.to_ms === null ? 'open' : ''} />
        ${wide > name.length * 6.4 + 8 && html`<text x=${from + 5} y=${middle - 4}>${name}</text>`}</g>`;
    })}
  </g>`;
}

/** A mark for each kind, by its shape. @type {Record<string, string>} */
const SHAPES = {
  loss: 'M-5-5L5 5M5-5L-5 5', start: 'M-4-5L5 0-4 5z', vote: 'M0-4a4 4 0 100 8 4 4 0 000-8z', change: 'M0-6.5L6.5 0 0 6.5-6.5 0z', decide: 'M-5-5H5V5H-5z',
  lead: 'M0-6l5 3v6l-5 3-5-3v-6z', serving: 'M0-6l5 3v6l-5 3-5-3v-6z', synced: 'M-5 0l3.5 4L5-4',
};
const DOT = 'M0-2.5a2.5 2.5 0 100 5 2.5 2.5 0 000-5z';

/** @param {{moment: import('./record.js').Moment, x: number, y: number, target: number, isNow: boolean, isPast: boolean}} props */
function Mark({ moment, x, y, target, isNow, isPast }) {
  const base = y + 6;
  const crosses = moment.changed && moment.changed.candidate !== moment.server && target > HEAD;
  const end = target + (target > y ? -16 : 16);
  return html`<g class="moment ${moment.kind} ${isNow ? 'is-now' : ''} ${isPast ? '' : 'later'}"><title>${escaped(moment.sentence)}</title>
    ${crosses && html`<path class="ballot" d=${`M${x} ${base}L${x} ${end}M${x - 4} ${end + (target > y ? -6 : 6)}L${x} ${end}L${x + 4} ${end + (target > y ? -6 : 6)}`} />`}
    <path transform=${`translate(${x} ${base})`} d=${SHAPES[moment.kind] ?? DOT} /></g>`;
}
