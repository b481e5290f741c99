// The rows of the tree: znodes' children, page by page. Only pages near what is seen are kept.

/** @import {Child, ChildPage} from './types' */
/** @typedef {{cursor?: string, from?: number, limit: number, order?: string, starts_with: string}} Wish */
/** @typedef {(path: string, wish: Wish) => Promise<ChildPage & {from?: number}>} Ask */
/** A row. Without a child and a note it is not loaded yet. @typedef {{folder: Folder, at: number, child?: Child, note?: string}} Row */

export const PAGE = 200;
const WALK = 1000;
const MOST_PAGES = 60;

/** The height of a row, and of the highest box that all browsers can scroll. */
export const ROW = 26;
const TALLEST = 15_000_000;

/** What a scroll position shows. More rows than a box can be high move faster than the box. @param {number} top @param {number} height @param {number} rows */
export function windowOf(top, height, rows) {
  const full = rows * ROW;
  const tall = Math.min(full, TALLEST);
  const scale = full <= TALLEST ? 1 : (full - height) / (tall - height);
  const seen = Math.max(0, Math.min(top, tall - height)) * scale;
  const first = Math.floor(seen / ROW);
  const last = Math.min(rows, Math.ceil((seen + height) / ROW));
  return { tall, scale, first, last, /** Where a row is drawn. */ y: (/** @type {number} */ row) => Math.round(top + row * ROW - seen) };
}

/** The scroll position at which a row is seen: the present one, if it does. @param {number} row @param {number} top @param {number} height @param {number} rows */
export function scrollTo(row, top, height, rows) {
  const { scale } = windowOf(top, height, rows);
  const [above, below] = [row * ROW, (row + 1) * ROW - height];
  const seen = top * scale;
  return seen > above ? above / scale : seen < below ? below / scale : top;
}

export const join = (/** @type {string} */ path, /** @type {string} */ name) => (path === '/' ? `/${name}` : `${path}/${name}`);
export const parentOf = (/** @type {string} */ path) => path.slice(0, Math.max(1, path.lastIndexOf('/')));
export const nameOf = (/** @type {string} */ path) => path.slice(path.lastIndexOf('/') + 1) || '/';

/** An open znode. */
export class Folder {
  /** @param {string} path @param {number} total @param {Folder | null} parent @param {number} at its place in the parent */
  constructor(path, total, parent = null, at = 0) {
    this.path = path;
    this.parent = parent;
    this.at = at;
    this.depth = parent ? /** @type {number} */ (parent.depth) + 1 : 1;
    this.total = total;
    this.startsWith = '';
    this.error = /** @type {any} */ (null);
    /** The open children by name, and those of them whose place is known, by place. */
    this.subs = /** @type {Map<string, Folder>} */ (new Map());
    this.open = /** @type {Folder[]} */ ([]);
    this.cversion = /** @type {number | null} */ (null);
    this.changes = 0;
    this.asOf = '';
    this.pages = /** @type {Map<number, Child[]>} */ (new Map());
    this.cursors = /** @type {Map<number, string | undefined>} */ (new Map([[0, undefined]]));
    this.busy = /** @type {Promise<void> | null} */ (null);
    this.seeks = true;
    /** The row to which a walk is on its way. */
    this.goal = /** @type {number | null} */ (null);
  }

  /** Its rows without those of its children: at least one if there is something to say. */
  get own() {
    return this.note ? 1 : this.total;
  }

  get note() {
    if (this.error) return this.error.sentence ?? String(this.error);
    if (this.total || !this.pages.size) return '';
    return this.startsWith ? `No name starts with “${this.startsWith}”.` : 'No children.';
  }

  /** @returns {number} */
  get size() {
    return this.open.reduce((sum, sub) => sum + sub.size, this.own);
  }

  /** @param {number} at */
  child(at) {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }

