// One znode: its path, and tabs for its data, Stat, ACL, children, history and watches.

import { get, search, useMe } from '../lib/api.js';
import { html, useEffect, useState } from '../lib/html.js';
import { useGet, usePages } from '../lib/live.js';
import { link } from '../lib/route.js';
import { Empty, Loaded, Note } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { ago, bytes, Copy, count, Duration, Id, Text, Time, Zxid } from '../lib/words.js';
import { AclTab } from './acl.js';
import { Acts } from './acts.js';
import { DataTab } from './data.js';
import { History } from './history.js';
import { join, parentOf } from './rows.js';

/** @import {Child, Znode} from './types' */

const TABS = { data: 'Data', stat: 'Stat', acl: 'ACL', children: 'Children', history: 'History', watches: 'Watches' };
const NO_CHILDREN = ['ephemeral'];

/** The path, a link for each part. @param {{path: string, open: (path: string) => void}} props */
function Parts({ path, open }) {
  const parts = path === '/' ? [] : path.slice(1).split('/');
  const at = (/** @type {number} */ n) => `/${parts.slice(0, n + 1).join('/')}`;
  const part = (/** @type {string} */ to, /** @type {string} */ name) => html`<a href=${link('tree', { path: to })} aria-current=${to === path ? 'page' : undefined}
    onClick=${(/** @type {MouseEvent} */ event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); open(to); } }}><${Text} of=${name} /></a>`;
  return html`<nav class="tree-path" aria-label="Path"><span class="mono">${part('/', '/')}${parts.map((name, n) => html`${n > 0 && '/'}${part(at(n), name)}`)}</span><${Copy} text=${path} /></nav>`;
}

/**
 * @param {{path: string, query: Record<string, string>, go: import('../lib/route.js').Go, open: (path: string) => void, changed: (path: string) => void,
 *   listed: import('./rows.js').Folder | null}} props
 */
export function ZnodePanel({ path, query, go, open, changed, listed }) {
  const me = useMe();
  const answer = useGet(`/tree/node${search({ path })}`, { every: 10_000, quiet: true });
  const mayWrite = me?.read_only === false;
  /** @type {Znode | undefined} */
  const node = answer.data;
  useEffect(() => {
    if (listed?.cversion === null || !listed || !node) return;
    listed.changes = Math.max(listed.changes, node.stat.cversion - listed.cversion);
  }, [node?.stat.cversion]);
  useEffect(answer.reload, [me?.name]);
  const tab = query.tab && query.tab in TABS ? query.tab : 'data';
  const reload = () => {
    answer.reload();
    changed(path);
  };
  if (answer.error?.code === 'NONODE') return html`<section class="tree-main panel" aria-label="Znode"><${Parts} path=${path} open=${open} /><${Gone} path=${path} open=${open} mayWrite=${mayWrite} reload=${reload} /></section>`;
  return html`<section class="tree-main panel" aria-label="Znode">
    <header class="tree-title"><${Parts} path=${path} open=${open} />${node && html`<${Badges} node=${node} />`}</header>
    ${node && html`<${Acts} node=${node} mayWrite=${mayWrite} reload=${reload} open=${open} changed=${changed} edit=${() => go({ tab: null, edit: '1' }, { replace: true })} />`}
    <div class="tabs" role="tablist" aria-label="About ${path}" onKeyDown=${byArrows}>${Object.entries(TABS).map(([name, title]) => html`<button type="button" role="tab" id="tab-${name}" key=${name}
      aria-selected=${name === tab} aria-controls="tab-panel" tabindex=${name === tab ? 0 : -1} onClick=${() => go({ tab: name === 'data' ? null : name }, { replace: true })}>${title}${name === 'children' && node?.stat.num_children ? html` <small>${count(node.stat.num_children)}</small>` : ''}</button>`)}</div>
    <div role="tabpanel" id="tab-panel" aria-labelledby="tab-${tab}" tabindex="-1" class="tree-tab"><${Loaded} of=${answer}>${(/** @type {Znode} */ node) => html`<${Tab} ...${{ tab, node, mayWrite, reload, open, query, go, me }} />`}</></div>
  </section>`;
}

