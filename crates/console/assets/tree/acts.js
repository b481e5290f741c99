// What one can do with a znode: create, copy, move, delete, export. A large deletion has a plan first.

import { get, post, search, url } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { html, useEffect, useRef, useState } from '../lib/html.js';
import { useGet } from '../lib/live.js';
import { ErrorBox, Loaded, Note } from '../lib/states.js';
import { bytes as size, count, Id, plural, Text } from '../lib/words.js';
import { fromBase64, fromUtf8, isReadable, toBase64, utf8 } from './decoders/bytes.js';
import { join, nameOf, parentOf } from './rows.js';

/** @import {Acl, Plan, Run, Znode} from './types' */
/** @typedef {{node: Znode, mayWrite: boolean, reload: () => void, open: (path: string) => void, changed: (path: string) => void, edit: () => void}} Props */

const MOST_EXPORTED = 2000;
const MOST_EXPORTED_BYTES = 8 << 20;
const OPEN_ACL = [{ scheme: 'world', id: 'anyone', perms: 'cdrwa' }];

const typed = (/** @type {(value: any) => void} */ set) => (/** @type {any} */ event) => set(event.target.value);
const checked = (/** @type {(value: boolean) => void} */ set) => (/** @type {any} */ event) => set(event.target.checked);

/** @param {Props} props */
export function Acts(props) {
  const { node, mayWrite, edit } = props;
  const [shown, show] = useState('');
  const close = () => show('');
  const isFixed = node.path === '/' || node.path === '/zookeeper' || node.path.startsWith('/zookeeper/');
  const button = (/** @type {string} */ name, /** @type {string} */ title, /** @type {string} */ style = '') => html`<button type="button" class=${style} onClick=${() => show(name)}>${title}</button>`;
  return html`<div class="row tree-acts">
    ${mayWrite && html`${node.rights.write && html`<button type="button" onClick=${edit}>Edit</button>`}${node.rights.create && node.kind !== 'ephemeral' && button('create', 'Create child')}
      ${button('copy', 'Copy')}${!isFixed && node.kind !== 'ephemeral' && button('move', 'Move')}${!isFixed && button('delete', 'Delete', 'danger')}`}
    ${node.rights.read && html`<a class="button" href=${url(`/tree/data${search({ path: node.path, download: 1 })}`)} download>Download data</a>`}${button('export', 'Export JSON')}
    ${shown === 'create' && html`<${Create} ...${props} path=${node.path} close=${close} />`}
    ${shown === 'export' && html`<${Export} path=${node.path} close=${close} />`}
    ${(shown === 'copy' || shown === 'move') && html`<${Copying} ...${props} isMove=${shown === 'move'} close=${close} />`}
    ${shown === 'delete' && (node.stat.num_children ? html`<${DeleteAll} ...${props} close=${close} />` : html`<${Delete} ...${props} close=${close} />`)}
  </div>`;
}

/** Sends a change; its error stays on the screen until the next try. @returns {[any, boolean, (act: () => Promise<void>) => (event?: Event) => void]} */
export function useAct() {
  const [error, fail] = useState(/** @type {any} */ (null));
  const [isBusy, busy] = useState(false);
  const run = (/** @type {() => Promise<void>} */ act) => (/** @type {Event | undefined} */ event) => {
    event?.preventDefault();
    busy(true);
    fail(null);
    act().catch(fail).finally(() => busy(false));
  };
  return [error, isBusy, run];
}

/** The kinds of znodes that one can create. */
const MODES = /** @type {[string, string][]} */ ([
  ['persistent', 'persistent: it stays until somebody deletes it'], ['persistent_sequential', 'persistent, sequential: its name gets a number of ten digits'],
  ['container', 'container: deleted some time after its last child'], ['ttl', 'TTL: deleted if it is not changed for a time and has no children'], ['ttl_sequential', 'TTL, sequential'],
]);