  /** The folder and place of a row below it. @param {number} row @returns {Row} */
  rowAt(row) {
    let rest = row;
    for (const sub of this.open) {
      if (rest <= sub.at) break;
      const inside = rest - sub.at - 1;
      if (inside < sub.size) return sub.rowAt(inside);
      rest -= sub.size;
    }
    return { folder: this, at: rest, child: this.child(rest), note: this.note || undefined };
  }

  /** The row of a place, counted from the root's row. @param {number} at @returns {number} */
  rowOf(at) {
    const above = this.parent ? this.parent.rowOf(this.at) : 0;
    return above + 1 + this.open.reduce((sum, sub) => (sub.at < at ? sum + sub.size : sum), at);
  }

  /** The place of a name in the loaded pages. @param {string} name */
  placeOf(name) {
    for (const [page, items] of this.pages) {
      const at = items.findIndex((child) => child.name === name);
      if (at >= 0) return page * PAGE + at;
    }
    return -1;
  }

  /** Takes in children from a place on. @param {number} from @param {ChildPage} answer */
  take(from, answer) {
    const { items } = answer;
    for (let at = 0; at < items.length || !at; at += PAGE) this.pages.set((from + at) / PAGE, items.slice(at, at + PAGE));
    this.cversion ??= answer.cversion;
    this.asOf = answer.as_of_zxid;
    this.changes = Math.max(this.changes, answer.changes_since ?? 0, answer.cversion - this.cversion);
    if (answer.next && items.length % PAGE === 0) this.cursors.set((from + items.length) / PAGE, answer.next);
    this.total = answer.next ? Math.max(answer.total, from + items.length + 1) : from + items.length;
    items.forEach((child, at) => {
      const sub = this.subs.get(child.name);
      if (sub) sub.at = from + at;
    });
    this.place();
  }

  /** The open children whose place is known and still theirs. */
  place() {
    this.open = [...this.subs.values()].filter((sub) => sub.at >= 0).sort((a, b) => a.at - b.at);
  }
}

