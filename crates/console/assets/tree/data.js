// The data of a znode: views, and the editor.

import { get, post, search } from '../lib/api.js';
import { html, useEffect, useState } from '../lib/html.js';
import { ErrorBox, Loading, Note } from '../lib/states.js';
import { bytes as size, count, Text } from '../lib/words.js';
import { Conflict } from './conflict.js';
import { fromBase64, fromUtf8, hexDump, isReadable, lineEnds, toBase64, utf8 } from './decoders/bytes.js';
import { decode } from './decoders/decode.js';
import { javaItems } from './decoders/java.js';
import { jsonError, layOutJson, layOutXml } from './decoders/layout.js';
import { protobufItems } from './decoders/protobuf.js';
import { FORMATS } from './decoders/unpack.js';

/** @import {Decoded, Item, Refusal, Znode} from './types' */
/** What somebody is writing. @typedef {{base: Uint8Array, version: number, how: 'text' | 'json' | 'base64' | 'file', text: string, file: Uint8Array | null}} Draft */

const FIRST = 65_536;
const CHUNK = 1 << 20;
const MOST_DRAWN = 262_144;
/** The standard of jute.maxbuffer. */
const MOST_SAVED = 1_048_575;

const VIEWS = /** @type {Record<string, string>} */ ({
  known: 'Meaning', text: 'Text', json: 'JSON', xml: 'XML', java: 'Java object', protobuf: 'Protobuf', hex: 'Hex', base64: 'Base64',
});

/** Texts that are not saved yet, by path: they stay while one looks elsewhere. @type {Map<string, Draft>} */
const drafts = new Map();

/** @param {string} path @param {number} from @param {number} length */
async function load(path, from, length) {
  const answer = await get(`/tree/data${search({ path, from: from || null, length })}`, { quiet: true });
  return { ...answer, bytes: fromBase64(answer.data) ?? new Uint8Array() };
}

/** All bytes of one version. @param {string} path */
async function loadAll(path) {
  const first = await load(path, 0, CHUNK);
  const bytes = new Uint8Array(first.length);
  bytes.set(first.bytes);
  for (let at = first.bytes.length; at < first.length; ) {
    const part = await load(path, at, CHUNK);
    if (part.mzxid !== first.mzxid || !part.bytes.length) return loadAll(path);
    bytes.set(part.bytes, at);
    at += part.bytes.length;
  }
  return { ...first, bytes };
}

/** @param {{node: Znode, mayWrite: boolean, reload: () => void, query: Record<string, string>, go: import('../lib/route.js').Go}} props */
export function DataTab({ node, mayWrite, reload, query, go }) {
  const { path } = node;
  const [loaded, set] = useState(/** @type {{bytes: Uint8Array, length: number, version: number} | null} */ (null));
  const [error, fail] = useState(/** @type {any} */ (null));
  const [wantsAll, wantAll] = useState(false);
  const isWhole = !!loaded && loaded.bytes.length === loaded.length;
  useEffect(() => {
    let isOver = false;
    (wantsAll ? loadAll(path) : load(path, 0, FIRST)).then((answer) => !isOver && (set(answer), fail(null)), (reason) => !isOver && fail(reason));
    return () => void (isOver = true);
  }, [node.stat.mzxid, wantsAll]);
  const edits = mayWrite && node.rights.write && (!!query.edit || drafts.has(path));
  useEffect(() => {
    if (edits) wantAll(true);
  }, [edits]);
  const close = (/** @type {boolean} */ saved) => {
    drafts.delete(path);
    go({ edit: null }, { replace: true });
    if (saved) reload();
  };
  if (error) return html`<${ErrorBox} error=${error} retry=${reload} />`;
  if (!loaded || (edits && !isWhole)) return html`<${Loading} rows=${4} />`;
  if (edits) return html`<${Editor} path=${path} bytes=${loaded.bytes} version=${loaded.version} close=${close} />`;
  if (!loaded.length) return html`<p class="muted">This znode has no data.</p>`;
  return html`<${Views} path=${path} bytes=${loaded.bytes} isWhole=${isWhole} query=${query} go=${go} />
    ${!isWhole && html`<p class="row"><button type="button" onClick=${() => wantAll(true)}>Load all ${size(loaded.length)}</button><small>These are the first ${size(loaded.bytes.length)}, as they are.</small></p>`}`;
}

