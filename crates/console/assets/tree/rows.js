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
  const scale = full > tall ? (full - height) / (tall - height) : 1;
  const seen = Math.max(0, Math.min(top, tall - height)) * scale;
  const y = (/** @type {number} */ row) => Math.round(top + row * ROW - seen);
  return { tall, scale, first: Math.floor(seen / ROW), last: Math.min(rows, Math.ceil((seen + height) / ROW)), y };
}

/** The scroll position at which a row is seen: the present one, if it does. @param {number} row @param {number} top @param {number} height @param {number} rows */
export function scrollTo(row, top, height, rows) {
  const { scale } = windowOf(top, height, rows);
  const [above, below] = [row * ROW, (row + 1) * ROW - height];
  return top * scale > above ? above / scale : top * scale < below ? below / scale : top;
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
    this.total = total;
    this.startsWith = '';
    /** @type {any} */
    this.error = null;
    /** The open children by name. @type {Map<string, Folder>} */
    this.subs = new Map();
    /** @type {Map<number, Child[]>} */
    this.pages = new Map();
    /** @type {Map<number, string | undefined>} */
    this.cursors = new Map([[0, undefined]]);
    /** @type {number | null} */
    this.cversion = null;
    this.changes = 0;
    /** Whether the end of the list is not known yet. */
    this.hasMore = false;
    /** Whether the server has counted the rows. */
    this.isCounted = false;
    /** Whether the server knows places, not only cursors. */
    this.seeks = true;
    /** @type {Promise<void> | null} */
    this.busy = null;
    /** The page that is wanted. @type {number | null} */
    this.goal = null;
  }

  /** @returns {number} */
  get depth() {
    return this.parent ? this.parent.depth + 1 : 1;
  }

  /** The open children whose place is known, by place. */
  get open() {
    return [...this.subs.values()].filter(({ at }) => at >= 0).sort((a, b) => a.at - b.at);
  }

  get note() {
    if (this.error) return String(this.error.sentence ?? this.error);
    if (this.total || !this.pages.size) return '';
    return this.startsWith ? `No name starts with “${this.startsWith}”.` : 'No children.';
  }

  /** Its rows and those of its open children: at least one if there is something to say. @returns {number} */
  get size() {
    return this.open.reduce((sum, sub) => sum + sub.size, this.note ? 1 : this.total);
  }

  /** @param {number} at */
  child(at) {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }

  /** The folder and place of a row below it. @param {number} row @returns {Row} */
  rowAt(row) {
    let at = row;
    for (const sub of this.open) {
      if (at <= sub.at) break;
      const inside = at - sub.at - 1;
      if (inside < sub.size) return sub.rowAt(inside);
      at -= sub.size;
    }
    return { folder: this, at, child: this.child(at), note: this.note || undefined };
  }

  /** The row of a place, counted from the root's row. @param {number} at @returns {number} */
  rowOf(at) {
    const above = this.parent ? this.parent.rowOf(this.at) : 0;
    return this.open.reduce((sum, sub) => (sub.at < at ? sum + sub.size : sum), above + 1 + at);
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
  take(from, { items, next, total, matching, cversion, changes_since }) {
    const end = from + items.length;
    for (let at = 0; at < items.length || !at; at += PAGE) this.pages.set((from + at) / PAGE, items.slice(at, at + PAGE));
    this.cversion ??= cversion;
    this.changes = Math.max(this.changes, changes_since ?? 0, cversion - this.cversion);
    if (next && end % PAGE === 0) this.cursors.set(end / PAGE, next);
    // Behind the end there is nothing: the list has become shorter since somebody saw its length.
    const isBehind = !next && !items.length;
    // Without `matching` nobody has counted the names that start with a text, or they were counted with an earlier page.
    const all = this.startsWith ? (matching ?? (this.isCounted ? this.total : null)) : total;
    this.isCounted = all !== null;
    this.total = isBehind ? Math.min(from, all ?? total) : !next ? end : Math.max(end + 1, all ?? (this.hasMore ? this.total : 0));
    this.hasMore = !!next && !this.isCounted;
    this.place(from, items);
  }

  /** @param {number} from @param {Child[]} items */
  place(from, items) {
    if (!this.subs.size) return;
    items.forEach(({ name }, at) => {
      const sub = this.subs.get(name);
      if (sub) sub.at = from + at;
    });
  }
}

