// The page of the tree: left the znodes, right the one that is open.

import { get, search, useMe } from '../lib/api.js';
import { html, loadStyle, useEffect, useMemo, useRef, useState } from '../lib/html.js';
import { useKeys } from '../lib/keys.js';
import { useEvents } from '../lib/live.js';
import { Note } from '../lib/states.js';
import { count, plural, Text } from '../lib/words.js';
import { Grid, pathOf } from './grid.js';
import { ZnodePanel } from './node.js';
import { Button, typed } from './parts.js';
import { PAGE, parentOf, Tree } from './rows.js';
import { Search } from './search.js';

/** @import {Folder, Row, Wish} from './rows.js' */

loadStyle('./tree.css', import.meta.url);

const SORTS = Object.entries({ name: 'by name', sequence: 'by sequence', changed: 'by change' });

/** @param {{query: Record<string, string>, go: import('../lib/route.js').Go}} props */
export default function TreePage({ query, go }) {
  const path = query.path?.startsWith('/') ? query.path : '/';
  const [, redraw] = useState(0);
  const [active, activate] = useState(/** @type {Row | null} */ (null));
  const me = useMe();
  const ensemble = useEvents('ensemble', '/ensemble', { quiet: true, off: !me?.viewer }).data;
  const sort = query.sort ?? 'name';
  const isDown = query.order === 'desc';
  const present = useRef({ sort, isDown });
  present.current = { sort, isDown };
  const tree = useMemo(() => {
    const ask = (/** @type {string} */ path, /** @type {Wish} */ { order, ...wish }) => {
      const { sort, isDown } = present.current;
      return get(`/tree/children${search({ path, ...wish, sort, order: isDown !== !!order ? 'desc' : 'asc' })}`, { quiet: true });
    };
    return new Tree(ask, () => redraw((n) => n + 1));
  }, []);
  useEffect(() => {
    if (tree.root.pages.size) tree.folders.forEach((folder) => void tree.refresh(folder));
  }, [sort, isDown, me?.name]);
  useEffect(() => {
    let isOver = false;
    void tree.reveal(path).then((row) => !isOver && (row || path === '/') && activate(row));
    return () => void (isOver = true);
  }, [path]);
  const set = (/** @type {Record<string, unknown>} */ patch) => go(patch, { replace: true });
  const edit = () => set({ tab: null, edit: '1' });
  useKeys('Edit the data', { e: edit });
  useKeys('Search the tree', {
    '/': () => {
      set({ search: '1' });
      setTimeout(() => /** @type {HTMLElement | null} */ (document.querySelector('[data-search]'))?.focus(), 50);
    },
  });
  const open = (/** @type {string} */ path) => go({ path: path === '/' ? null : path, edit: null, view: null, unpack: null });
  /** Lists anew what a change of a path concerns. */
  const changed = (/** @type {string} */ path) => tree.folders.filter((folder) => [path, parentOf(path)].includes(folder.path)).forEach((folder) => void tree.refresh(folder));
  const folder = tree.folderOf(pathOf(active)) ?? active?.folder ?? tree.root;
  return html`<div class="tree-page">
    <h1 class="unseen">Tree</h1>
    <section class="tree-side panel" aria-label="Znodes">
      ${ensemble?.verdict?.level === 'critical' && !ensemble.leader && html`<${Note} level="critical" sentence="There is no quorum: this is the tree as this server has it, and changes fail." way_out=${ensemble.verdict?.way_out} />`}
      <div class="row"><${Jump} key=${folder.path} tree=${tree} folder=${folder} />
        <select aria-label="Sort" value=${sort} onChange=${typed((sort) => set({ sort }))}>${SORTS.map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}</select>
        <${Button} class="plain" aria-label="Last first" title="Last first" aria-pressed=${isDown} on=${() => set({ order: isDown ? null : 'desc' })}>${isDown ? '↓' : '↑'}</>
        <${Button} aria-pressed=${!!query.search} on=${() => set({ search: query.search ? null : '1' })}>Search</></div>
      ${query.search && html`<${Search} query=${query} set=${set} path=${path} open=${open} />`}
      <${Grid} tree=${tree} active=${active} activate=${activate} selected=${path} open=${open} />
      <${Status} tree=${tree} folder=${folder} sort=${sort} />
    </section>
    <${ZnodePanel} key=${path} listed=${tree.folderOf(path)} ...${{ path, query, set, open, changed, edit }} />
  </div>`;
}

/** Lists only the children whose names start with a text. @param {{tree: Tree, folder: Folder}} props */
function Jump({ tree, folder }) {
  const [text, set] = useState(folder.startsWith);
  useEffect(() => {
    const timer = setTimeout(() => text !== folder.startsWith && void tree.refresh(folder, text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => set(folder.startsWith), [folder.startsWith]);
  return html`<input class="jump" type="search" aria-label="Children of ${folder.path} whose names start with" placeholder="starts with …" value=${text} onInput=${typed(set)} />`;
}

/** What is listed, as of when. @param {{tree: Tree, folder: Folder, sort: string}} props */
function Status({ tree, folder, sort }) {
  const { path, total, hasMore, startsWith, cversion, changes, error } = folder;
  const goal = tree.folders.find(({ busy, goal, pages }) => busy && goal && !pages.has(goal))?.goal;
  const far = goal ? `; on the way to row ${count(goal * PAGE)} …` : '';
  const said = cversion === null ? (error ? 'not listed' : 'loading …') : html`${hasMore ? `more than ${count(total - 1)} children` : plural(total, 'child', 'children')}
    ${startsWith && html` that start with “<${Text} of=${startsWith} />”`} ${SORTS.find(([name]) => name === sort)?.[1]}, list as of cversion ${cversion}${changes > 0 && html`, <strong>${plural(changes, 'change')} since</strong>`}${far}`;
  return html`<p class="tree-status"><span role="status"><${Text} of=${path} />: ${said}</span>
    <${Button} on=${() => tree.folders.forEach((one) => (one === folder || one.error) && void tree.refresh(one))}>Refresh</></p>`;
}