/** @param {{path: string, bytes: Uint8Array, isWhole: boolean, query: Record<string, string>, go: import('../lib/route.js').Go}} props */
function Views({ path, bytes, isWhole, query, go }) {
  const [decoded, set] = useState(/** @type {Decoded | null} */ (null));
  const how = query.unpack ?? 'auto';
  useEffect(() => {
    let isOver = false;
    const first = { bytes, layers: [], known: null, stopped: null, views: isReadable(utf8(bytes.subarray(0, bytes.length - 4))) ? ['text', 'hex'] : ['hex', 'text'], guess: '' };
    if (isWhole) void decode(path, bytes, how === 'auto' || how === 'none' || how in FORMATS ? how : 'auto').then((decoded) => !isOver && set(decoded));
    else set(first);
    return () => void (isOver = true);
  }, [bytes, how]);
  if (!decoded) return html`<${Loading} />`;
  const view = decoded.views.includes(query.view) ? query.view : decoded.views[0];
  return html`<div class="stack">
    <div class="toolbar"><div class="row views" role="group" aria-label="View">${decoded.views.map((name) => html`<button type="button" key=${name} aria-pressed=${name === view} onClick=${() => go({ view: name }, { replace: true })}>${VIEWS[name]}</button>`)}</div>
      ${isWhole && html`<label class="end"><span class="muted">Unpack</span> <select value=${how} onChange=${(/** @type {any} */ event) => go({ unpack: event.target.value === 'auto' ? null : event.target.value, view: null }, { replace: true })}>
        <option value="auto">if it looks packed</option><option value="none">never</option>${Object.keys(FORMATS).map((name) => html`<option key=${name}>${name}</option>`)}</select></label>`}
    </div>
    ${decoded.layers.length > 0 && html`<p class="muted">Unpacked: ${decoded.layers.map(({ format, from, to }) => `${format}, ${size(from)} to ${size(to)}`).join('; then ')}.</p>`}
    ${decoded.stopped && html`<${Note} level="warning" sentence=${decoded.stopped} />`}
    <${View} view=${view} decoded=${decoded} path=${path} />
  </div>`;
}

/** @param {{view: string, decoded: Decoded, path: string}} props */
function View({ view, decoded, path }) {
  const { bytes, known } = decoded;
  const text = utf8(bytes);
  switch (view) {
    case 'known':
      return html`<p><strong>${known?.form}</strong>. <${Text} of=${known?.sentence} /></p><${Items} items=${known?.facts ?? []} />`;
    case 'java':
      return html`<${Items} items=${javaItems(bytes)} />`;
    case 'protobuf':
      return html`<p class="muted">Without the schema names of fields are not known: each has its number and wire type.</p><${Items} items=${protobufItems(bytes) ?? []} />`;
    case 'json':
      return html`<${Shown} text=${layOutJson(text ?? '')} />`;
    case 'xml':
      return html`<${Shown} text=${layOutXml(text) ?? ''} />`;
    case 'hex':
      return html`<${Shown} text=${hexDump(bytes.subarray(0, MOST_DRAWN / 4))} rest=${bytes.length > MOST_DRAWN / 4 ? path : ''} />`;
    case 'base64':
      return html`<${Shown} text=${toBase64(bytes).replace(/.{76}/g, '$&\n')} />`;
    default:
      return html`${text === null && html`<${Note} level="info" sentence="These bytes are not UTF-8: what is no text shows as �. The text view does not save them." />`}<${Shown} text=${text ?? new TextDecoder().decode(bytes)} />`;
  }
}

/** A long text, cut. @param {{text: string, rest?: string}} props */
function Shown({ text, rest }) {
  const isCut = rest || text.length > MOST_DRAWN;
  return html`<pre tabindex="0" role="region" aria-label="Data">${text.length > MOST_DRAWN ? text.slice(0, MOST_DRAWN) : text}</pre>${isCut && html`<p><small>The view is cut here. Download the data to see all.</small></p>`}`;
}

/** @param {{items: Item[], depth?: number}} props */
function Items({ items, depth = 0 }) {
  const [shown, show] = useState(200);
  return html`<ul class="items ${depth ? '' : 'first'}">${items.slice(0, shown).map((item, at) => html`<${Branch} key=${at} item=${item} depth=${depth} />`)}
    ${items.length > shown && html`<li><button type="button" onClick=${() => show(shown * 5)}>More: ${count(items.length - shown)} left</button></li>`}</ul>`;
}

/** @param {{item: Item, depth: number}} props */
function Branch({ item: { label, value, children }, depth }) {
  const [isOpen, toggle] = useState(depth < 3);
  const line = html`<b><${Text} of=${label} /></b> ${value !== undefined && html`<code><${Text} of=${value.length > 4096 ? `${value.slice(0, 4096)} …` : value} /></code>`}`;
  if (!children?.length) return html`<li>${line}</li>`;
  return html`<li><details open=${isOpen} onToggle=${(/** @type {any} */ event) => toggle(event.target.open)}><summary>${line}</summary>${isOpen && html`<${Items} items=${children} depth=${depth + 1} />`}</details></li>`;
}

