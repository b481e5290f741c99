// The acts on a znode: create, copy, move, delete, export.

import { get, post, search, url } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { html, useEffect, useState } from '../lib/html.js';
import { ErrorBox, Note } from '../lib/states.js';
import { bytes as size, count, Id, plural, Text } from '../lib/words.js';
import { fromBase64, fromUtf8, isReadable, toBase64, utf8 } from './decoders/bytes.js';
import { seenOf } from './draft.js';
import { Button, FileField, typed, useAct } from './parts.js';
import { Planned, Progress } from './plan.js';
import { join, nameOf, parentOf } from './rows.js';

/** @import {Panel} from './node.js' */
/** @import {Was} from './past.js' */

const MOST_EXPORTED = 2000;
const MOST_EXPORTED_BYTES = 8 << 20;

/** @param {Panel} panel */
export function Acts(panel) {
  const { node, mayWrite, edit, path } = panel;
  // The node is read again and again: a dialog is about the one that was seen when it opened.
  const [{ shown, seen }, show] = useState({ shown: '', seen: node });
  const close = () => show({ shown: '', seen: node });
  const about = { ...panel, node: seen, close };
  const isFixed = /^\/(zookeeper(\/.*)?)?$/.test(path);
  const isEphemeral = node.kind === 'ephemeral';
  const button = (/** @type {string} */ name, /** @type {string} */ title, style = '') => html`<${Button} class=${style} on=${() => show({ shown: name, seen: node })}>${title}</>`;
  return html`<div class="row tree-acts">
    ${mayWrite && html`${node.rights.write && html`<${Button} on=${edit}>Edit</>`}${node.rights.create && !isEphemeral && button('create', 'Create child')}${!isFixed && !isEphemeral && html`${button('copy', 'Copy')}${button('move', 'Move')}`}
      ${!isFixed && node.may_be_deleted !== false && button('delete', 'Delete', 'danger')}`}
    ${node.rights.read && html`<a class="button" href=${url(`/tree/data${search({ path, download: 1 })}`)} download>Download data</a>`}${button('export', 'Export JSON')}
    ${shown === 'create' && html`<${Create} ...${about} />`}
    ${shown === 'export' && html`<${Export} path=${path} close=${close} />`}
    ${(shown === 'copy' || shown === 'move') && html`<${Copying} ...${about} isMove=${shown === 'move'} />`}
    ${shown === 'delete' && html`<${seen.stat.num_children ? DeleteAll : Delete} ...${about} />`}
  </div>`;
}

/** The end of each form. @param {{error: any, close: () => void, children: any}} props */
const Foot = ({ error, close, children }) => html`${error && html`<${ErrorBox} error=${error} />`}<div class="row">${children}<${Button} on=${close}>Cancel</></div>`;

const MODES = Object.entries({
  persistent: 'persistent: it stays until somebody deletes it', persistent_sequential: 'persistent, sequential: its name gets ten digits',
  container: 'container: deleted some time after its last child', ttl: 'TTL: deleted if not changed for a time, without children', ttl_sequential: 'TTL, sequential',
});

/** @param {Omit<Panel, 'node'> & {node: Panel['node'] | null, close: () => void, name?: string, data?: Uint8Array, was?: Was}} props
 *  `name` and `data`: what it is to be, as a proposal; `was`: what it was before it was deleted. What cannot be as it was is to be chosen. */