/** @param {Props & {path: string, close: () => void, name?: string, data?: Uint8Array}} props `name` and `data`: what it is to be, as a proposal */
export function Create({ path, name: first = '', data: proposed, open, changed, close, node }) {
  const [name, setName] = useState(first);
  const [mode, setMode] = useState('persistent');
  const [ttl, setTtl] = useState('60000');
  const [text, setText] = useState('');
  const [file, setFile] = useState(proposed ?? null);
  const [acl, setAcl] = useState('open');
  const [parents, setParents] = useState(false);
  const [error, isBusy, run] = useAct();
  const data = file ?? fromUtf8(text);
  const pick = async (/** @type {any} */ event) => setFile(event.target.files[0] ? new Uint8Array(await event.target.files[0].arrayBuffer()) : null);
  const acls = /** @type {Record<string, Acl[] | null>} */ ({ open: OPEN_ACL, mine: [{ scheme: 'auth', id: '', perms: 'cdrwa' }], parent: node?.acl ?? null });
  const save = run(async () => {
    const made = await post('/tree/create', { path: join(path, name), data: toBase64(data ?? new Uint8Array()), mode, ttl_ms: mode.startsWith('ttl') ? Number(ttl) : null, acl: acls[acl], parents });
    changed(path);
    close();
    open(made.path);
  });
  return html`<${Dialog} title="Create a znode" onClose=${close}><form class="stack" onSubmit=${save}>
    <label class="field">Name below <${Text} of=${path} /><input required autofocus value=${name} onInput=${typed(setName)} pattern=${parents ? '[^/].*[^/]|[^/]' : '[^/]+'} spellcheck="false" /></label>
    <label class="field">Kind<select value=${mode} onChange=${typed(setMode)}>${MODES.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}
      <option disabled>ephemeral: it would belong to the console’s own session, and is refused</option></select></label>
    ${mode.startsWith('ttl') && html`<label class="field">Time to live in ms<input type="number" min="1" required value=${ttl} onInput=${typed(setTtl)} /></label>`}
    ${file ? html`<p class="row"><span>Data: ${count(file.length)} bytes</span><button type="button" onClick=${() => setFile(null)}>Write them instead</button></p>`
      : html`<label class="field">Data<textarea class="mono" rows="4" spellcheck="false" value=${text} onInput=${typed(setText)} /></label><label class="row">or from a file <input type="file" onChange=${pick} /></label>`}
    <label class="field">ACL<select value=${acl} onChange=${typed(setAcl)}><option value="open">anyone may do everything (world:anyone)</option><option value="mine">only the identities you have signed in with</option>${node?.acl && html`<option value="parent">the same as its parent’s</option>`}</select></label>
    <label class="row"><input type="checkbox" checked=${parents} onChange=${checked(setParents)} /> create missing parents (the name may have slashes)</label>
    ${error && html`<${ErrorBox} error=${error} />`}
    <div class="row"><button class="primary" disabled=${isBusy || !data}>Create</button><button type="button" onClick=${close}>Cancel</button></div>
  </form></>`;
}

/** @param {Props & {close: () => void}} props */
function Delete({ node, open, changed, close }) {
  const [error, isBusy, run] = useAct();
  const act = run(async () => {
    await post('/tree/delete', { path: node.path, version: node.stat.version });
    close();
    open(parentOf(node.path));
    changed(parentOf(node.path));
  });
  return html`<${Dialog} title="Delete this znode?" onClose=${close}><div class="stack">
    <p><${Id} of=${node.path} />, ${size(node.stat.data_length)}, version ${node.stat.version}. It is deleted only if it still has this version.</p>
    ${node.owner?.alive && html`<${Note} level="warning" sentence="It is ephemeral and belongs to the session ${node.owner.session}, which is alive and may rely on it." />`}
    ${error && html`<${ErrorBox} error=${error} />`}
    <div class="row"><button type="button" class="danger" disabled=${isBusy} onClick=${act}>Delete</button><button type="button" onClick=${close}>Cancel</button></div></div></>`;
}

/** @param {Props & {close: () => void}} props */
function DeleteAll({ node, changed, open, close }) {
  const { path } = node;
  const finish = () => {
    changed(parentOf(path));
    open(parentOf(path));
    close();
  };
  return html`<${Dialog} title="Delete a znode and all below it" onClose=${close} wide><${Planned} path=${path} kind="delete" verb="Delete" close=${close} finish=${finish}
    start=${(/** @type {Plan} */ plan, /** @type {string} */ confirm) => post('/tree/delete-all', { plan: plan.id, confirm })} /></>`;
}

