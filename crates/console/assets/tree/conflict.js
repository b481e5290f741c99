// Differences, and the choice when somebody else was faster.

import { html, useState } from '../lib/html.js';
import { Note } from '../lib/states.js';
import { ago, plural } from '../lib/words.js';
import { fromUtf8, hexDump, isReadable, lineEnds, same, utf8 } from './decoders/bytes.js';
import { isJson, layOutJson } from './decoders/layout.js';
import { diff } from './diff.js';
import { seenOf } from './draft.js';
import { Button, typed } from './parts.js';

const CONTEXT = 3;
const MOST_LINES = 2000;

/** Bytes as lines to compare: JSON laid out, text, or hex. @param {Uint8Array[]} all @returns {string[]} */
function comparable(...all) {
  const texts = all.map(utf8);
  if (texts.every((text) => text === '' || isJson(text))) return texts.map((text) => layOutJson(text ?? ''));
  if (texts.every(isReadable)) return texts.map((text) => text ?? '');
  return all.map((bytes) => hexDump(bytes.subarray(0, 65_536)));
}

/** What changed from one value to another. @param {{before: Uint8Array, after: Uint8Array, label: string}} props */
export function Difference({ before, after, label }) {
  if (same(before, after)) return html`<p class="muted">The bytes are the same.</p>`;
  const [first, second] = comparable(before, after);
  const runs = diff(first, second);
  if (runs.length < 2) return html`<p class="muted">Only the layout of the JSON differs.</p>`;
  const lines = runs.flatMap(({ kind, lines }, at) => {
    const drawn = lines.map((line) => html`<span class=${kind === '+' ? 'added' : kind === '-' ? 'removed' : ''}>${kind} ${line}</span>`);
    if (kind !== ' ' || lines.length < 3 * CONTEXT) return drawn;
    const [above, below] = [at ? CONTEXT : 0, at < runs.length - 1 ? CONTEXT : 0];
    const gap = html`<span class="gap">… ${plural(lines.length - above - below, 'line')} as before</span>`;
    return [...drawn.slice(0, above), gap, ...drawn.slice(drawn.length - below)];
  });
  return html`<pre class="diff" tabindex="0" role="region" aria-label=${label}>${lines.slice(0, MOST_LINES)}${lines.length > MOST_LINES && html`<span class="gap">… cut here</span>`}</pre>`;
}

/**
 * The value as it was read, mine, and theirs. Nothing is lost: mine stays until somebody decides.
 * @param {{base: Uint8Array, mine: Uint8Array, theirs: Uint8Array, stat: import('./types').Stat, was: number, isAnew: boolean, isBusy: boolean,
 *   save: (data: Uint8Array, seen: import('./types').Seen) => void,
 *   drop: () => void, back: () => void}} props
 */
export function Conflict({ base, mine, theirs, stat, was, isAnew, isBusy, save, drop, back }) {
  const [own, other] = [mine, theirs].map((bytes) => utf8(bytes) ?? '');
  const isText = [mine, theirs].every((bytes) => isReadable(utf8(bytes))) && lineEnds(own + other) === 'lf';
  const [text, setText] = useState(own);
  const result = isText ? fromUtf8(text) : mine;
  const version = `version ${stat.version}`;
  const what = isAnew ? `This znode was deleted while you wrote, and created anew: you read version ${was} of the old one, this is ${version} of another` : `Somebody changed this znode while you wrote: you read version ${was}, now it is ${version}`;
  return html`<div class="stack">
    <${Note} level="warning" sentence="${what}, changed ${ago(stat.mtime_ms)}." way_out="Nothing is saved and nothing is lost. Decide what it shall be." />
    <div class="sides">${[['What they changed', theirs], ['What you changed', mine]].map(([label, after]) => html`<section><h2>${label}</h2><${Difference} before=${base} after=${after} label=${label} /></section>`)}</div>
    ${isText && html`<label class="field">Result<textarea class="mono" rows="10" spellcheck=${false} value=${text} onInput=${typed(setText)} /></label>
      <div class="row">${[['mine', own], ['theirs', other], ['what it was', utf8(base) ?? '']].map(([name, value]) => html`<${Button} on=${() => setText(value)}>Take ${name}</>`)}</div>`}
    <div class="row"><${Button} class="primary" disabled=${isBusy || !result} on=${() => result && save(result, seenOf(stat))}>Save ${isText ? 'the result' : 'mine'} over ${version}</>
      <${Button} on=${drop}>Keep theirs, discard mine</><${Button} on=${back}>Back to the editor</></div>
  </div>`;
}