export function Create({ path, name: first = '', data: proposed, was, open, changed, close, node }) {
  const [name, setName] = useState(first);
  const [mode, setMode] = useState(was ? was.mode : 'persistent');
  const [ttl, setTtl] = useState(String(was?.ttl_ms ?? 60_000));
  const [text, setText] = useState('');
  const [file, setFile] = useState(proposed ?? null);
  const [who, setWho] = useState(was ? (was.acl ? 'was' : '') : 'anyone');
  const [parents, setParents] = useState(false);
  const [error, isBusy, run] = useAct();
  const data = file ?? fromUtf8(text);
  const all = { perms: 'cdrwa' };
  const acl = { anyone: [{ scheme: 'world', id: 'anyone', ...all }], mine: [{ scheme: 'auth', id: '', ...all }], parent: node?.acl, was: was?.acl }[who];
  const save = run(async () => {
    const made = await post('/tree/create', { path: join(path, name), data: toBase64(data ?? new Uint8Array()), mode, ttl_ms: mode.startsWith('ttl') ? Number(ttl) : null, acl, parents });
    changed(path);
    close();
    open(made.path);
  });
  return html`<${Dialog} title=${was ? 'Create the znode again' : 'Create a znode'} onClose=${close}><form class="stack" onSubmit=${save}>
    ${was?.note && html`<${Note} level="warning" sentence=${was.note} way_out="Choose below how it is to come back, or leave it." />`}
    <label class="field"><span>Name below <${Text} of=${path} /></span><input required autofocus value=${name} onInput=${typed(setName)} pattern=${parents ? '[^\\/].*' : '[^\\/]+'} spellcheck=${false} /></label>
    <label class="field">Kind<select required value=${mode} onChange=${typed(setMode)}>${was && !was.mode && html`<option value="">choose …</option>`}${MODES.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}
      <option disabled>ephemeral: it would belong to the console’s own session, and is refused</option></select></label>
    ${mode.startsWith('ttl') && html`<label class="field">Time to live in ms<input type="number" min="1" required value=${ttl} onInput=${typed(setTtl)} /></label>`}
    ${file ? html`<p class="row"><span>Data: ${count(file.length)} bytes</span><${Button} on=${() => setFile(null)}>Write them instead</></p>`
      : html`<label class="field">Value<textarea class="mono" rows="4" spellcheck=${false} value=${text} onInput=${typed(setText)} /></label><${FileField} label="or from a file" of=${setFile} />`}
    <label class="field">ACL<select required value=${who} onChange=${typed(setWho)}>${was && (was.acl ? html`<option value="was">as it was: ${inWords(was.acl)}</option>` : html`<option value="">choose …</option>`)}<option value="anyone">anyone may do everything (world:anyone)</option><option value="mine">only the identities you have signed in with</option>${node?.acl && html`<option value="parent">the same as its parent’s</option>`}</select></label>
    <label class="row"><input type="checkbox" checked=${parents} onChange=${() => setParents(!parents)} /> create missing parents (the name may have slashes)</label>
    <${Foot} error=${error} close=${close}><button class="primary" disabled=${isBusy || !data}>Create</button></></form></>`;
}

/** @param {import('./types').Acl[]} acl */
const inWords = (acl) => acl.map(({ scheme, id, perms }) => `${scheme}:${id}:${perms}`).join(', ');

/** @param {Panel & {close: () => void}} props */
function Delete({ path, node: { stat, owner }, open, changed, close }) {
  const [error, isBusy, run] = useAct();
  const act = run(async () => {
    await post('/tree/delete', { path, ...seenOf(stat) });
    close();
    open(parentOf(path));
    changed(path);
  });
  return html`<${Dialog} title="Delete this znode?" onClose=${close}><div class="stack">
    <p><${Id} of=${path} />, ${size(stat.data_length)}, version ${stat.version}. It is deleted only if it still is this znode, with this version.</p>
    ${owner?.alive && html`<${Note} level="warning" sentence="It is ephemeral and belongs to the session ${owner.session}, which is alive and may rely on it." />`}
    <${Foot} error=${error} close=${close}><${Button} class="danger" disabled=${isBusy} on=${act}>Delete</></></div></>`;
}

/** @param {Panel & {close: () => void}} props */
function DeleteAll({ path, open, changed, close }) {
  const finish = () => {
    close();
    open(parentOf(path));
    changed(path);
  };
  return html`<${Dialog} title="Delete a znode and all below it" onClose=${close} wide><${Planned} path=${path} kind="delete" verb="Delete" close=${close} finish=${finish}
    start=${(/** @type {string} */ plan, /** @type {string} */ confirm) => post('/tree/delete-all', { plan, confirm })} /></>`;
}

