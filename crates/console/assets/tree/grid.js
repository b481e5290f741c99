// The tree as a treegrid of which only the rows in sight are drawn.

import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib/html.js';
import { useKeys } from '../lib/keys.js';
import { ago, bytes, count, escaped, Text, useNow } from '../lib/words.js';
import { join, ROW, scrollTo, windowOf } from './rows.js';

/** @import {Child, Kind} from './types' */
/** @import {Row, Tree} from './rows.js' */
/** @typedef {{tree: Tree, active: Row | null, activate: (row: Row | null) => void, selected: string, open: (path: string) => void, edit: () => void}} Props */

/** The letters of what a znode is. @type {[(child: Child) => boolean, string, string][]} */
const MARKS = [
  [({ kind }) => kind === 'ephemeral', 'E', 'ephemeral: it ends with its session'],
  [({ kind }) => kind === 'container', 'C', 'container: it is deleted some time after its last child'],
  [({ kind }) => kind === 'ttl', 'T', 'TTL: it is deleted if it is not changed for a time and has no children'],
  [({ kind }) => kind === 'system', 'S', 'of the system'],
  [({ has_quota }) => has_quota, 'Q', 'has a quota'],
  [({ watched }) => watched, 'W', 'somebody watches it'],
  [({ may_read }) => !may_read, '⊘', 'you may not read its data'],
];

/** @param {{of: Child}} props */
const Marks = ({ of }) => MARKS.filter(([is]) => is(of)).map(([, letter, title]) => html`<abbr class="mark-${letter}" title=${title}>${letter}<span class="unseen"> ${title}</span></abbr>`);

/** @param {Kind} kind */
export const kindLetter = (kind) => /** @type {Record<string, string>} */ ({ ephemeral: 'E', container: 'C', ttl: 'T', system: 'S' })[kind];

const pathOf = (/** @type {Row | null} */ row) => (row ? join(row.folder.path, row.child?.name ?? '') : '/');
const rowOf = (/** @type {Row | null} */ row) => (row ? row.folder.rowOf(row.at) : 0);

/** @param {Props} props */
export function Grid({ tree, active, activate, selected, open, edit }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(500);
  const now = useNow();
  const rows = tree.length;
  const view = windowOf(top, height, rows);
  const at = Math.min(rowOf(active), rows - 1);
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const watch = new ResizeObserver(() => setHeight(element.clientHeight - ROW));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  // A thumb that is dragged passes many rows: only those where it rests are asked for.
  useEffect(() => {
    const timer = setTimeout(() => tree.need(view.first - 20, Math.min(rows, view.last + 20)), 40);
    return () => clearTimeout(timer);
  });
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const wanted = scrollTo(at, element.scrollTop, height, rows);
    if (wanted !== element.scrollTop) element.scrollTop = wanted;
  }, [active?.folder, active?.at]);
  const move = (/** @type {number} */ row) => activate(tree.rowAt(Math.max(0, Math.min(rows - 1, row))));
  const isOpen = (/** @type {Row | null} */ row) => !row || !!row.child && row.folder.subs.has(row.child.name);
  const toggle = (/** @type {Row | null} */ row) => {
    if (!row?.child) return;
    const sub = row.folder.subs.get(row.child.name);
    if (sub) tree.collapse(sub);
    else if (row.child.num_children) tree.expand(row.folder, row.at);
  };
  const present = () => tree.rowAt(at);
  const page = Math.max(1, Math.floor(height / ROW) - 1);
  /** @type {Record<string, (event: KeyboardEvent) => unknown>} */
  const moves = {
    ArrowDown: () => move(at + 1),
    ArrowUp: () => move(at - 1),
    ArrowRight: () => (isOpen(present()) ? move(at + 1) : toggle(present())),
    ArrowLeft: () => {
      const row = present();
      if (row && isOpen(row)) toggle(row);
      else if (row) move(row.folder.parent ? row.folder.parent.rowOf(row.folder.at) : 0);
    },
    Home: () => move(0),
    End: () => move(rows - 1),
    PageDown: () => move(at + page),
    PageUp: () => move(at - page),
    Enter: () => (present()?.note ? false : open(pathOf(present()))),
  };
  const within = () => document.activeElement === box.current || document.activeElement === document.body || document.activeElement?.id === 'main';
  /** @type {typeof moves} */
  const keys = {};
  for (const [key, act] of Object.entries(moves)) keys[key] = (event) => (within() ? act(event) : false);
  const letter = (/** @type {string} */ key) => (/** @type {KeyboardEvent} */ event) => {
    box.current?.focus();
    return moves[key](event);
  };
  Object.assign(keys, { j: letter('ArrowDown'), k: letter('ArrowUp'), l: letter('ArrowRight'), h: letter('ArrowLeft'), e: edit });
  useKeys('Rows of the tree', keys);
  const drawn = [];
  for (let row = view.first; row < view.last; row++) drawn.push(row);
  return html`<div class="tree-grid" role="treegrid" tabindex="0" aria-label="Znodes" aria-rowcount=${rows + 1} aria-colcount="4" aria-activedescendant=${at >= view.first && at < view.last ? `row-${at}` : undefined}
    ref=${box} onScroll=${(/** @type {any} */ event) => setTop(event.target.scrollTop)}>
    <div role="rowgroup" class="tree-head"><div role="row" aria-rowindex="1"><span role="columnheader">Name</span><span role="columnheader" class="end">Children</span><span role="columnheader" class="end">Size</span><span role="columnheader" class="end">Changed</span></div></div>
    <div role="rowgroup" class="tree-rows" style=${{ height: `${view.tall}px` }}>${drawn.map((number) => html`<${Line} key=${number} number=${number} y=${view.y(number)} row=${tree.rowAt(number)} tree=${tree}
      isActive=${number === at} selected=${selected} isOpen=${isOpen} toggle=${toggle} now=${now}
      pick=${(/** @type {Row | null} */ row) => { activate(row); if (!row?.note) open(pathOf(row)); }} />`)}</div>
  </div>`;
}

