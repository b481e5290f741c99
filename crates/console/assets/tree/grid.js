// The tree as a treegrid of which only the rows in sight are drawn.

import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib/html.js';
import { useKeys } from '../lib/keys.js';
import { ago, bytes, count, escaped, Text, useNow } from '../lib/words.js';
import { join, ROW, scrollTo, windowOf } from './rows.js';

/** @import {Child} from './types' */
/** @import {Row, Tree} from './rows.js' */

/** The letters of what a znode is. @type {[(child: Child) => unknown, string, string][]} */
const MARKS = [
  [({ kind }) => kind === 'ephemeral', 'E', 'ephemeral: it ends with its session'],
  [({ kind }) => kind === 'container', 'C', 'container: it is deleted some time after its last child'],
  [({ kind }) => kind === 'ttl', 'T', 'TTL: it is deleted if it is not changed for a time and has no children'],
  [({ kind }) => kind === 'system', 'S', 'of the system'],
  [({ has_quota }) => has_quota, 'Q', 'has a quota'],
  [({ watched }) => watched, 'W', 'somebody watches it'],
  [({ may_read }) => !may_read, '⊘', 'you may not read its data'],
];

/** @type {[string, string, string][]} */
const KEYS = [
  ['j', 'ArrowDown', 'Next row'], ['k', 'ArrowUp', 'Row before'], ['l', 'ArrowRight', 'Open the row, or its first child'], ['h', 'ArrowLeft', 'Close the row, or its parent'],
  ['', 'Home', 'First row'], ['', 'End', 'Last row'], ['', 'PageDown', 'A page down'], ['', 'PageUp', 'A page up'], ['', 'Enter', 'Show the znode'],
];

/** @param {Row | null} row */
export const pathOf = (row) => (row ? join(row.folder.path, row.child?.name ?? '') : '/');

/** @param {{tree: Tree, active: Row | null, activate: (row: Row | null) => void, selected: string, open: (path: string) => void}} props */
export function Grid({ tree, active, activate, selected, open }) {
  const box = useRef(/** @type {any} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(500);
  const now = useNow();
  const rows = tree.length;
  const view = windowOf(top, height, rows);
  const at = tree.numberOf(active);
  // Keys may come faster than pictures, so they count from here, and not from what is drawn.
  const here = useRef(at);
  here.current = at;
  const present = () => tree.rowAt(here.current);
  useEffect(() => {
    const watch = new ResizeObserver(() => setHeight(box.current.clientHeight - ROW));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  // A thumb that is dragged passes many rows: only those where it rests are asked for.
  useEffect(() => {
    const timer = setTimeout(() => tree.need(view.first - 20, Math.min(rows, view.last + 20)), 40);
    return () => clearTimeout(timer);
  });
  useLayoutEffect(() => {
    box.current.scrollTop = scrollTo(at, box.current.scrollTop, height, rows);
  }, [active]);
  const move = (/** @type {number} */ row) => {
    here.current = Math.max(0, Math.min(tree.length - 1, row));
    activate(present());
  };
  const isOpen = (/** @type {Row | null} */ row) => !row || !!row.child && row.folder.subs.has(row.child.name);
  const toggle = (/** @type {Row | null} */ row) => {
    const sub = row?.folder.subs.get(row.child?.name ?? '');
    if (sub) tree.collapse(sub);
    else if (row && row.child?.num_children !== 0) tree.expand(row.folder, row.at);
  };
  const pick = (/** @type {Row | null} */ row) => {
    activate(row);
    if (!row || row.child) open(pathOf(row));
  };
  const page = Math.max(1, Math.floor(height / ROW) - 1);
  const up = () => {
    const { parent, at } = present()?.folder ?? { parent: null, at: 0 };
    move(parent ? parent.rowOf(at) : 0);
  };
  /** @type {Record<string, () => unknown>} */
  const acts = {
    ArrowDown: () => move(here.current + 1),
    ArrowUp: () => move(here.current - 1),
    ArrowRight: () => (isOpen(present()) ? move(here.current + 1) : toggle(present())),
    ArrowLeft: () => (present() && isOpen(present()) ? toggle(present()) : up()),
    Home: () => move(0),
    End: () => move(tree.length - 1),
    PageDown: () => move(here.current + page),
    PageUp: () => move(here.current - page),
    Enter: () => pick(present()),
  };
  const isHere = () => [box.current, document.body, document.querySelector('main')].includes(document.activeElement);
  for (const [letter, key, help] of KEYS) {
    const byLetter = () => {
      box.current.focus();
      acts[key]();
    };
    useKeys(help, { ...(letter && { [letter]: byLetter }), [key]: () => (isHere() ? acts[key]() : false) });
  }
  const lines = [];
  for (let row = view.first; row < view.last; row++) {
    lines.push(html`<${Line} key=${row} number=${row} y=${view.y(row)} row=${tree.rowAt(row)} total=${tree.root.total} isActive=${row === at} ...${{ selected, isOpen, toggle, pick, now }} />`);
  }
  const head = ['Name', 'Children', 'Size', 'Changed'].map((title, n) => html`<span role="columnheader" class=${n ? 'end' : ''}>${title}</span>`);
  return html`<div class="tree-grid" role="treegrid" tabindex="0" aria-label="Znodes" aria-rowcount=${rows + 1} aria-colcount="4" aria-activedescendant=${at >= view.first && at < view.last ? `row-${at}` : undefined}
    ref=${box} onScroll=${(/** @type {any} */ event) => setTop(event.target.scrollTop)}>
    <div role="rowgroup" class="tree-head"><div role="row" aria-rowindex="1">${head}</div></div>
    <div role="rowgroup" class="tree-rows" style=${{ height: `${view.tall}px` }}>${lines}</div>
  </div>`;
}

