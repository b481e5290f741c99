// How numbers, times and texts are written.

import { html, useEffect, useState } from './html.js';
import { serverNow } from './live.js';

/** A zxid with its parts, `0x10000000a (1:10)`. @param {string | null | undefined} text */
export function zxid(text) {
  if (!text) return '–';
  const number = BigInt(text);
  return `0x${number.toString(16)} (${number >> 32n}:${number & 0xffffffffn})`;
}

/** @param {number | null | undefined} number with commas: `12,345` */
export const count = (number) => (number === null || number === undefined ? '–' : number.toLocaleString('en-US'));

/** "1 znode", "2 znodes". @param {number} number @param {string} one @param {string} [many] */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** @param {number | null | undefined} bytes */
export function bytes(bytes) {
  if (bytes === null || bytes === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${unit > 0 && bytes < 9.95 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

const SPANS = /** @type {[number, string][]} */ ([[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1000, 's']]);

/** A time in words: `3 ms`, `12 s`, `4 min 10 s`, `2 d 3 h`. @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return `${ms > 0 && ms < 9.95 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 9950) return `${Number((ms / 1000).toFixed(1))} s`;
  const at = SPANS.findIndex(([span]) => ms >= span);
  const [span, unit] = SPANS[at];
  const first = Math.floor(ms / span);
  const [less, lessUnit] = SPANS[at + 1] ?? [0, ''];
  const rest = less && first < 20 ? Math.floor((ms % span) / less) : 0;
  return `${first} ${unit}${rest ? ` ${rest} ${lessUnit}` : ''}`;
}

/** `12 s ago`, `in 3 s`. @param {number} ms since 1970 @param {number} [now] */
export function ago(ms, now = serverNow()) {
  const past = now - ms;
  if (Math.abs(past) < 1000) return 'now';
  const words = duration(Math.floor(Math.abs(past) / 1000) * 1000);
  return past > 0 ? `${words} ago` : `in ${words}`;
}

/** `2026-11-24 10:53:12.414 UTC`. @param {number} ms since 1970 */
export const utc = (ms) => `${new Date(ms).toISOString().replace('T', ' ').slice(0, -1)} UTC`;
/** `10:53:12.414`. @param {number} ms since 1970 */
export const clock = (ms) => new Date(ms).toISOString().slice(11, 23);

// Control characters, and those that change the direction of text or cannot be seen.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text in which characters that cannot be seen are written as `\u202e`. @param {unknown} text */
export const escaped = (text) => String(text ?? '').replace(HIDDEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A text from outside (names, addresses, ids), escaped, and kept apart from the direction of its neighbours. @param {{of: unknown}} props */
export function Text({ of }) {
  const text = String(of ?? '');
  const parts = text.split(HIDDEN);
  if (parts.length === 1) return html`<bdi>${text}</bdi>`;
  const marks = [...text.matchAll(HIDDEN)];
  return html`<bdi>${parts.map((part, at) => html`${part}${marks[at] && html`<span class="escape">${escaped(marks[at][0])}</span>`}`)}</bdi>`;
}

/** Copies a text. `word` is written beside the sign. @param {{text: string | (() => string), what?: string, word?: string}} props */
export function Copy({ text, what = '', word }) {
  const [done, set] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => set(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async (/** @type {Event} */ event) => {
    event.stopPropagation();
    await navigator.clipboard?.writeText(typeof text === 'function' ? text() : text);
    set(true);
  };
  const label = done ? 'Copied' : `Copy ${escaped(what || text)}`;
  return html`<button type="button" class="copy ${done ? 'done' : ''} ${word ? 'worded' : ''}" onClick=${copy} aria-label=${label} title=${label}>
    <svg viewBox="0 0 16 16" aria-hidden="true">${done ? html`<path d="M3 8.5l3.5 3.5L13 4.5" />` : html`<path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />`}</svg>${word}
  </button>`;
}

/** An id, path or address, with a button to copy it. @param {{of: string | null | undefined, show?: any}} props */
export const Id = ({ of, show }) => (of ? html`<span class="id"><code>${show ?? html`<${Text} of=${of} />`}</code><${Copy} text=${of} /></span>` : html`–`);

/** A zxid with its parts and a button to copy it. @param {{of: string | null | undefined}} props */
export const Zxid = ({ of }) => html`<${Id} of=${of} show=${zxid(of)} />`;

/** @type {Set<() => void>} */
const clocks = new Set();
let timer = 0;

/** The time of the server, anew each second. */
export function useNow() {
  const [now, set] = useState(serverNow);
  useEffect(() => {
    const tick = () => set(serverNow());
    clocks.add(tick);
    timer ||= setInterval(() => document.hidden || clocks.forEach((one) => one()), 1000);
    return () => void clocks.delete(tick);
  }, []);
  return now;
}

/** "12 s ago", with the time in UTC as its title. @param {{ms: number | null | undefined}} props since 1970 */
export function Ago({ ms }) {
  const now = useNow();
  if (ms === null || ms === undefined) return html`–`;
  return html`<time datetime=${new Date(ms).toISOString()} title=${utc(ms)}>${ago(ms, now)}</time>`;
}

/** The time in UTC, with "12 s ago" at its side. @param {{ms: number | null | undefined}} props since 1970 */
export function Time({ ms }) {
  const now = useNow();
  if (ms === null || ms === undefined) return html`–`;
  return html`<time datetime=${new Date(ms).toISOString()}>${utc(ms).replace(/\.\d+/, '')} <small>${ago(ms, now)}</small></time>`;
}

/** A time of the length `ms`, in words. @param {{ms: number | null | undefined}} props */
export const Duration = ({ ms }) => html`<span title=${ms === null || ms === undefined ? '' : `${count(ms)} ms`}>${duration(ms)}</span>`;