/** @param {Panel & {isMove: boolean, close: () => void}} props */
function Copying({ path, node, isMove, open, changed, close }) {
  const [to, setTo] = useState(isMove ? path : `${path}-copy`);
  const [id, setId] = useState('');
  const [error, isBusy, run] = useAct();
  const verb = isMove ? 'Move' : 'Copy';
  const isInside = `${to}/`.startsWith(`${path}/`);
  const finish = async () => {
    // One that stopped early may have made nothing.
    const isMade = await get(`/tree/node${search({ path: to })}`, { quiet: true }).then(() => true, ({ code }) => code !== 'NONODE');
    close();
    if (isMade) open(to);
    changed(to);
    if (isMove) changed(path);
  };
  const start = run(async () => setId((await post('/tree/copy', { from: path, to, move: isMove })).run));
  return html`<${Dialog} title="${verb} a znode" onClose=${id ? finish : close}>${id ? html`<${Progress} id=${id} close=${finish} />` : html`<form class="stack" onSubmit=${start}>
    <p>From <${Id} of=${path} />${node.stat.num_children > 0 && ', with all below it'}.</p>
    <label class="field">To the path<input class="mono" required autofocus pattern="/.+" spellcheck=${false} value=${to} onInput=${typed(setTo)} /></label>
    <${Note} level="info" sentence=${isMove ? 'ZooKeeper cannot move: the znodes are created anew, and the old ones are deleted then. Watches and czxids stay behind; programs see a new znode.' : 'The copies are new znodes: versions begin at 0.'} way_out="Ephemerals stay where they are: they belong to their sessions." />
    <${Foot} error=${error} close=${close}><button class="primary" disabled=${isBusy || isInside}>${verb}</button>${isInside && html`<small>Choose another path, not below this znode.</small>`}</></form>`}</>`;
}

/** Saves the znodes of a small subtree as JSON. @param {{path: string, close: () => void}} props */
function Export({ path, close }) {
  const [found, tell] = useState(0);
  const [error, fail] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const stop = new AbortController();
    const save = (/** @type {any[]} */ all) => {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([JSON.stringify(all, null, 1)], { type: 'application/octet-stream' }));
      link.download = `${nameOf(path).replace(/[^\w.-]/g, '_')}.json`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      close();
    };
    collect(path, stop.signal, tell).then(save, (reason) => stop.signal.aborted || fail(reason));
    return () => stop.abort();
  }, []);
  return html`<${Dialog} title="Export as JSON" onClose=${close}><div class="stack"><p role="status">${plural(found, 'znode')} read</p><${Foot} error=${error} close=${close} /></div></>`;
}

/** @param {string} top @param {AbortSignal} signal @param {(found: number) => void} tell */
async function collect(top, signal, tell) {
  const all = [];
  const paths = [top];
  let total = 0;
  const ask = (/** @type {string} */ what, /** @type {Record<string, unknown>} */ query) => get(`/tree/${what}${search(query)}`, { signal, quiet: true });
  for (const path of paths) {
    const { kind, ttl_ms, stat, acl, rights } = await ask('node', { path });
    const bytes = rights.read ? fromBase64((await ask('data', { path, length: MOST_EXPORTED_BYTES })).data) : null;
    const text = bytes && utf8(bytes);
    all.push({ path, kind, ttl_ms, stat, acl, ...(isReadable(text) ? { text } : { base64: bytes && toBase64(bytes) }) });
    tell(all.length);
    total += bytes?.length ?? 0;
    for (let cursor = stat.num_children && rights.read ? '' : null; cursor !== null; ) {
      const { items, next } = await ask('children', { path, cursor, limit: 1000 });
      paths.push(...items.map((/** @type {{name: string}} */ { name }) => join(path, name)));
      cursor = next;
      if (paths.length > MOST_EXPORTED || total > MOST_EXPORTED_BYTES) throw { sentence: `This subtree has more than ${count(MOST_EXPORTED)} znodes or ${size(MOST_EXPORTED_BYTES)}. Export a smaller one, or use ostler backup.`, code: 'TOO_LARGE' };
    }
  }
  return all;
}