/** Moves among tabs with the arrow keys. @param {KeyboardEvent} event */
function byArrows(event) {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  const tabs = [.../** @type {HTMLElement} */ (event.currentTarget).children];
  const next = /** @type {HTMLElement | undefined} */ (tabs[(tabs.indexOf(/** @type {Element} */ (event.target)) + step + tabs.length) % tabs.length]);
  if (!step || !next) return;
  event.preventDefault();
  event.stopPropagation();
  next.focus();
  next.click();
}

/** @param {any} props */
function Tab({ tab, node, ...rest }) {
  switch (tab) {
    case 'stat':
      return html`<${Stat} node=${node} />`;
    case 'acl':
      return html`<${AclTab} node=${node} ...${rest} />`;
    case 'children':
      return html`<${Children} node=${node} ...${rest} />`;
    case 'history':
      return html`<${History} path=${node.path} node=${node} ...${rest} />`;
    case 'watches':
      return html`<${Watches} node=${node} me=${rest.me} />`;
    default:
      return node.rights.read ? html`<${DataTab} node=${node} ...${rest} />` : html`<${NoRead} node=${node} />`;
  }
}

/** @param {{node: Znode}} props */
const Badges = ({ node }) => html`<span class="row">
  <span class="badge ${node.kind === 'ephemeral' ? 'accent' : ''}">${node.kind === 'ttl' ? html`TTL <${Duration} ms=${node.ttl_ms} />` : node.kind}</span>
  ${node.owner && html`<span class="badge ${node.owner.alive ? '' : 'warning'}">session <a href=${link('sessions', { id: node.owner.session })}>${node.owner.session}</a>${node.owner.alive ? '' : ' has ended'}</span>`}
  ${node.quota && html`<span class="badge">quota</span>`}</span>`;

/** What may not be read. @param {{node: Znode}} props */
function NoRead({ node }) {
  const who = node.acl?.filter(({ perms }) => perms.includes('r')).map(({ scheme, id }) => `${scheme}:${id}`);
  return html`<${Note} level="warning" sentence="You may not read the data of this znode. You see that it exists, and its Stat." way_out=${who?.length ? `It may be read by ${who.join(', ')}.` : who ? 'Its ACL lets nobody read it.' : 'Sign in as somebody who may: its ACL is not shown to you.'} />`;
}

/** A path without a znode. @param {{path: string, open: (path: string) => void, mayWrite: boolean, reload: () => void}} props */
function Gone({ path, open, mayWrite, reload }) {
  const [nearest, set] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    let isOver = false;
    const climb = async (/** @type {string} */ at) => {
      const found = at === '/' || (await get(`/tree/node${search({ path: at })}`, { quiet: true }).then(() => true, (error) => error.code !== 'NONODE'));
      if (isOver) return;
      if (found) set(at);
      else void climb(parentOf(at));
    };
    void climb(parentOf(path));
    return () => void (isOver = true);
  }, [path]);
  return html`<${Note} level="info" sentence="There is no znode at this path." way_out="Below is what the logs still tell about it."><p class="row">
    ${nearest && html`<button type="button" onClick=${() => open(nearest)}>Open <${Text} of=${nearest} />${nearest === parentOf(path) ? ', its parent' : ', the nearest above'}</button>`}
    <button type="button" onClick=${reload}>Look again</button></p></>
    <${History} path=${path} node=${null} mayWrite=${mayWrite} reload=${reload} />`;
}