/** @param {any} props */
function Line({ number, y, row, tree, isActive, selected, isOpen, toggle, pick, now }) {
  const { child, folder, at, note } = row ?? {};
  const shape = { transform: `translateY(${y}px)` };
  const level = row ? folder.depth + 1 : 1;
  const own = { role: 'row', id: `row-${number}`, 'aria-rowindex': number + 2, 'aria-level': level, style: shape };
  if (note) return html`<div ...${own} class="tree-note ${isActive ? 'active' : ''}"><span role="gridcell" aria-colspan="4" style=${{ paddingInlineStart: `${level * 14}px` }}><${Text} of=${note} /></span></div>`;
  if (row && !child) return html`<div ...${own} class=${isActive ? 'active' : ''}><span role="gridcell" style=${{ paddingInlineStart: `${level * 14}px` }}><span class="bar"><span class="unseen">Loading</span></span></span></div>`;
  const has = row ? child.num_children > 0 : true;
  const path = pathOf(row);
  const unfold = (/** @type {Event} */ event) => {
    event.stopPropagation();
    toggle(row);
  };
  return html`<div ...${own} aria-posinset=${row ? at + 1 : 1} aria-setsize=${row ? folder.total : 1} aria-expanded=${has ? isOpen(row) : undefined} aria-selected=${path === selected} class=${isActive ? 'active' : ''} onClick=${() => pick(row)} onDblClick=${unfold}>
    <span role="gridcell" style=${{ paddingInlineStart: `${level * 14 - 8}px` }}><span class="twist" aria-hidden="true" onClick=${unfold}>${has ? (isOpen(row) ? '▾' : '▸') : ''}</span><span class="name" title=${escaped(path)}><${Text} of=${row ? child.name : '/'} /></span>${row && html` <${Marks} of=${child} />`}</span>
    <span role="gridcell" class="end">${count(row ? child.num_children : tree.root.total)}</span>
    <span role="gridcell" class="end">${row && bytes(child.data_length)}</span>
    <span role="gridcell" class="end">${row && ago(child.mtime_ms, now).replace(' ago', '')}</span>
  </div>`;
}
