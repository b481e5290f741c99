// The page of the tree: left the znodes, right the one that is open.

import { get, search, useMe } from '../lib/api.js';
import { html, loadStyle, useEffect, useMemo, useRef, useState } from '../lib/html.js';
import { useKeys } from '../lib/keys.js';
import { count, plural, Text } from '../lib/words.js';
import { Grid } from './grid.js';
import { ZnodePanel } from './node.js';
import { PAGE, parentOf, Tree } from './rows.js';
import { Search } from './search.js';

/** @import {Folder, Row, Wish} from './rows.js' */
/** @typedef {{query: Record<string, string>, go: import('../lib/route.js').Go}} PageProps */

loadStyle('./tree.css', import.meta.url);

/** @param {PageProps} props */
export default function TreePage({ query, go }) {
  const path = query.path?.startsWith('/') ? query.path : '/';
  const [, redraw] = useState(0);
  const order = useRef({ sort: '', order: '' });
  const sort = query.sort ?? 'name';
  const isDown = query.order === 'desc';
  order.current = { sort, order: isDown ? 'desc' : 'asc' };
  const me = useMe();
  const tree = useMemo(() => {
    const ask = (/** @type {string} */ path, /** @type {Wish} */ wish) => {
      const { sort, order: own } = order.current;
      const other = own === 'asc' ? 'desc' : 'asc';
      return get(`/tree/children${search({ path, ...wish, sort, order: wish.order ? other : own })}`, { quiet: true });
    };
    return new Tree(ask, () => redraw((n) => n + 1));
  }, []);
  const [active, activate] = useState(/** @type {Row | null} */ (null));
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) tree.folders.forEach((folder) => void tree.refresh(folder));
    isFirst.current = false;
  }, [sort, isDown, me?.name]);
  useEffect(() => {
    let isOver = false;
    void tree.reveal(path).then((row) => !isOver && (row || path === '/') && activate(row));
    return () => void (isOver = true);
  }, [path, tree]);
  useKeys('Search the tree', {
    '/': () => {
      go({ search: '1' }, { replace: true });
      setTimeout(() => /** @type {HTMLElement | null} */ (document.querySelector('[data-search]'))?.focus(), 50);
    },
  });
  const open = (/** @type {string} */ path) => go({ path: path === '/' ? null : path, from: null });
  /** Lists anew what a change of a path concerns. */
  const changed = (/** @type {string} */ path) => {
    for (const one of [path, parentOf(path)]) {
      const folder = tree.folderOf(one);
      if (folder) void tree.refresh(folder);
    }
  };
  const under = active && tree.folderOf(active.folder.path === '/' ? `/${active.child?.name}` : `${active.folder.path}/${active.child?.name}`);
  const folder = under ?? active?.folder ?? tree.root;
  return html`<div class="tree-page">
    <h1 class="unseen">Tree</h1>
    <section class="tree-side panel" aria-label="Znodes">
      <div class="row">
        <${Jump} key=${folder.path} tree=${tree} folder=${folder} />
        <label><span class="unseen">Sort by</span><select value=${sort} onChange=${(/** @type {any} */ event) => go({ sort: event.target.value }, { replace: true })}>
          <option value="name">by name</option><option value="sequence">by sequence</option><option value="changed">by change</option></select></label>
        <button type="button" class="plain" aria-label="Order" title=${isDown ? 'Last first' : 'First first'} aria-pressed=${isDown} onClick=${() => go({ order: isDown ? null : 'desc' }, { replace: true })}>${isDown ? '↓' : '↑'}</button>
        <button type="button" aria-pressed=${!!query.search} onClick=${() => go({ search: query.search ? null : '1' }, { replace: true })}>Search</button>
      </div>
      ${query.search && html`<${Search} query=${query} go=${go} path=${path} open=${open} />`}
      <${Grid} tree=${tree} active=${active} activate=${activate} selected=${path} open=${open} edit=${() => go({ tab: null, edit: '1' }, { replace: true })} />
      <${Status} tree=${tree} folder=${folder} sort=${sort} />
    </section>
    <${ZnodePanel} key=${path} path=${path} query=${query} go=${go} open=${open} changed=${changed} listed=${tree.folderOf(path)} />
  </div>`;
}

/** Lists only the children whose names start with a text. @param {{tree: Tree, folder: Folder}} props */
function Jump({ tree, folder }) {
  const [text, set] = useState(folder.startsWith);
  useEffect(() => {
    if (text === folder.startsWith) return;
    const timer = setTimeout(() => void tree.refresh(folder, { startsWith: text }), 250);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => set(folder.startsWith), [folder.startsWith]);
  return html`<label class="jump"><span class="unseen">Children of ${folder.path} whose names start with</span>
    <input type="search" placeholder="starts with …" value=${text} onInput=${(/** @type {any} */ event) => set(event.target.value)} /></label>`;
}

const ORDERS = /** @type {Record<string, string>} */ ({ name: 'by name', sequence: 'by sequence number', changed: 'by last change' });

/** What is listed, as of when. @param {{tree: Tree, folder: Folder, sort: string}} props */
function Status({ tree, folder, sort }) {
  const goal = folder.busy && folder.goal && !folder.pages.has(folder.goal) ? folder.goal : 0;
  return html`<p class="tree-status"><span role="status"><${Text} of=${folder.path} />: ${plural(folder.total, 'child', 'children')}
    ${folder.startsWith && html` that start with “<${Text} of=${folder.startsWith} />”`} ${ORDERS[sort]}${folder.cversion !== null && html`, list as of cversion ${folder.cversion}`}${folder.changes > 0 && html`,
    ${' '}<strong>${plural(folder.changes, 'change')} since</strong>`}${goal > 0 && html`; on the way to row ${count(goal * PAGE)} …`}</span>
    <button type="button" onClick=${() => tree.folders.filter((one) => one === folder || one.error).forEach((one) => void tree.refresh(one))}>Refresh</button></p>`;
}
