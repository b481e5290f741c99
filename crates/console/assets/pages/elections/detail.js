// One election: the sentence of a moment, the lanes, the ballot boxes, and steps through them.

import { html, useEffect, useState } from '../../lib/html.js';
import { useKeys } from '../../lib/keys.js';
import { Note } from '../../lib/states.js';
import { Table } from '../../lib/table.js';
import { Term } from '../../lib/terms.js';
import { clock, count, duration, Text, Time } from '../../lib/words.js';
import { BallotBoxes } from './ballots.js';
import { Lanes, phaseInWords } from './lanes.js';
import { Comparison } from './why.js';

/** @typedef {import('./record.js').Election} Election */
/** @typedef {import('./record.js').Elections} Elections */
/** @typedef {import('./record.js').Moment} Moment */

/** The moment at which an election opens: the one that decided. @param {Election} election */
export function firstStep({ moments, under_way }) {
  if (under_way) return moments.length - 1;
  const change = moments.findIndex(({ kind, rule }) => kind === 'change' && rule);
  const decision = moments.findIndex(({ kind }) => kind === 'decide');
  return change >= 0 ? change : decision >= 0 ? decision : Math.max(0, moments.length - 1);
}

/** Why a server has no record, in a sentence. @param {Elections} record @param {number} id */
export function whyUnknown({ servers }, id) {
  const server = servers.find((one) => one.id === id);
  if (server?.reason) return server.reason;
  if (server?.knows_since_ms) return `It knows nothing before ${clock(server.knows_since_ms)}.`;
  return 'It has no record of this election.';
}

/** Milliseconds to read a sentence. @param {string} sentence */
const readingTime = (sentence) => Math.max(1500, sentence.split(' ').length * 270);

/** @param {{record: Elections, election: Election, query: import('../../lib/route.js').Query, go: import('../../lib/route.js').Go}} props */
export function Detail({ record, election, query, go }) {
  const [isPlaying, play] = useState(false);
  const { moments, lanes } = election;
  const last = moments.length - 1;
  const step = Math.min(last, Math.max(0, query.at === undefined ? firstStep(election) : Number(query.at) || 0));
  const toStep = (/** @type {number} */ at) => go({ at: Math.min(last, Math.max(0, at)) }, { replace: true });
  const byHand = (/** @type {number} */ at) => {
    play(false);
    toStep(at);
  };
  const togglePlay = () => {
    if (!isPlaying && step === last) toStep(0);
    play(!isPlaying);
  };
  useEffect(() => {
    if (!isPlaying) return;
    if (step >= last) return play(false);
    const timer = setTimeout(() => toStep(step + 1), readingTime(moments[step].sentence));
    return () => clearTimeout(timer);
  }, [isPlaying, step]);
  const back = () => byHand(step - 1);
  const on = () => byHand(step + 1);
  useKeys('One moment back', { ArrowLeft: back, h: back });
  useKeys('One moment on', { ArrowRight: on, l: on });
  useKeys('Play', { ' ': togglePlay });
  const why = (/** @type {number} */ id) => whyUnknown(record, id);
  const unknown = lanes.filter(({ known }) => !known);
  return html`<article class="stack" aria-label="Election ${election.number}">
    <${Summary} election=${election} />
    ${unknown.length > 0 && html`<${Note} level="info" sentence=${`There is no record of ${unknown.map(({ server }) => `server ${server}`).join(' and ')}. What is shown of it is what the others heard.`} />`}
    ${election.left_out > 0 && html`<${Note} level="info" sentence=${`${count(election.left_out)} moments of the middle were left out, by the servers or here.`} />`}
    ${moments.length === 0 ? html`<p class="muted">No moment of this election is known.</p>` : html`
    <section class="panel player" aria-label="Step by step">
      <${Sentence} election=${election} step=${step} isPlaying=${isPlaying} />
      <${Lanes} election=${election} step=${step} onStep=${byHand} why=${why} />
      <div class="toolbar steps">
        <button type="button" aria-label="One moment back" disabled=${step === 0} onClick=${back}>←</button>
        <button type="button" class="primary" onClick=${togglePlay}>${isPlaying ? 'Pause' : 'Play'}</button>
        <button type="button" aria-label="One moment on" disabled=${step === last} onClick=${on}>→</button>
        <input type="range" min="0" max=${last} value=${step} aria-label="Moment" aria-valuetext=${`${step + 1} of ${last + 1}: server ${moments[step].server}: ${moments[step].sentence}`}
          onInput=${(/** @type {any} */ event) => byHand(Number(event.target.value))} />
        <small>${step + 1} of ${last + 1}</small>
      </div>
      <p><small>Time runs to the right, and is stretched where moments are close together. × loses its leader, ○ votes, ◆ changes its vote (the arrow: to whom), ■ elects, ⬡ leads, ✓ has the leader’s history.</small></p>
    </section>
    <section class="stack tight" aria-label="Ballot boxes"><h2><${Term} of="ballot box">Ballot boxes</> <small>after this moment</small></h2><${BallotBoxes} election=${election} voters=${record.voters} step=${step} why=${why} /></section>
    <${WhyNot} ...${{ record, election, query, go }} />
    <${Moments} election=${election} onOpen=${byHand} step=${step} />`}
  </article>`;
}

