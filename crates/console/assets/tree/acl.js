// Who may do what with a znode, and the editor of it.

import { post } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { html, useEffect, useState } from '../lib/html.js';
import { ErrorBox, Note } from '../lib/states.js';
import { Text } from '../lib/words.js';
import { Planned, useAct } from './acts.js';

/** @import {Acl, Plan, Rights, Znode} from './types' */

const RIGHTS = /** @type {[keyof Rights, string, string][]} */ ([
  ['read', 'r', 'read data and list children'], ['write', 'w', 'set data'], ['create', 'c', 'create children'], ['delete', 'd', 'delete children'], ['admin', 'a', 'set the ACL'],
]);
const SCHEMES = ['world', 'auth', 'digest', 'x509', 'sasl', 'ip'];

/** @param {{acl: Acl[]}} props */
const Rows = ({ acl }) => html`<div class="scroll"><table><thead><tr><th scope="col">Scheme</th><th scope="col">Id</th>${RIGHTS.map(([name, letter, what]) => html`<th scope="col" key=${letter} title=${what}>${name}</th>`)}</tr></thead>
  <tbody>${acl.map(({ scheme, id, perms }, at) => html`<tr key=${at}><td><${Text} of=${scheme} /></td><td class="mono"><${Text} of=${id} /></td>${RIGHTS.map(([name, letter]) => html`<td key=${letter}>${perms.includes(letter) ? html`<span aria-hidden="true">✓</span><span class="unseen">may ${name}</span>` : html`<span class="muted">–</span>`}</td>`)}</tr>`)}</tbody></table></div>`;

/** @param {Rights} rights */
const inWords = (rights) => RIGHTS.filter(([name]) => rights[name]).map(([name]) => name).join(', ') || 'nothing';

/** @param {{node: Znode, mayWrite: boolean, reload: () => void, me: import('../lib/api.js').Me | null}} props */
export function AclTab({ node, mayWrite, reload, me }) {
  const [edits, edit] = useState(false);
  const mayEdit = mayWrite && node.rights.admin && node.acl;
  if (edits && node.acl) return html`<${AclEditor} node=${node} me=${me} close=${() => { edit(false); reload(); }} />`;
  return html`<div class="stack"><p>You may: <strong>${inWords(node.rights)}</strong>.</p>
    ${node.acl ? html`<${Rows} acl=${node.acl} />` : html`<${Note} level="info" sentence="The ACL of this znode is not shown to you: that needs the right to read it, or to set it." />`}
    ${mayEdit && html`<div class="row"><button type="button" onClick=${() => edit(true)}>Edit the ACL</button></div>`}</div>`;
}

/** @param {{node: Znode, me: import('../lib/api.js').Me | null, close: () => void}} props */
function AclEditor({ node, me, close }) {
  const [rows, set] = useState(/** @type {Acl[]} */ (node.acl ?? []));
  const [trial, tell] = useState(/** @type {{before: Rights, after: Rights} | null} */ (null));
  const [isDeep, goDeep] = useState(false);
  const [failure, fail] = useState(/** @type {any} */ (null));
  const [error, isBusy, run] = useAct();
  const change = (/** @type {number} */ at, /** @type {Partial<Acl>} */ part) => set(rows.map((row, n) => (n === at ? { ...row, ...part } : row)));
  useEffect(() => {
    const timer = setTimeout(() => post('/tree/try-acl', { path: node.path, acl: rows }).then((answer) => { tell(answer); fail(null); }, (reason) => { tell(null); fail(reason); }), 300);
    return () => clearTimeout(timer);
  }, [rows]);
  const lost = trial ? RIGHTS.filter(([name]) => trial.before[name] && !trial.after[name]).map(([name]) => name) : [];
  const own = (me?.ids ?? []).filter(({ scheme, id }) => !rows.some((row) => row.scheme === scheme && row.id === id));
  const save = run(async () => {
    await post('/tree/set-acl', { path: node.path, acl: rows, version: node.stat.aversion });
    close();
  });
  return html`<form class="stack" onSubmit=${save}>
    <datalist id="schemes">${SCHEMES.map((scheme) => html`<option key=${scheme} value=${scheme} />`)}</datalist>
    <div class="scroll"><table class="acl-edit"><thead><tr><th scope="col">Scheme</th><th scope="col">Id</th>${RIGHTS.map(([name, letter, what]) => html`<th scope="col" key=${letter} title=${what}>${name}</th>`)}<th scope="col"><span class="unseen">Remove</span></th></tr></thead>
      <tbody>${rows.map(({ scheme, id, perms }, at) => html`<tr key=${at}><td><input aria-label="Scheme of row ${at + 1}" list="schemes" required value=${scheme} onInput=${(/** @type {any} */ event) => change(at, { scheme: event.target.value })} /></td>
        <td><input class="mono" aria-label="Id of row ${at + 1}" spellcheck="false" value=${id} onInput=${(/** @type {any} */ event) => change(at, { id: event.target.value })} /></td>
        ${RIGHTS.map(([name, letter]) => html`<td key=${letter}><input type="checkbox" aria-label="${name} for row ${at + 1}" checked=${perms.includes(letter)} onChange=${(/** @type {any} */ event) => change(at, { perms: [...'cdrwa'].filter((one) => (one === letter ? event.target.checked : perms.includes(one))).join('') })} /></td>`)}
        <td><button type="button" class="plain" aria-label="Remove row ${at + 1}" onClick=${() => set(rows.filter((_, n) => n !== at))}>✕</button></td></tr>`)}</tbody></table></div>
    <div class="row"><button type="button" onClick=${() => set([...rows, { scheme: 'digest', id: '', perms: 'r' }])}>Add a row</button>
      ${own.filter(({ scheme }) => scheme !== 'ip').map(({ scheme, id }) => html`<button type="button" key=${id} onClick=${() => set([...rows, { scheme, id, perms: 'cdrwa' }])}>Add yourself, <${Text} of="${scheme}:${id}" /></button>`)}</div>
    ${trial && html`<p role="status">You may now: ${inWords(trial.before)}. After it: <strong>${inWords(trial.after)}</strong>.</p>`}
    ${lost.includes('admin') ? html`<${Note} level="critical" sentence="You lock yourself out: after this you cannot change this ACL again." way_out="Give yourself the right admin, unless somebody else has it." />` : lost.length > 0 && html`<${Note} level="warning" sentence="You lose the right to ${lost.join(', ')}." />`}
    ${rows.length === 0 && html`<${Note} level="critical" sentence="An ACL without a row is refused." />`}
    ${(error ?? failure) && html`<${ErrorBox} error=${error ?? failure} />`}
    <div class="row"><button class="primary" disabled=${isBusy || !rows.length}>Save</button>${node.stat.num_children > 0 && html`<button type="button" disabled=${!rows.length} onClick=${() => goDeep(true)}>Set it here and on all below …</button>`}<button type="button" onClick=${close}>Cancel</button></div>
    ${isDeep && html`<${Dialog} title="Set this ACL on a znode and all below it" onClose=${() => goDeep(false)} wide><${Rows} acl=${rows} />
      <${Planned} path=${node.path} kind="set-acl" verb="Set the ACL of" close=${() => goDeep(false)} finish=${close} start=${(/** @type {Plan} */ plan, /** @type {string} */ confirm) => post('/tree/set-acl-all', { plan: plan.id, acl: rows, confirm })} /></>`}
  </form>`;
}
