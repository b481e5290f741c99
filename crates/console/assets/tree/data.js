// The data of a znode, and the editor.

import { get, post, search } from '../lib/api.js';
import { html, useEffect, useState } from '../lib/html.js';
import { ErrorBox, Loading, Note } from '../lib/states.js';
import { bytes as size, count } from '../lib/words.js';
import { Conflict } from './conflict.js';
import { fromBase64, toBase64 } from './decoders/bytes.js';
import { jsonError, layOutJson } from './decoders/layout.js';
import { bytesOf, seenOf, textFor } from './draft.js';
import { Button, Choice, FileField, typed, useAct } from './parts.js';
import { Views } from './views.js';

/** @import {Draft, How} from './draft.js' */
/** @import {Seen} from './types' */

const FIRST = 65_536;
const ALL = 16 << 20;
/** The standard of jute.maxbuffer. */
const MOST_SAVED = 1_048_575;

/** What is not saved yet, by path: it stays while one looks elsewhere. @type {Map<string, Draft>} */
export const drafts = new Map();

/** @param {import('./node.js').Panel} panel */
export function DataTab({ path, node, mayWrite, reload, query, set }) {
  const [loaded, take] = useState(/** @type {(Seen & {bytes: Uint8Array, length: number}) | null} */ (null));
  const [error, fail] = useState(/** @type {any} */ (null));
  const [wantsAll, wantAll] = useState(false);
  const edits = mayWrite && node.rights.write && (!!query.edit || drafts.has(path));
  const isWhole = loaded?.bytes.length === loaded?.length;
  useEffect(() => {
    let isOver = false;
    const receive = (/** @type {any} */ answer) => {
      if (isOver) return;
      take({ ...answer, bytes: fromBase64(answer.data) });
      fail(null);
    };
    get(`/tree/data${search({ path, length: wantsAll || edits ? ALL : FIRST })}`, { quiet: true }).then(receive, (reason) => isOver || fail(reason));
    return () => void (isOver = true);
  }, [node.stat.mzxid, wantsAll || edits]);
  const close = (/** @type {boolean} */ saved) => {
    drafts.delete(path);
    set({ edit: null });
    if (saved) reload();
  };
  if (error) return html`<${ErrorBox} error=${error} retry=${reload} />`;
  if (!loaded || (edits && !isWhole)) return html`<${Loading} rows=${4} />`;
  if (edits) return html`<${Editor} path=${path} bytes=${loaded.bytes} seen=${seenOf(loaded)} close=${close} />`;
  if (!loaded.length) return html`<p class="muted">This znode has no data.</p>`;
  return html`<${Views} path=${path} bytes=${loaded.bytes} isWhole=${isWhole} query=${query} set=${set} />
    ${!isWhole && html`<p class="row"><${Button} on=${() => wantAll(true)}>Load all ${size(loaded.length)}</><small>These are the first ${size(loaded.bytes.length)}, as they are.</small></p>`}`;
}

/** @param {{path: string, bytes: Uint8Array, seen: Seen, close: (saved: boolean) => void}} props */
function Editor({ path, bytes, seen, close }) {
  const [draft, setDraft] = useState(() => {
    const text = textFor(bytes, 'text');
    const how = text === null ? 'base64' : /^\s*[[{]/.test(text) && !jsonError(text) ? 'json' : 'text';
    return drafts.get(path) ?? /** @type {Draft} */ ({ base: bytes, seen, how, text: textFor(bytes, how), file: null });
  });
  const [refusal, refuse] = useState('');
  const [isBack, goBack] = useState(false);
  const [error, isBusy, run] = useAct();
  const { base, how, text } = draft;
  const { bytes: made, problem } = bytesOf(draft);
  const change = (/** @type {Partial<Draft>} */ part) => {
    const next = { ...draft, ...part };
    drafts.set(path, next);
    setDraft(next);
  };
  const turn = (/** @type {How} */ how) => {
    const text = textFor(made ?? base, how);
    refuse(text === null ? 'These bytes cannot be edited as text without a change that you do not see: they are not UTF-8, or their line ends are mixed. Use base64, or a file.' : '');
    if (text !== null) change({ how, text });
  };
  const save = (/** @type {Uint8Array} */ data, /** @type {Seen} */ seen) => {
    goBack(false);
    run(async () => {
      await post('/tree/set', { path, data: toBase64(data), ...seen });
      close(true);
    })();
  };
  const theirs = error?.code === 'BADVERSION' && !isBack && error.answer.theirs;
  if (theirs) {
    return html`<${Conflict} base=${base} mine=${made ?? base} theirs=${fromBase64(theirs.data)} stat=${theirs.stat} was=${draft.seen.version} isAnew=${!!error.answer.created_anew} isBusy=${isBusy} save=${save} drop=${() => close(true)} back=${() => goBack(true)} />`;
  }
  return html`<form class="stack" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (made) save(made, draft.seen); }}>
    <${Choice} label="Edit as" names=${[['text', 'Text'], ['json', 'JSON'], ['base64', 'Base64'], ['file', 'File']]} is=${how} set=${turn}>${how === 'json' && !problem && html`<${Button} class="plain" on=${() => change({ text: layOutJson(text) })}>Lay out</>`}</>
    ${refusal && html`<${Note} level="warning" sentence=${refusal} />`}${error && html`<${ErrorBox} error=${error} />`}
    ${how === 'file' ? html`<${FileField} label="The file whose bytes become the data" of=${(/** @type {Uint8Array | null} */ file) => change({ file })} />`
      : html`<textarea class="mono" aria-label="Value" spellcheck=${false} rows="16" value=${text} onInput=${typed((text) => change({ text }))} />`}
    <div class="row"><button class="primary" disabled=${!made || isBusy}>Save</button><${Button} on=${() => close(false)}>Discard</>
      <small role="status">${problem ?? `${count(made?.length)} bytes, byte for byte; from version ${draft.seen.version}`}</small></div>
    ${made && made.length > MOST_SAVED && html`<${Note} level="warning" sentence="This is larger than 1,048,575 bytes, the standard of jute.maxbuffer: the server or other clients may refuse it." />`}
  </form>`;
}
