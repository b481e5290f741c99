// The rows of the tree against a server that has its children in pages.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Folder, join, nameOf, parentOf, ROW, scrollTo, Tree, windowOf } from '../../assets/tree/rows.js';

/** @typedef {import('../../assets/tree/types').Child} Child */
/** @typedef {import('../../assets/tree/types').ChildPage} ChildPage */

/** A server with `children[path]` children below each path. It knows cursors, and places if `seeks`. */
class Server {
  /** @param {Record<string, number>} children @param {boolean} [seeks] */
  constructor(children, seeks = false) {
    this.children = children;
    this.seeks = seeks;
    this.asked = 0;
    this.cversion = 1;
  }

  /** @param {string} path @param {import('../../assets/tree/rows.js').Wish} wish @returns {Promise<ChildPage & {from?: number}>} */
  async ask(path, { cursor, from, limit, order, starts_with }) {
    this.asked++;
    await null;
    const all = this.children[path] ?? 0;
    const nameAt = (/** @type {number} */ n) => `n${String(order === 'other' ? all - 1 - n : n).padStart(7, '0')}`;
    const named = starts_with && Array.from({ length: all }, (_, n) => nameAt(n)).filter((name) => name.startsWith(starts_with));
    const total = named ? named.length : all;
    const start = this.seeks && from !== undefined ? from : Number(cursor ?? 0);
    const names = Array.from({ length: Math.max(0, Math.min(limit, total - start)) }, (_, n) => (named ? named[start + n] : nameAt(start + n)));
    const items = names.map((name) => /** @type {Child} */ ({ name, num_children: this.children[join(path, name)] ?? 0 }));
    const next = start + limit < total ? String(start + limit) : null;
    const page = { items, next, truncated: false, as_of_zxid: '0x1', cversion: this.cversion, total: all, changes_since: 0 };
    return this.seeks ? { ...page, from: cursor ? null : start, matching: cursor ? null : total } : page;
  }
}

/** @param {Server} server */
const treeOf = (server) => new Tree((path, wish) => server.ask(path, wish), () => {});

/** @param {Tree} tree */
async function settled(tree) {
  const busy = () => {
    const all = [tree.root];
    for (const folder of all) all.push(...folder.subs.values());
    return all.map((folder) => folder.busy).filter((one) => one !== null);
  };
  while (busy().length) await Promise.all(busy());
}

/** @param {Tree} tree @param {number} first @param {number} last */
async function seen(tree, first, last) {
  tree.need(first, last);
  await settled(tree);
  return Array.from({ length: Math.min(last, tree.length) - first }, (_, n) => {
    const row = tree.rowAt(first + n);
    return row ? (row.note ?? join(row.folder.path, row.child?.name ?? '?')) : '/';
  });
}

/** @param {Tree} tree @param {Row} row @typedef {import('../../assets/tree/rows.js').Row} Row */
const open = (tree, row) => /** @type {Folder} */ (tree.expand(row.folder, row.at));

test('a window of few rows shows them in their places', () => {
  const view = windowOf(100, 260, 50);
  assert.deepEqual([view.tall, view.scale, view.first, view.last], [1300, 1, 3, 14]);
  assert.equal(view.y(3), 78);
  assert.deepEqual([windowOf(9999, 260, 50).first, windowOf(9999, 260, 50).last], [40, 50]);
  assert.deepEqual([windowOf(0, 260, 2).first, windowOf(0, 260, 2).last], [0, 2]);
});

test('ten million rows fit into a box that browsers can scroll, from the first to the last', () => {
  const rows = 10_000_000;
  const height = 700;
  const { tall } = windowOf(0, height, rows);
  assert.ok(tall <= 15_000_000);
  assert.equal(windowOf(tall - height, height, rows).last, rows);
  for (const row of [0, 1, 12_345, 4_999_999, 9_999_998, 9_999_999]) {
    const top = scrollTo(row, 0, height, rows);
    const view = windowOf(top, height, rows);
    assert.ok(view.first <= row && row < view.last, `${row} in ${view.first} to ${view.last}`);
    const y = view.y(row) - top;
    assert.ok(y >= -1 && y + ROW <= height + 1, `${row} at ${y}`);
    assert.equal(scrollTo(row, top, height, rows), top);
  }
});

test('rows of open znodes stand below their parents', async () => {
  const tree = treeOf(new Server({ '/': 3, '/n0000001': 2, '/n0000001/n0000000': 1 }));
  assert.deepEqual(await seen(tree, 0, 9), ['/', '/n0000000', '/n0000001', '/n0000002']);
  const one = open(tree, /** @type {Row} */ (tree.rowAt(2)));
  await seen(tree, 0, 9);
  const deep = open(tree, /** @type {Row} */ (tree.rowAt(3)));
  assert.deepEqual(await seen(tree, 0, 9), ['/', '/n0000000', '/n0000001', '/n0000001/n0000000', '/n0000001/n0000000/n0000000', '/n0000001/n0000001', '/n0000002']);
  for (let row = 1; row < tree.length; row++) {
    const { folder, at } = /** @type {Row} */ (tree.rowAt(row));
    assert.equal(folder.rowOf(at), row);
  }
  assert.equal(tree.folderOf('/n0000001/n0000000'), deep);
  assert.equal(deep.depth, 3);
  tree.collapse(one);
  assert.equal(tree.length, 4);
});