/** @param {any} props */
function Line({ number, y, row, total, isActive, selected, isOpen, toggle, pick, now }) {
  const { child, folder, at, note } = row ?? {};
  const level = row ? folder.depth + 1 : 1;
  const own = { role: 'row', id: `row-${number}`, 'aria-rowindex': number + 2, 'aria-level': level, style: { transform: `translateY(${y}px)` } };
  const indent = { paddingInlineStart: `${level * 14 - 8}px` };
  if (row && !child) {
    return html`<div ...${own} class="tree-note ${isActive ? 'active' : ''}" title=${escaped(note)}><span role="gridcell" aria-colspan="4" style=${indent}>${note ? html`<${Text} of=${note} />` : html`<span class="bar"><span class="unseen">Loading</span></span>`}</span></div>`;
  }
  const sub = row?.folder.subs.get(child.name);
  const children = !row ? total : sub && sub.cversion !== null && !sub.startsWith ? sub.total : child.num_children;
  const has = !row || children !== 0;
  const path = pathOf(row);
  const unfold = (/** @type {Event} */ event) => {
    event.stopPropagation();
    toggle(row);
  };
  const marks = row && MARKS.filter(([is]) => is(child)).map(([, letter, title]) => html` <abbr class="mark-${letter}" title=${title}>${letter}<span class="unseen"> ${title}</span></abbr>`);
  const changed = row && !!child.mtime_ms && ago(child.mtime_ms, now).split(' ').slice(0, 2).join(' ');
  return html`<div ...${own} aria-posinset=${row ? at + 1 : 1} aria-setsize=${row ? folder.total : 1} aria-expanded=${has ? isOpen(row) : undefined} aria-selected=${path === selected} class=${isActive ? 'active' : ''} onClick=${() => pick(row)} onDblClick=${unfold}>
    <span role="gridcell" style=${indent}><span class="twist" aria-hidden="true" onClick=${unfold}>${has ? (isOpen(row) ? '▾' : '▸') : ''}</span><span class="name" title=${escaped(path)}><${Text} of=${row ? child.name : '/'} /></span>${marks}</span>
    ${[count(children), row && bytes(child.data_length), changed].map((cell) => html`<span role="gridcell" class="end">${cell}</span>`)}
  </div>`;
}
