// The ACL of a znode, and its editor.

import { post } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { html, useEffect, useState } from '../lib/html.js';
import { ErrorBox, Note } from '../lib/states.js';
import { Text } from '../lib/words.js';
import { Button, typed, useAct } from './parts.js';
import { Planned } from './plan.js';

/** @import {Acl, Rights} from './types' */
/** @import {Panel} from './node.js' */

const RIGHTS = /** @type {[keyof Rights, string, string][]} */ ([
  ['read', 'r', 'read data and list children'], ['write', 'w', 'set data'], ['create', 'c', 'create children'], ['delete', 'd', 'delete children'], ['admin', 'a', 'set the ACL'],
]);

/** A table of entries. @param {{acl: Acl[], cells: (row: Acl, at: number) => any[]}} props */
const Entries = ({ acl, cells }) => html`<div class="scroll"><table class="acl"><thead><tr><th scope="col">Scheme</th><th scope="col">Id</th>${RIGHTS.map(([name, , what]) => html`<th scope="col" title=${what}>${name}</th>`)}</tr></thead>
  <tbody>${acl.map((row, at) => html`<tr key=${at}>${cells(row, at).map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div>`;

/** @param {Acl} row */
const plain = ({ scheme, id, perms }) => [
  html`<${Text} of=${scheme} />`, html`<code><${Text} of=${id} /></code>`, ...RIGHTS.map(([name, letter]) => (perms.includes(letter) ? html`<span aria-hidden="true">✓</span><span class="unseen">may ${name}</span>` : html`<span class="muted">–</span>`)),
];

/** @param {Rights} rights */
const inWords = (rights) => RIGHTS.filter(([name]) => rights[name]).map(([name]) => name).join(', ') || 'nothing';

/** @param {Panel} panel */
export function AclTab(panel) {
  const { node, mayWrite, reload } = panel;
  const [edits, edit] = useState(false);
  const close = () => {
    edit(false);
    reload();
  };
  if (edits) return html`<${AclEditor} ...${panel} close=${close} />`;
  return html`<div class="stack"><p>You may: <strong>${inWords(node.rights)}</strong>.</p>
    ${node.acl ? html`<${Entries} acl=${node.acl} cells=${plain} />` : html`<${Note} level="info" sentence="The ACL of this znode is not shown to you: that needs the right to read it, or to set it." />`}
    ${mayWrite && node.rights.admin && node.acl && html`<div class="row"><${Button} on=${() => edit(true)}>Edit the ACL</></div>`}</div>`;
}

/** @param {Panel & {close: () => void}} props */
function AclEditor({ path, node, me, close }) {
  const [rows, set] = useState(node.acl ?? []);
  // The node is read again and again meanwhile; the rows are those of this version.
  const [seen] = useState({ version: node.stat.aversion, czxid: node.stat.czxid });
  const [trial, tell] = useState(/** @type {{before: Rights, after: Rights} | null} */ (null));
  const [isDeep, goDeep] = useState(false);
  const [failure, fail] = useState(/** @type {any} */ (null));
  const [error, isBusy, run] = useAct();
  const change = (/** @type {number} */ at, /** @type {Partial<Acl>} */ part) => set(rows.map((row, n) => (n === at ? { ...row, ...part } : row)));
  useEffect(() => {
    const ask = () => post('/tree/try-acl', { path, acl: rows }).then((answer) => [answer, null], (reason) => [null, reason]).then(([answer, reason]) => (tell(answer), fail(reason)));
    const timer = setTimeout(ask, 300);
    return () => clearTimeout(timer);
  }, [rows]);
  const lost = RIGHTS.filter(([name]) => trial?.before[name] && !trial.after[name]).map(([name]) => name);
  // Ids of digest are shown without their hash, so the server fills in who has signed in.
  const isKnown = me?.ids.some(({ scheme }) => scheme !== 'ip') && !rows.some(({ scheme }) => scheme === 'auth');
  const save = run(async () => {
    await post('/tree/set-acl', { path, acl: rows, ...seen });
    close();
  });
  const cells = (/** @type {Acl} */ { scheme, id, perms }, /** @type {number} */ at) => [
    html`<input aria-label="Scheme of row ${at + 1}" list="schemes" required value=${scheme} onInput=${typed((scheme) => change(at, { scheme }))} />`,
    html`<input class="mono" aria-label="Id of row ${at + 1}" spellcheck=${false} value=${id} onInput=${typed((id) => change(at, { id }))} />`,
    ...RIGHTS.map(([name, letter]) => html`<input type="checkbox" aria-label="${name} for row ${at + 1}" checked=${perms.includes(letter)} onChange=${() => change(at, { perms: [...'cdrwa'].filter((one) => perms.includes(one) !== (one === letter)).join('') })} />`),
    html`<${Button} class="plain" aria-label="Remove row ${at + 1}" on=${() => set(rows.filter((_, n) => n !== at))}>✕</>`,
  ];
  return html`<form class="stack" onSubmit=${save}>
    <datalist id="schemes">${['world', 'auth', 'digest', 'x509', 'sasl', 'ip'].map((scheme) => html`<option value=${scheme} />`)}</datalist>
    <${Entries} acl=${rows} cells=${cells} />
    <div class="row"><${Button} on=${() => set([...rows, { scheme: 'digest', id: '', perms: 'r' }])}>Add a row</>${isKnown && html`<${Button} on=${() => set([...rows, { scheme: 'auth', id: '', perms: 'cdrwa' }])}>Add yourself</>`}</div>
    ${trial && html`<p role="status">You may now: ${inWords(trial.before)}. After it: <strong>${inWords(trial.after)}</strong>.</p>`}
    ${lost.includes('admin') ? html`<${Note} level="critical" sentence="You lock yourself out: after this you cannot change this ACL again." way_out="Give yourself the right admin, unless somebody else has it." />` : lost.length > 0 && html`<${Note} level="warning" sentence="You lose the right to ${lost.join(', ')}." />`}
    ${(error ?? failure) && html`<${ErrorBox} error=${error ?? failure} />`}
    <div class="row"><button class="primary" disabled=${isBusy || !rows.length}>Save</button>${node.stat.num_children > 0 && html`<${Button} disabled=${!rows.length} on=${() => goDeep(true)}>Set it here and on all below …</>`}<${Button} on=${close}>Cancel</></div>
    ${isDeep && html`<${Dialog} title="Set this ACL on a znode and all below it" onClose=${() => goDeep(false)} wide><${Entries} acl=${rows} cells=${plain} />
      <${Planned} path=${path} kind="set-acl" verb="Set the ACL of" close=${() => goDeep(false)} finish=${close} start=${(/** @type {string} */ plan, /** @type {string} */ confirm) => post('/tree/set-acl-all', { plan, acl: rows, confirm })} /></>`}
  </form>`;
}
