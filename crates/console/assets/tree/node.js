// One znode: its path, and tabs for its data, Stat, ACL, children, history and watches.

import { search, useMe } from '../lib/api.js';
import { html, useEffect, useState } from '../lib/html.js';
import { useGet, usePages } from '../lib/live.js';
import { link } from '../lib/route.js';
import { Empty, Loaded, Note } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { ago, bytes, Copy, count, Duration, Text, Time, Zxid } from '../lib/words.js';
import { AclTab } from './acl.js';
import { Acts, Create } from './acts.js';
import { DataTab, drafts } from './data.js';
import { bytesOf } from './draft.js';
import { History } from './history.js';
import { Button } from './parts.js';
import { join, nameOf, parentOf } from './rows.js';

/** @import {Child, Znode} from './types' */
/** What the panels of a znode get.
 *  @typedef {{path: string, node: Znode, query: Record<string, string>, set: (patch: Record<string, unknown>) => void, open: (path: string) => void, changed: (path: string) => void,
 *    edit: () => void, mayWrite: boolean, reload: () => void, me: import('../lib/api.js').Me | null}} Panel */

/** @type {[string, string, any][]} */
const TABS = [['data', 'Data', Data], ['stat', 'Stat', Stat], ['acl', 'ACL', AclTab], ['children', 'Children', Children], ['history', 'History', History], ['watches', 'Watches', Watches]];

/** @param {Omit<Panel, 'node' | 'mayWrite' | 'reload' | 'me'> & {listed: import('./rows.js').Folder | null}} props */
export function ZnodePanel(props) {
  const { path, query, set, open, changed, listed } = props;
  const me = useMe();
  const answer = useGet(`/tree/node${search({ path })}`, { every: 10_000, quiet: true });
  /** @type {Znode | undefined} */
  const node = answer.data;
  useEffect(() => {
    if (node) answer.reload();
  }, [me?.name]);
  useEffect(() => {
    if (listed && listed.cversion !== null && node) listed.changes = Math.max(listed.changes, node.stat.cversion - listed.cversion);
  }, [node?.stat.cversion]);
  const reload = () => {
    answer.reload();
    changed(path);
  };
  const panel = { ...props, node, reload, me, mayWrite: me?.read_only === false };
  const [name, title, Tab] = TABS.find(([name]) => name === query.tab) ?? TABS[0];
  const isGone = answer.error?.code === 'NONODE';
  return html`<section class="tree-main panel" aria-label="Znode">
    <header class="tree-title"><${Parts} path=${path} open=${open} />${node && !isGone && html`<${Badges} node=${node} />`}</header>
    ${isGone ? html`<${Gone} nearest=${answer.error?.answer.nearest ?? '/'} ...${panel} node=${null} />` : html`
      ${node && html`<${Acts} ...${panel} />`}
      <div class="tabs" role="tablist" aria-label="Parts of the znode" onKeyDown=${byArrows}>${TABS.map(([one, title]) => html`<${Button} role="tab" id="tab-${one}" key=${one} aria-selected=${one === name} aria-controls="tab-panel" tabindex=${one === name ? 0 : -1}
        on=${() => set({ tab: one === 'data' ? null : one })}>${title}${one === 'children' && node?.stat.num_children ? html` <small>${count(node.stat.num_children)}</small>` : ''}</>`)}</div>
      <div role="tabpanel" id="tab-panel" aria-label=${title} class="tree-tab"><${Loaded} of=${answer}>${() => html`<${Tab} ...${panel} />`}</></div>`}
  </section>`;
}

/** Moves among tabs with the arrow keys. @param {any} event */
function byArrows(event) {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  const tabs = [...event.currentTarget.children];
  if (!step) return;
  event.preventDefault();
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
}