/**
 * A plan, what has to be typed, and the progress.
 * @param {{path: string, kind: 'delete' | 'set-acl', verb: string, close: () => void, finish: () => void, start: (plan: Plan, confirm: string) => Promise<{run: string}>}} props
 */
export function Planned({ path, kind, verb, close, finish, start }) {
  const answer = useGet(`/tree/plan${search({ path, kind })}`, { quiet: true });
  const [typedName, setName] = useState('');
  const [id, setId] = useState('');
  const [error, isBusy, run] = useAct();
  if (id) return html`<${Progress} id=${id} close=${finish} />`;
  const last = nameOf(path);
  return html`<${Loaded} of=${answer}>${(/** @type {Plan} */ plan) => html`<form class="stack" onSubmit=${run(async () => setId((await start(plan, typedName)).run))}>
    <dl class="facts"><dt>Znodes</dt><dd><strong>${count(plan.znodes)}</strong>, with ${size(plan.bytes)}</dd>
      <dt>Ephemerals</dt><dd>${count(plan.ephemerals)}${plan.owners.length > 0 && html`, of ${plan.owners.slice(0, 20).map(({ session, count: own, address }) => html`<span class="owner">${session}${address && html` at <${Text} of=${address} />`}: ${own}</span> `)}`}</dd>
      ${plan.watches !== null && html`<dt>Watches</dt><dd>${count(plan.watches)} at this server would be triggered</dd>`}
      <dt>Counted</dt><dd>as of ${plan.as_of_zxid}; the plan is good for ${count(Math.round(plan.expires_in_ms / 1000))} s</dd></dl>
    ${plan.locks.length > 0 && html`<${Note} level="warning" sentence="There are locks or leader elections in it:"><${Paths} of=${plan.locks} /></>`}
    ${plan.refused.length > 0 && html`<${Note} level="critical" sentence="Your identity is refused at:" way_out="The work would stop at the first of them."><${Paths} of=${plan.refused} /></>`}
    <label class="field">Type the last part of the path, ${last}, to confirm<input required autofocus autocomplete="off" spellcheck="false" value=${typedName} onInput=${typed(setName)} /></label>
    ${error && html`<${ErrorBox} error=${error} retry=${error.code === 'PLAN' ? answer.reload : undefined} />`}
    <div class="row"><button class="danger" disabled=${typedName !== last || isBusy}>${verb} ${plural(plan.znodes, 'znode')}</button><button type="button" onClick=${close}>Cancel</button></div></form>`}</>`;
}

/** @param {{of: string[]}} props */
const Paths = ({ of }) => html`<ul class="paths">${of.slice(0, 100).map((path) => html`<li key=${path}><${Id} of=${path} /></li>`)}${of.length > 100 && html`<li>and ${count(of.length - 100)} more</li>`}</ul>`;

/** @param {{id: string, close: () => void}} props */
export function Progress({ id, close }) {
  const answer = useGet(`/tree/runs${search({ id })}`, { every: 400, quiet: true });
  const [error, , act] = useAct();
  const told = useRef(false);
  /** @type {Run | undefined} */
  const run = answer.data;
  const isOver = run && run.state !== 'running';
  useEffect(() => {
    told.current = !!isOver;
  }, [isOver]);
  return html`<${Loaded} of=${answer}>${(/** @type {Run} */ run) => html`<div class="stack">
    <label class="field"><span>${count(run.done)} of ${count(run.of)}</span><progress max=${Math.max(1, run.of)} value=${run.done} /></label>
    <p role="status">${run.state === 'running' ? 'It works, in steps of 100.' : run.state === 'done' ? 'Done.' : html`<strong>Stopped.</strong>`} ${run.sentence && html`<${Text} of=${run.sentence} />`}</p>
    ${run.left.length > 0 && html`<div><h3>What is left</h3><${Paths} of=${run.left} /></div>`}
    ${error && html`<${ErrorBox} error=${error} />`}
    <div class="row">${run.state === 'running' ? html`<button type="button" class="danger" onClick=${act(async () => void (await post('/tree/stop-run', { id })))}>Stop</button>` : html`<button type="button" class="primary" onClick=${close}>Close</button>`}</div>
  </div>`}</>`;
}