/** The bytes that a draft would save, or why it cannot. @param {Draft} draft @returns {{bytes?: Uint8Array, problem?: string}} */
export function bytesOf({ base, how, text, file }) {
  if (how === 'file') return file ? { bytes: file } : { problem: 'Choose a file.' };
  if (how === 'base64') {
    const bytes = fromBase64(text);
    return bytes ? { bytes } : { problem: 'This is not base64.' };
  }
  if (how === 'json') {
    const error = jsonError(text);
    if (error) return { problem: `This is not JSON: ${error}` };
  }
  const isCrlf = lineEnds(utf8(base) ?? '') === 'crlf';
  const bytes = fromUtf8(isCrlf ? text.replaceAll('\n', '\r\n') : text);
  return bytes ? { bytes } : { problem: 'This text cannot be written as UTF-8: it has half a character in it.' };
}

/** The text of bytes in a way to edit them; `null` if they cannot be edited so without a change. @param {Uint8Array} bytes @param {Draft['how']} how */
export function textFor(bytes, how) {
  if (how === 'base64') return toBase64(bytes).replace(/.{76}/g, '$&\n');
  if (how === 'file') return '';
  const text = utf8(bytes);
  if (text === null || lineEnds(text) === 'mixed' || text.includes('\0')) return null;
  return text.replaceAll('\r\n', '\n');
}

/** @param {{path: string, bytes: Uint8Array, version: number, close: (saved: boolean) => void}} props */
function Editor({ path, bytes, version, close }) {
  const [draft, setDraft] = useState(() => {
    const known = drafts.get(path);
    if (known) return known;
    const text = textFor(bytes, 'text');
    const isJson = text !== null && /^\s*[[{]/.test(text) && jsonError(text) === null;
    const how = text === null ? 'base64' : isJson ? 'json' : 'text';
    return /** @type {Draft} */ ({ base: bytes, version, how, text: textFor(bytes, how), file: null });
  });
  const [error, fail] = useState(/** @type {any} */ (null));
  const [isBusy, busy] = useState(false);
  const change = (/** @type {Partial<Draft>} */ part) => {
    const next = { ...draft, ...part };
    drafts.set(path, next);
    setDraft(next);
  };
  const { bytes: made, problem } = bytesOf(draft);
  const turn = (/** @type {Draft['how']} */ how) => {
    const text = textFor(made ?? draft.base, how);
    if (text === null) fail({ sentence: 'These bytes cannot be edited as text without a change of what you do not see: they are not UTF-8, or their line ends are mixed. Use base64, or a file.', code: 'NOT_TEXT' });
    else change({ how, text });
  };
  const save = async (/** @type {Uint8Array} */ data, /** @type {number} */ version) => {
    busy(true);
    fail(null);
    try {
      await post('/tree/set', { path, data: toBase64(data), version });
      close(true);
    } catch (reason) {
      fail(reason);
    }
    busy(false);
  };
  const theirs = error?.code === 'BADVERSION' && /** @type {Refusal} */ (error.answer).theirs;
  if (theirs) {
    return html`<${Conflict} base=${draft.base} mine=${made ?? draft.base} theirs=${fromBase64(theirs.data) ?? new Uint8Array()} stat=${theirs.stat} was=${draft.version} isBusy=${isBusy}
      save=${save} drop=${() => close(true)} back=${() => fail(null)} />`;
  }
  const pick = async (/** @type {any} */ event) => {
    const file = event.target.files[0];
    if (file) change({ file: new Uint8Array(await file.arrayBuffer()) });
  };
  return html`<form class="stack" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (made) void save(made, draft.version); }}>
    <div class="row views" role="group" aria-label="Edit as">${Object.entries({ text: 'Text', json: 'JSON', base64: 'Base64', file: 'File' }).map(([how, title]) => html`<button type="button" key=${how} aria-pressed=${how === draft.how} onClick=${() => turn(/** @type {Draft['how']} */ (how))}>${title}</button>`)}
      ${draft.how === 'json' && !problem && html`<button type="button" class="plain" onClick=${() => change({ text: layOutJson(draft.text) })}>Lay out</button>`}</div>
    ${error && html`<${ErrorBox} error=${error} />`}
    ${draft.how === 'file'
      ? html`<label class="field">The file whose bytes become the data<input type="file" onChange=${pick} /></label>`
      : html`<textarea class="mono" aria-label="Data" spellcheck="false" rows="16" value=${draft.text} onInput=${(/** @type {any} */ event) => change({ text: event.target.value })} />`}
    <div class="row"><button class="primary" disabled=${!made || isBusy}>Save</button><button type="button" onClick=${() => close(false)}>Discard</button>
      <small role="status">${problem ?? html`${count(made?.length)} bytes, byte for byte; from version ${draft.version}`}</small></div>
    ${made && made.length > MOST_SAVED && html`<${Note} level="warning" sentence="This is larger than 1,048,575 bytes, the standard of jute.maxbuffer: the server or other clients may refuse it." />`}
  </form>`;
}