/** @param {{election: Election}} props */
function Summary({ election }) {
  const { phases, summary, began_ms, total_for_ms, under_way } = election;
  const known = phases.filter(({ for_ms }) => for_ms !== null);
  const sum = known.reduce((total, { for_ms }) => total + Math.max(for_ms ?? 0, .5), 0);
  return html`<section class="panel" aria-label="Summary">
    ${under_way && html`<p><span class="badge warning">under way</span> There is no leader yet. The page follows.</p>`}
    ${summary.map((sentence, at) => html`<p key=${at} class=${at === 0 ? 'sentence' : ''}><${Text} of=${sentence} /></p>`)}
    <p class="facts-line muted"><span><${Text} of=${election.cause} /></span><span><${Time} ms=${began_ms} /></span>${total_for_ms !== null && html`<span>${duration(total_for_ms)} in all</span>`}</p>
    ${known.length > 0 && html`<div class="phases" aria-hidden="true">${known.map(({ name, for_ms }) => html`<span key=${name} class="swatch ${name}" style=${{ flexGrow: Math.max(for_ms ?? 0, .5) / sum }} />`)}</div>`}
    ${phases.length > 0 && html`<dl class="phase-times">${phases.map(({ name, for_ms }) => html`<div key=${name}><dt><span class="swatch ${name}" aria-hidden="true" /><${Term} of=${name}>${phaseInWords(name)}</></dt><dd>${for_ms === null ? html`<span class="muted">${name === 'detect' ? 'not known' : 'not yet'}</span>` : duration(for_ms)}</dd></div>`)}</dl>`}
  </section>`;
}

const RULES = /** @type {Record<string, [string, string]>} */ ({ round: ['round', 'the later round counts'], epoch: ['epoch', 'the later epoch wins'], zxid: ['zxid', 'the later zxid wins'], id: ['candidate', 'the larger server id wins'] });

/** @param {{election: Election, step: number, isPlaying: boolean}} props */
function Sentence({ election, step, isPlaying }) {
  const moment = election.moments[step];
  const rule = RULES[moment.rule ?? ''];
  return html`<div class="moment-text" aria-live=${isPlaying ? 'off' : 'polite'}>
    <p class="muted">${clock(election.began_ms + moment.at_ms)} UTC · ${duration(moment.at_ms)} after the begin · <strong>server ${moment.server}</strong></p>
    <p class="sentence"><${Marked} moment=${moment} /></p>
    <p class="muted">${rule ? html`Decided by the rule: <${Term} of=${rule[0]}>${rule[1]}</>.` : ' '}</p></div>`;
}

const WORDS = /\b(epoch|zxid|round|quorum|voters?)\b/gi;

/** The sentence, with the rule underlined, and with words that unfold. @param {{moment: Moment}} props */
function Marked({ moment: { sentence, highlights } }) {
  const seen = new Set();
  const words = (/** @type {string} */ text) => text.split(WORDS).map((part, at) => {
    const term = part.toLowerCase().replace(/^voters$/, 'voter');
    if (at % 2 === 0 || seen.has(term)) return html`<${Text} key=${at} of=${part} />`;
    seen.add(term);
    return html`<${Term} key=${at} of=${term}>${part}</>`;
  });
  /** @type {{text: string, isRule: boolean}[]} */
  let parts = [{ text: sentence, isRule: false }];
  for (const mark of highlights.filter(Boolean)) {
    parts = parts.flatMap((part) => {
      const at = part.isRule ? -1 : part.text.indexOf(mark);
      return at < 0 ? [part] : [{ text: part.text.slice(0, at), isRule: false }, { text: mark, isRule: true }, { text: part.text.slice(at + mark.length), isRule: false }];
    });
  }
  return html`${parts.map(({ text, isRule }, at) => (isRule ? html`<u class="rule" key=${at}>${words(text)}</u>` : html`<span key=${at}>${words(text)}</span>`))}`;
}

/** @param {{record: Elections, election: Election, query: import('../../lib/route.js').Query, go: import('../../lib/route.js').Go}} props */
function WhyNot({ record, election, query, go }) {
  const { winner, lanes } = election;
  const others = record.voters.filter((id) => id !== winner);
  if (winner === null || others.length === 0) return null;
  const other = others.find((id) => String(id) === query.why);
  const isUnknown = lanes.some(({ server, known }) => server === other && !known);
  return html`<section class="panel" aria-label="Comparison"><div class="row"><h2>Why server ${winner}?</h2>${others.map((id) => html`<button type="button" key=${id} aria-pressed=${id === other} onClick=${() => go({ why: id === other ? null : id }, { replace: true })}>Why not server ${id}?</button>`)}</div>
    ${other !== undefined && html`<${Comparison} election=${election} other=${other} why=${isUnknown ? whyUnknown(record, other) : null} />`}</section>`;
}

/** @param {{election: Election, step: number, onOpen: (step: number) => void}} props */
function Moments({ election, step, onOpen }) {
  const [isOpen, set] = useState(false);
  const rows = election.moments.map((moment, at) => ({ ...moment, at }));
  const columns = [
    { key: 'at', label: '#', align: /** @type {const} */ ('end'), value: (/** @type {any} */ row) => row.at + 1 },
    { key: 'time', label: 'UTC', value: (/** @type {any} */ row) => clock(election.began_ms + row.at_ms) },
    { key: 'at_ms', label: 'ms', align: /** @type {const} */ ('end') },
    { key: 'server', label: 'Server', align: /** @type {const} */ ('end') },
    { key: 'sentence', label: 'Sentence', wide: true },
    { key: 'rule', label: 'Rule' },
  ];
  return html`<details class="panel" onToggle=${(/** @type {any} */ event) => set(event.target.open)}><summary>All ${count(rows.length)} moments as a table</summary>
    ${isOpen && html`<${Table} name="moments" caption="Moments" rows=${rows} rowKey=${(/** @type {any} */ row) => row.at} columns=${columns} selected=${step} onOpen=${(/** @type {any} */ row) => onOpen(row.at)} />`}</details>`;
}