/** The whole tree as rows; the first is the root's. `changed` is called when rows are there that were not. */
export class Tree {
  /** @param {Ask} ask @param {() => void} changed */
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    this.root = new Folder('/', 0);
    /** Pages by their last use: the oldest first. */
    this.recent = /** @type {Map<string, [Folder, number]>} */ (new Map());
  }

  get length() {
    return this.root.size + 1;
  }

  /** @param {number} row @returns {Row | null} null is the root's row */
  rowAt(row) {
    return row === 0 ? null : this.root.rowAt(row - 1);
  }

  /** Asks for what is missing in these rows. @param {number} first @param {number} last */
  need(first, last) {
    for (let row = Math.max(1, first); row < last; row++) {
      const { folder, at } = /** @type {Row} */ (this.rowAt(row));
      const page = Math.floor(at / PAGE);
      this.use(folder, page);
      if (!folder.pages.has(page) && !folder.error) void this.load(folder, page);
    }
    if (!this.root.pages.size && !this.root.error) void this.load(this.root, 0);
  }

  /** @param {Folder} folder @param {number} page */
  use(folder, page) {
    const key = `${page} ${folder.path}`;
    this.recent.delete(key);
    this.recent.set(key, [folder, page]);
    for (const [old, [of, number]] of this.recent) {
      if (this.recent.size <= MOST_PAGES) break;
      of.pages.delete(number);
      this.recent.delete(old);
    }
  }

  /** Loads a page; if another of the folder is on its way, when it has come. @param {Folder} folder @param {number} page */
  load(folder, page) {
    folder.goal = page;
    folder.busy ??= this.fetch(folder).finally(() => {
      folder.busy = null;
      this.changed();
    });
    return folder.busy;
  }

  /** @param {Folder} folder */
  async fetch(folder) {
    const { cursors, startsWith } = folder;
    const wish = { limit: PAGE, starts_with: startsWith };
    const ask = (/** @type {Partial<Wish>} */ more) => this.ask(folder.path, { ...wish, ...more });
    try {
      while (folder.goal !== null && cursors === folder.cursors) {
        const page = /** @type {number} */ (folder.goal);
        const from = page * PAGE;
        let answer;
        let start = from;
        if (cursors.has(page)) {
          answer = await ask({ cursor: cursors.get(page) });
        } else if (folder.seeks) {
          answer = await ask({ from });
          folder.seeks = answer.from === from;
          if (!folder.seeks) continue;
        } else if (!startsWith && folder.total - from <= WALK - PAGE) {
          // The end of the list is the start of the list in the other order.
          const end = await ask({ order: 'other', limit: WALK });
          start = Math.max(0, Math.ceil((end.total - end.items.length) / PAGE) * PAGE);
          answer = { ...end, items: end.items.reverse().slice(end.items.length - (end.total - start)), next: null };
        } else {
          // There is no way but through all pages before it.
          const known = Math.max(...[...cursors.keys()].filter((one) => one <= page));
          start = known * PAGE;
          answer = await ask({ cursor: cursors.get(known), limit: WALK });
        }
        if (cursors !== folder.cursors) return;
        folder.take(start, answer);
        for (let at = start; at < start + answer.items.length; at += PAGE) this.use(folder, at / PAGE);
        if (folder.goal === page && (folder.pages.has(page) || !answer.next)) folder.goal = null;
        this.changed();
      }
    } catch (error) {
      if (cursors === folder.cursors) folder.error = error;
    }
  }

  /** @param {Folder} folder @param {number} at @returns {Folder | null} null: it is not loaded */
  expand(folder, at) {
    const child = folder.child(at);
    if (!child) return null;
    const sub = folder.subs.get(child.name) ?? new Folder(join(folder.path, child.name), child.num_children, folder, at);
    folder.subs.set(child.name, sub);
    folder.place();
    this.changed();
    return sub;
  }

  /** @param {Folder} folder */
  collapse(folder) {
    folder.parent?.subs.delete(nameOf(folder.path));
    folder.parent?.place();
    this.changed();
  }

  /** The open folder of a path. @param {string} path @returns {Folder | null} */
  folderOf(path) {
    /** @type {Folder | null | undefined} */
    let folder = this.root;
    for (const part of path.split('/').filter(Boolean)) folder = folder?.subs.get(part);
    return folder ?? null;
  }

  /** Lists a folder anew. Its open children stay open. @param {Folder} folder @param {{startsWith?: string}} [how] */
  async refresh(folder, { startsWith = folder.startsWith } = {}) {
    const fresh = new Folder(folder.path, folder.total, folder.parent, folder.at);
    fresh.startsWith = startsWith;
    fresh.seeks = folder.seeks;
    await this.load(fresh, 0);
    folder.subs.forEach((sub) => (sub.at = -1));
    const { pages, cursors, total, cversion, asOf, error } = fresh;
    Object.assign(folder, { startsWith, pages, cursors, total, cversion, asOf, error, changes: 0 });
    folder.take(0, { items: pages.get(0) ?? [], next: cursors.get(1) ?? null, total, cversion: cversion ?? 0, as_of_zxid: asOf, changes_since: 0, truncated: false });
    this.changed();
  }

  /** All open folders. @returns {Folder[]} */
  get folders() {
    const all = [this.root];
    for (const folder of all) all.push(...folder.subs.values());
    return all;
  }

  /** Opens the parents of a path, and gives its place; null: it is not found. @param {string} path @returns {Promise<Row | null>} */
  async reveal(path) {
    /** @type {Row | null} */
    let row = null;
    for (const name of path.split('/').filter(Boolean)) {
      /** @type {Folder | null} */
      const folder = row ? this.expand(row.folder, row.at) : this.root;
      if (!folder) return null;
      if (!folder.pages.size) await this.load(folder, 0);
      if (folder.placeOf(name) < 0 && folder.total > PAGE) await this.refresh(folder, { startsWith: name });
      const at = folder.placeOf(name);
      if (at < 0) return null;
      row = { folder, at, child: folder.child(at) };
    }
    return row;
  }
}