/** The path, a link for each part. @param {{path: string, open: (path: string) => void}} props */
function Parts({ path, open }) {
  const parts = path.split('/').slice(1).filter(Boolean);
  const part = (/** @type {string} */ to, /** @type {string} */ name) => html`<a href=${link('tree', { path: to })} aria-current=${to === path ? 'page' : undefined} onClick=${(/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    open(to);
  }}><${Text} of=${name} /></a>`;
  return html`<nav class="tree-path" aria-label="Path"><span class="mono">${part('/', '/')}${parts.map((name, n) => html`${n > 0 && '/'}${part(`/${parts.slice(0, n + 1).join('/')}`, name)}`)}</span><${Copy} text=${path} /></nav>`;
}

/** @param {{id: string}} props */
export const SessionLink = ({ id }) => html`session <a href=${link('sessions', { id })}>${id}</a>`;

/** @param {{node: Znode}} props */
const Badges = ({ node: { kind, ttl_ms, owner, quota } }) => html`<span class="row">
  <span class="badge ${kind === 'ephemeral' ? 'accent' : ''}">${kind === 'ttl' ? html`TTL <${Duration} ms=${ttl_ms} />` : kind}</span>
  ${owner && html`<span class="badge ${owner.alive ? '' : 'warning'}"><${SessionLink} id=${owner.session} />${!owner.alive && ' has ended'}</span>`}${quota && html`<span class="badge">quota</span>`}</span>`;

/** @param {Panel} panel */
function Data(panel) {
  const { rights, acl } = panel.node;
  if (rights.read) return html`<${DataTab} ...${panel} />`;
  const who = acl?.filter(({ perms }) => perms.includes('r')).map(({ scheme, id }) => `${scheme}:${id}`).join(', ');
  return html`<${Note} level="warning" sentence="You may not read the data of this znode. You see that it exists, and its Stat." way_out=${acl ? (who ? `It may be read by ${who}.` : 'Its ACL lets nobody read it.') : 'Sign in as somebody who may: its ACL is not shown to you.'} />`;
}

/** A path without a znode. @param {Panel & {nearest: string}} panel */
function Gone(panel) {
  const { path, nearest, open, reload, set, mayWrite } = panel;
  const [creates, create] = useState(false);
  const draft = mayWrite && drafts.get(path);
  const made = () => {
    drafts.delete(path);
    set({ edit: null });
    reload();
  };
  return html`<${Note} level="info" sentence="There is no znode at this path." way_out="Below is what the logs still tell about it."><p class="row">
    <${Button} on=${() => open(nearest)}>Open <${Text} of=${nearest} />, the nearest above</><${Button} on=${reload}>Look again</>
    ${draft && html`<${Button} on=${() => create(true)}>Create it with what you wrote</>`}</p></>
    ${creates && draft && html`<${Create} ...${panel} path=${parentOf(path)} name=${nameOf(path)} data=${bytesOf(draft).bytes} close=${() => create(false)} open=${made} />`}<${History} ...${panel} />`;
}