/** @param {{node: Znode}} props */
function Stat({ node: { stat, path, kind, ttl_ms, owner, watches, quota, name } }) {
  const times = (/** @type {number} */ n, /** @type {string} */ what) => `${count(n)}: ${what} ${n === 0 ? 'never' : n === 1 ? 'once' : `${count(n)} times`} since it was made`;
  return html`<dl class="facts">
    <dt>Kind</dt><dd><${Term} of=${kind === 'ttl' ? 'TTL znode' : kind}>${kind === 'ttl' ? 'TTL znode' : kind}</>${ttl_ms !== null && html`, <${Duration} ms=${ttl_ms} />`}</dd>
    ${owner && html`<dt>Owner</dt><dd>session <a href=${link('sessions', { id: owner.session })}>${owner.session}</a>${owner.address && html` from <${Text} of=${owner.address} />`}${owner.alive ? '' : ', which has ended'}</dd>`}
    ${name?.sequence !== null && name?.sequence !== undefined && html`<dt>Sequence number</dt><dd>${name.sequence}</dd>`}
    <dt>Created</dt><dd><${Time} ms=${stat.ctime_ms} /> by <${Zxid} of=${stat.czxid} /></dd>
    <dt>Data changed</dt><dd><${Time} ms=${stat.mtime_ms} /> by <${Zxid} of=${stat.mzxid} /></dd>
    <dt>Children changed</dt><dd>by <${Zxid} of=${stat.pzxid} /></dd>
    <dt>version</dt><dd>${times(stat.version, 'data set')}</dd>
    <dt>cversion</dt><dd>${times(stat.cversion, 'children created or deleted')}</dd>
    <dt>aversion</dt><dd>${times(stat.aversion, 'ACL set')}</dd>
    <dt>Data</dt><dd>${bytes(stat.data_length)}${stat.data_length > 999 && ` (${count(stat.data_length)} bytes)`}</dd>
    <dt>Children</dt><dd>${count(stat.num_children)}${stat.num_children === 0 && NO_CHILDREN.includes(kind) && ', an ephemeral znode can have none'}</dd>
    ${watches && html`<dt>Watches here</dt><dd>${watchesInWords(watches)}</dd>`}
    ${quota && Object.entries(quota).map(([key, value]) => html`<dt key=${key}>Quota: ${key.replaceAll('_', ' ')}</dt><dd>${typeof value === 'number' ? count(value) : JSON.stringify(value)}</dd>`)}
    <dt>Path</dt><dd><${Id} of=${path} /></dd>
  </dl>`;
}

/** @param {{data: number, children: number, persistent: number}} watches */
const watchesInWords = (watches) => `${count(watches.data)} of data, ${count(watches.children)} of children, ${count(watches.persistent)} persistent`;

/** @param {{node: Znode, open: (path: string) => void}} props */
function Children({ node, open }) {
  const list = usePages(`/tree/children${search({ path: node.path })}`, { quiet: true });
  return html`<${Loaded} of=${list}>${(/** @type {any} */ data) => html`<${Table} name="children" caption="children of ${node.path}" rows=${data.items} rowKey=${(/** @type {Child} */ child) => child.name} total=${data.total}
    more=${list.more} truncated=${data.truncated} json=${`/tree/children${search({ path: node.path })}`} onOpen=${(/** @type {Child} */ child) => open(join(node.path, child.name))}
    empty=${html`<${Empty} title="This znode has no children." />`} columns=${[
      { key: 'name', label: 'Name' },
      { key: 'kind', label: 'Kind' },
      { key: 'num_children', label: 'Children', align: 'end' },
      { key: 'data_length', label: 'Size', align: 'end', render: (/** @type {Child} */ child) => bytes(child.data_length) },
      { key: 'version', label: 'Version', align: 'end' },
      { key: 'mtime_ms', label: 'Changed', render: (/** @type {Child} */ child) => ago(child.mtime_ms) },
    ]} />`}</>`;
}

/** @param {{node: Znode, me: import('../lib/api.js').Me | null}} props */
function Watches({ node, me }) {
  const answer = useGet(me?.viewer ? `/watches${search({ by: 'path', path: node.path })}` : null, { quiet: true });
  return html`<div class="stack">
    ${node.watches && html`<p>At this server: ${watchesInWords(node.watches)} ${node.watches.data + node.watches.children + node.watches.persistent === 1 ? 'watch' : 'watches'}.</p>`}
    ${me && !me.viewer && html`<${Note} level="info" sentence="Who watches is shown to viewers of the server only." />`}
    ${me?.viewer && html`<${Loaded} of=${answer}>${(/** @type {any} */ data) => html`<${Table} name="watches" caption="watches of ${node.path}" rows=${data.items} truncated=${data.truncated} rowKey=${(/** @type {any} */ row) => `${row.session} ${row.server}`}
      empty=${html`<${Empty} title="Nobody watches this znode." />`} columns=${[
        { key: 'session', label: 'Session', render: (/** @type {any} */ row) => html`<a href=${link('sessions', { id: row.session })}>${row.session}</a>` },
        { key: 'address', label: 'Address' },
        { key: 'server', label: 'Server', align: 'end' },
        { key: 'kinds', label: 'Kinds', value: (/** @type {any} */ row) => [row.kinds ?? []].flat().join(', ') },
      ]} />`}</>`}</div>`;
}