/** @param {Props & {isMove: boolean, close: () => void}} props */
function Copying({ node, isMove, open, changed, close }) {
  const [to, setTo] = useState(isMove ? node.path : `${node.path}-copy`);
  const [id, setId] = useState('');
  const [error, isBusy, run] = useAct();
  const finish = () => {
    changed(parentOf(to));
    if (isMove) changed(parentOf(node.path));
    close();
    open(to);
  };
  if (id) return html`<${Dialog} title=${isMove ? 'Move' : 'Copy'} onClose=${finish}><${Progress} id=${id} close=${finish} /></>`;
  const inside = to === node.path || to.startsWith(`${node.path}/`);
  return html`<${Dialog} title=${isMove ? 'Move a znode' : 'Copy a znode'} onClose=${close}><form class="stack" onSubmit=${run(async () => setId((await post('/tree/copy', { from: node.path, to, move: isMove })).run))}>
    <p>From <${Id} of=${node.path} />${node.stat.num_children > 0 && ', with all below it'}.</p>
    <label class="field">To the path<input class="mono" required autofocus pattern="/.+" spellcheck="false" value=${to} onInput=${typed(setTo)} /></label>
    <${Note} level="info" sentence=${isMove ? 'ZooKeeper cannot move: the znodes are created anew and the old ones are deleted then. Watches and czxids stay behind; programs see a new znode.' : 'The copies are new znodes: versions begin at 0.'} way_out=${`Ephemerals cannot be ${isMove ? 'moved' : 'copied'}: they belong to their sessions.`} />
    ${error && html`<${ErrorBox} error=${error} />`}
    <div class="row"><button class="primary" disabled=${isBusy || inside}>${isMove ? 'Move' : 'Copy'}</button><button type="button" onClick=${close}>Cancel</button>${inside && html`<small>Choose another path, not below this znode.</small>`}</div></form></>`;
}

/** Saves a text as a file. @param {string} name @param {string} text */
function saveAs(name, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The znodes of a small subtree as JSON. @param {{path: string, close: () => void}} props */
function Export({ path, close }) {
  const [done, tell] = useState('');
  const [error, fail] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const stop = new AbortController();
    collect(path, stop.signal, (found) => tell(plural(found, 'znode'))).then(
      (all) => {
        saveAs(`${nameOf(path).replace(/[^\w.-]/g, '_')}.json`, JSON.stringify(all, null, 1));
        close();
      },
      (reason) => stop.signal.aborted || fail(reason),
    );
    return () => stop.abort();
  }, []);
  return html`<${Dialog} title="Export as JSON" onClose=${close}><div class="stack"><p role="status">Read: ${done}</p>${error && html`<${ErrorBox} error=${error} />`}<button type="button" onClick=${close}>Cancel</button></div></>`;
}

/** @param {string} top @param {AbortSignal} signal @param {(found: number) => void} tell */
async function collect(top, signal, tell) {
  const all = [];
  const paths = [top];
  let total = 0;
  for (const path of paths) {
    const node = await get(`/tree/node${search({ path })}`, { signal, quiet: true });
    const { data } = node.rights.read ? await get(`/tree/data${search({ path, length: MOST_EXPORTED_BYTES })}`, { signal, quiet: true }) : { data: null };
    total += data?.length ?? 0;
    const text = data === null ? null : utf8(fromBase64(data) ?? new Uint8Array());
    all.push({ path, kind: node.kind, ttl_ms: node.ttl_ms, stat: node.stat, acl: node.acl, ...(isReadable(text) ? { text } : { base64: data }) });
    for (let cursor; node.stat.num_children && node.rights.read; ) {
      const page = await get(`/tree/children${search({ path, cursor, limit: 1000 })}`, { signal, quiet: true });
      paths.push(.../** @type {{name: string}[]} */ (page.items).map(({ name }) => join(path, name)));
      cursor = page.next;
      if (paths.length > MOST_EXPORTED || total > MOST_EXPORTED_BYTES) throw { sentence: `This subtree has more than ${count(MOST_EXPORTED)} znodes or ${size(MOST_EXPORTED_BYTES)}. Export a smaller one, or use ostler backup.`, code: 'TOO_LARGE' };
      if (!cursor) break;
    }
    tell(all.length);
  }
  return all;
}
