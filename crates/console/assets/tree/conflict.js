// Differences, and the choice when somebody else was faster.

import { html, useState } from '../lib/html.js';
import { Note } from '../lib/states.js';
import { ago, plural } from '../lib/words.js';
import { fromUtf8, hexDump, isReadable, lineEnds, same, utf8 } from './decoders/bytes.js';
import { isJson, layOutJson } from './decoders/layout.js';
import { diff } from './diff.js';

/** @import {Stat} from './types' */

const CONTEXT = 3;
const MOST_LINES = 2000;

/** Bytes as lines to compare: JSON laid out, text, or hex. @param {Uint8Array[]} all @returns {string[]} */
function comparable(...all) {
  const texts = all.map(utf8);
  if (texts.every((text) => isJson(text) || text === '')) return texts.map((text) => layOutJson(text ?? ''));
  if (texts.every((text) => isReadable(text))) return texts.map((text) => text ?? '');
  return all.map((bytes) => hexDump(bytes.subarray(0, 65_536)));
}

/** What changed from one value to another. @param {{before: Uint8Array, after: Uint8Array, label: string}} props */
export function Difference({ before, after, label }) {
  if (same(before, after)) return html`<p class="muted">The bytes are the same.</p>`;
  const [first, second] = comparable(before, after);
  const runs = diff(first, second);
  if (runs.every(({ kind }) => kind === ' ')) return html`<p class="muted">Only the layout of the JSON differs.</p>`;
  let left = MOST_LINES;
  return html`<pre class="diff" tabindex="0" role="region" aria-label=${label}>${runs.map(({ kind, lines }, at) => {
    const long = kind === ' ' && lines.length > 2 * CONTEXT + 1;
    const shown = (long ? [...lines.slice(0, at && CONTEXT), null, ...lines.slice(at === runs.length - 1 ? lines.length : -CONTEXT)] : lines).slice(0, Math.max(0, left));
    left -= shown.length;
    return shown.map((line) => (line === null ? html`<span class="gap">… ${plural(lines.length - 2 * CONTEXT, 'line')} as before</span>`
      : html`<span class=${kind === '+' ? 'added' : kind === '-' ? 'removed' : ''}>${kind === ' ' ? '  ' : `${kind} `}${line}</span>`));
  })}${left <= 0 && html`<span class="gap">… cut here</span>`}</pre>`;
}

/**
 * The value as it was read, mine, and theirs. Nothing is lost: mine stays until somebody decides.
 * @param {{base: Uint8Array, mine: Uint8Array, theirs: Uint8Array, stat: Stat, was: number, isBusy: boolean, save: (data: Uint8Array, version: number) => void,
 *   drop: () => void, back: () => void}} props
 */
export function Conflict({ base, mine, theirs, stat, was, isBusy, save, drop, back }) {
  const texts = [mine, theirs].map(utf8);
  const isText = [mine, theirs].every((bytes) => isReadable(utf8(bytes)) && lineEnds(utf8(bytes) ?? '') === 'lf');
  const [result, setResult] = useState(isText ? texts[0] ?? '' : '');
  const made = fromUtf8(result);
  return html`<div class="stack">
    <${Note} level="warning" sentence="Somebody changed this znode while you wrote: you read version ${was}, now it is version ${stat.version}, changed ${ago(stat.mtime_ms)}." way_out="Nothing is saved and nothing is lost. Decide what it shall be." />
    <div class="sides"><section><h3>What they changed</h3><${Difference} before=${base} after=${theirs} label="What they changed" /></section>
      <section><h3>What you changed</h3><${Difference} before=${base} after=${mine} label="What you changed" /></section></div>
    ${isText && html`<label class="field">Result<textarea class="mono" rows="10" spellcheck="false" value=${result} onInput=${(/** @type {any} */ event) => setResult(event.target.value)} /></label>
      <div class="row"><button type="button" onClick=${() => setResult(texts[0] ?? '')}>Take mine</button><button type="button" onClick=${() => setResult(texts[1] ?? '')}>Take theirs</button><button type="button" onClick=${() => setResult(utf8(base) ?? '')}>Take what it was</button></div>`}
    <div class="row">${isText
      ? html`<button type="button" class="primary" disabled=${isBusy || !made} onClick=${() => made && save(made, stat.version)}>Save the result over version ${stat.version}</button>`
      : html`<button type="button" class="primary" disabled=${isBusy} onClick=${() => save(mine, stat.version)}>Save mine over version ${stat.version}</button>`}
      <button type="button" onClick=${drop}>Keep theirs, discard mine</button><button type="button" onClick=${back}>Back to the editor</button></div>
  </div>`;
}