/** @param {Panel} panel */
function Stat({ node: { stat, kind, ttl_ms, owner, watches, quota, name } }) {
  const times = (/** @type {number} */ n, /** @type {string} */ what) => `${count(n)}: ${what} ${n === 0 ? 'never' : n === 1 ? 'once' : `${count(n)} times`} since it was made`;
  const kindWord = kind === 'ttl' ? 'TTL znode' : kind;
  return html`<dl class="facts">
    <dt>Kind</dt><dd><${Term} of=${kindWord}>${kindWord}</>${ttl_ms !== null && html`, <${Duration} ms=${ttl_ms} />`}</dd>
    ${owner && html`<dt>Owner</dt><dd><${SessionLink} id=${owner.session} />${owner.address && html` from <${Text} of=${owner.address} />`}${!owner.alive && ', which has ended'}</dd>`}
    ${name.sequence !== null && html`<dt>Sequence number</dt><dd>${name.sequence}</dd>`}
    <dt>Created</dt><dd><${Time} ms=${stat.ctime_ms || null} /> by <${Zxid} of=${stat.czxid} /></dd>
    <dt>Data changed</dt><dd><${Time} ms=${stat.mtime_ms || null} /> by <${Zxid} of=${stat.mzxid} /></dd>
    <dt>Children changed</dt><dd>by <${Zxid} of=${stat.pzxid} /></dd>
    <dt>version</dt><dd>${times(stat.version, 'data set')}</dd>
    <dt>cversion</dt><dd>${times(stat.cversion, 'children created or deleted')}</dd>
    <dt>aversion</dt><dd>${times(stat.aversion, 'ACL set')}</dd>
    <dt>Data</dt><dd>${bytes(stat.data_length)}${stat.data_length > 999 && ` (${count(stat.data_length)} bytes)`}</dd>
    <dt>Children</dt><dd>${count(stat.num_children)}${kind === 'ephemeral' && ', an ephemeral can have none'}</dd>
    ${watches && html`<dt>Watches here</dt><dd>${inWords(watches)}</dd>`}
    ${Object.entries(quota ?? {}).map(([key, value]) => value !== null && html`<dt key=${key}>Quota: ${key.replaceAll('_', ' ')}</dt><dd>${typeof value === 'number' ? count(value) : html`<${Text} of=${value} />`}</dd>`)}
  </dl>`;
}

/** @param {{data: number, children: number, persistent: number}} watches */
const inWords = (watches) => `${count(watches.data)} of data, ${count(watches.children)} of children, ${count(watches.persistent)} persistent`;

/** @param {Panel} panel */
function Children({ path, open }) {
  const api = `/tree/children${search({ path })}`;
  const list = usePages(api, { quiet: true });
  /** @type {import('../lib/table.js').Column[]} */
  const columns = [
    { key: 'name', label: 'Name' },
    { key: 'kind', label: 'Kind' },
    { key: 'num_children', label: 'Children', align: 'end' },
    { key: 'data_length', label: 'Size', align: 'end', render: (row) => bytes(row.data_length) },
    { key: 'version', label: 'Version', align: 'end' },
    { key: 'mtime_ms', label: 'Changed', render: (row) => (row.mtime_ms ? ago(row.mtime_ms) : '–') },
  ];
  return html`<${Loaded} of=${list}>${(/** @type {any} */ data) => html`<${Table} name="children" caption="children of ${path}" rows=${data.items} rowKey=${(/** @type {Child} */ child) => child.name} total=${data.total} more=${list.more} truncated=${data.truncated} json=${api}
    onOpen=${(/** @type {Child} */ child) => open(join(path, child.name))} empty=${html`<${Empty} title="This znode has no children." />`} columns=${columns} />`}</>`;
}

/** @param {Panel} panel */
function Watches({ path, node: { watches }, me }) {
  const answer = useGet(me?.viewer ? `/watches${search({ by: 'path', path })}` : null, { quiet: true });
  /** @type {import('../lib/table.js').Column[]} */
  const columns = [
    { key: 'session', label: 'Session', render: ({ session }) => html`<a href=${link('sessions', { id: session })}>${session}</a>` },
    { key: 'address', label: 'Address' },
    { key: 'server', label: 'Server', align: 'end' },
    { key: 'kinds', label: 'Kinds', value: ({ kinds }) => [kinds ?? []].flat().join(', ') },
  ];
  return html`<div class="stack">${watches && html`<p>Watches at this server: ${inWords(watches)}.</p>`}
    ${me?.viewer ? html`<${Loaded} of=${answer}>${(/** @type {any} */ data) => html`<${Table} name="watches" caption="watches of ${path}" rows=${data.items} truncated=${data.truncated} rowKey=${(/** @type {any} */ row) => `${row.session} ${row.server}`} columns=${columns} empty=${html`<${Empty} title="Nobody watches this znode." />`} />`}</>`
      : html`<${Note} level="info" sentence="Who watches is shown to viewers of the server only." />`}</div>`;
}