for (const seeks of [true, false]) {
  test(`a million children: any place is reached, few pages are kept (the server ${seeks ? 'knows' : 'does not know'} places)`, async () => {
    const server = new Server({ '/': 1_000_050 }, seeks);
    const tree = treeOf(server);
    await seen(tree, 0, 30);
    assert.equal(tree.length, 1_000_051);
    assert.deepEqual(await seen(tree, 1_000_048, 1_000_051), ['/n1000047', '/n1000048', '/n1000049']);
    assert.ok(server.asked <= 5, `asked ${server.asked} times for the end`);
    assert.deepEqual(await seen(tree, 100_000, 100_002), ['/n0099999', '/n0100000']);
    assert.ok(server.asked <= (seeks ? 10 : 120), `asked ${server.asked} times`);
    for (let row = 0; row < 40_000; row += 150) assert.ok(!(await seen(tree, row, row + 40)).includes('/?'), `row ${row}`);
    assert.ok(tree.root.pages.size <= 60, `${tree.root.pages.size} pages`);
    assert.deepEqual(await seen(tree, 100_000, 100_001), ['/n0099999']);
  });
}

test('a folder that is listed anew keeps what is open in it', async () => {
  const server = new Server({ '/': 3, '/n0000001': 2 });
  const tree = treeOf(server);
  await seen(tree, 0, 9);
  open(tree, /** @type {Row} */ (tree.rowAt(2)));
  await seen(tree, 0, 9);
  server.children['/'] = 2;
  server.cversion = 4;
  await tree.refresh(tree.root);
  assert.deepEqual(await seen(tree, 0, 9), ['/', '/n0000000', '/n0000001', '/n0000001/n0000000', '/n0000001/n0000001']);
  assert.equal(tree.root.cversion, 4);
  await tree.refresh(tree.root, 'n0000000');
  assert.deepEqual(await seen(tree, 0, 9), ['/', '/n0000000']);
  await tree.refresh(tree.root, 'x');
  assert.deepEqual(await seen(tree, 0, 9), ['/', 'No name starts with “x”.']);
  await tree.refresh(tree.root, '');
  assert.equal((await seen(tree, 0, 9)).length, 5);
});

test('a list of names that start with a text grows while one scrolls, as nobody has counted it', async () => {
  const tree = treeOf(new Server({ '/': 1000 }));
  await seen(tree, 0, 30);
  await tree.refresh(tree.root, 'n00005');
  assert.equal(tree.length, 1 + 100);
  await tree.refresh(tree.root, 'n0000');
  assert.equal(tree.length, 1 + 201);
  for (let last = tree.length; ; last = tree.length) {
    assert.ok(!(await seen(tree, last - 20, last)).includes('/?'));
    if (last === tree.length) break;
  }
  assert.equal(tree.length, 1 + 1000);
  assert.ok(tree.root.pages.size <= 5);
});

test('a list of names that start with a text has its whole length where the server counts them', async () => {
  const server = new Server({ '/': 20_000 }, true);
  const tree = treeOf(server);
  await seen(tree, 0, 30);
  await tree.refresh(tree.root, 'n001');
  assert.deepEqual([tree.length, tree.root.hasMore], [10_001, false]);
  assert.deepEqual(await seen(tree, 7001, 7003), ['/n0017000', '/n0017001']);
  assert.deepEqual(await seen(tree, 9999, 10_001), ['/n0019998', '/n0019999']);
  assert.equal(tree.length, 10_001);
  await seen(tree, 190, 230);
  assert.deepEqual([tree.length, tree.root.hasMore], [10_001, false]);
  assert.ok(server.asked < 10, `asked ${server.asked} times`);
});

test('a place behind the end of a list that has become shorter makes no rows', async () => {
  for (const [startsWith, matching] of /** @type {[string, number | undefined][]} */ ([['', undefined], ['n', 3]])) {
    const folder = new Folder('/', 1000);
    folder.startsWith = startsWith;
    folder.take(600, /** @type {any} */ ({ items: [], next: null, total: 3, matching, cversion: 1, changes_since: 0 }));
    assert.equal(folder.total, 3);
  }
});

test('a later page of a list that has changed says how many changes there were', async () => {
  const server = new Server({ '/': 500 });
  const tree = treeOf(server);
  await seen(tree, 0, 30);
  server.cversion = 13;
  await seen(tree, 300, 330);
  assert.deepEqual([tree.root.cversion, tree.root.changes], [1, 12]);
});

test('a path is revealed, also below many children', async () => {
  const tree = treeOf(new Server({ '/': 5, '/n0000004': 1_000_000, '/n0000004/n0777777': 2 }));
  const row = await tree.reveal('/n0000004/n0777777/n0000001');
  assert.equal(row?.child?.name, 'n0000001');
  assert.equal(row?.folder.path, '/n0000004/n0777777');
  assert.equal(tree.folderOf('/n0000004')?.startsWith, 'n0777777');
  assert.equal(await tree.reveal('/n0000004/none'), null);
  assert.equal(await tree.reveal('/none/none'), null);
  assert.equal(await tree.reveal('/'), null);
});

test('a folder that is refused has one row with the reason, and no request is repeated', async () => {
  let asked = 0;
  const tree = new Tree(async () => {
    asked++;
    throw Object.assign(new Error('no'), { sentence: 'You may not read /.' });
  }, () => {});
  assert.deepEqual(await seen(tree, 0, 9), ['/', 'You may not read /.']);
  await seen(tree, 0, 9);
  assert.equal(asked, 1);
});

test('parts of paths', () => {
  assert.equal(join('/', 'a'), '/a');
  assert.equal(join('/a', 'b'), '/a/b');
  assert.equal(parentOf('/a'), '/');
  assert.equal(parentOf('/a/b'), '/a');
  assert.equal(nameOf('/a/b'), 'b');
  assert.equal(nameOf('/'), '/');
});