/** The whole tree as rows; the first is the root's. `changed` is called when rows are there that were not. */
export class Tree {
  /** @param {Ask} ask @param {() => void} changed */
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    this.root = new Folder('/', 0);
    /** Pages by their last use: the oldest first. @type {Map<string, [Folder, number]>} */
    this.recent = new Map();
  }

  get length() {
    return this.root.size + 1;
  }

  /** All open folders. */
  get folders() {
    const all = [this.root];
    for (const folder of all) all.push(...folder.subs.values());
    return all;
  }

  /** @param {number} row @returns {Row | null} null is the root's row */
  rowAt(row) {
    return row ? this.root.rowAt(row - 1) : null;
  }

  /** Where a row is now: its list may have been made anew. @param {Row | null} row */
  numberOf(row) {
    if (!row) return 0;
    const { folder, at, child } = row;
    const place = !child || folder.child(at)?.name === child.name ? at : folder.placeOf(child.name);
    return Math.min(folder.rowOf(place < 0 ? at : place), this.length - 1);
  }

  /** Asks for what is missing in these rows. @param {number} first @param {number} last */
  need(first, last) {
    if (!this.root.pages.size && !this.root.error) void this.load(this.root, 0);
    for (let row = Math.max(1, first); row < last; row++) {
      const { folder, at } = /** @type {Row} */ (this.rowAt(row));
      const page = Math.floor(at / PAGE);
      this.use(folder, page);
      if (!folder.pages.has(page) && !folder.error) void this.load(folder, page);
    }
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

  /** Loads a page; if another of the folder is on its way, after it. @param {Folder} folder @param {number} page */
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
    const { cursors } = folder;
    try {
      while (folder.goal !== null) {
        const { goal } = folder;
        const part = await this.part(folder, goal);
        // The folder has been listed anew meanwhile.
        if (cursors !== folder.cursors) return;
        if (!part) continue;
        const { start, answer } = part;
        folder.take(start, answer);
        for (let at = start; at < start + answer.items.length; at += PAGE) this.use(folder, at / PAGE);
        if (folder.goal === goal && (folder.pages.has(goal) || !answer.next)) folder.goal = null;
        this.changed();
      }
    } catch (error) {
      if (cursors === folder.cursors) folder.error = error;
    }
  }

  /** A page, or the pages on the way to it; null: try in another way. @param {Folder} folder @param {number} page @returns {Promise<{start: number, answer: ChildPage} | null>} */
  async part(folder, page) {
    const { cursors, startsWith } = folder;
    const ask = (/** @type {Partial<Wish>} */ wish) => this.ask(folder.path, { limit: PAGE, starts_with: startsWith, ...wish });
    const start = page * PAGE;
    if (cursors.has(page)) return { start, answer: await ask({ cursor: cursors.get(page) }) };
    if (folder.seeks) {
      const answer = await ask({ from: start });
      folder.seeks = answer.from === start;
      return folder.seeks ? { start, answer } : null;
    }
    if (!startsWith && folder.total - start <= WALK - PAGE) {
      // The end of the list is the start of the list in the other order.
      const end = await ask({ order: 'other', limit: WALK });
      const first = end.total - end.items.length;
      const start = Math.max(0, Math.ceil(first / PAGE) * PAGE);
      return { start, answer: { ...end, items: end.items.reverse().slice(start - first), next: null } };
    }
    // There is no way but through all pages before it.
    const known = Math.max(...[...cursors.keys()].filter((one) => one <= page));
    return { start: known * PAGE, answer: await ask({ cursor: cursors.get(known), limit: WALK }) };
  }

  /** @param {Folder} folder @param {number} at @returns {Folder | null} null: it is not loaded */
  expand(folder, at) {
    const child = folder.child(at);
    if (!child) return null;
    const sub = folder.subs.get(child.name) ?? new Folder(join(folder.path, child.name), child.num_children ?? 0, folder, at);
    folder.subs.set(child.name, sub);
    if (!sub.pages.size) void this.load(sub, 0);
    this.changed();
    return sub;
  }

  /** @param {Folder} folder */
  collapse(folder) {
    folder.parent?.subs.delete(nameOf(folder.path));
    this.changed();
  }

  /** The open folder of a path. @param {string} path @returns {Folder | null} */
  folderOf(path) {
    return this.folders.find((folder) => folder.path === path) ?? null;
  }

  /** Lists a folder anew; what is shown stays until then, and what is open stays open. @param {Folder} folder @param {string} [startsWith] */
  async refresh(folder, startsWith = folder.startsWith) {
    const fresh = new Folder(folder.path, folder.total);
    fresh.startsWith = startsWith;
    fresh.seeks = folder.seeks;
    await this.load(fresh, 0);
    folder.subs.forEach((sub) => (sub.at = -1));
    const { pages, cursors, total, cversion, error, hasMore, isCounted } = fresh;
    Object.assign(folder, { startsWith, pages, cursors, total, cversion, error, hasMore, isCounted, changes: 0 });
    folder.place(0, pages.get(0) ?? []);
    if (total <= PAGE && !startsWith) folder.subs.forEach(({ at }, name) => at < 0 && folder.subs.delete(name));
    this.use(folder, 0);
    this.changed();
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
      if (folder.placeOf(name) < 0 && folder.total > PAGE) await this.refresh(folder, name);
      const at = folder.placeOf(name);
      if (at < 0) return null;
      row = { folder, at, child: folder.child(at) };
    }
    return row;
  }
}
