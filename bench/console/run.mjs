// How fast the console is at big trees, and what it costs. See README.md.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { options } from '../../crates/console/tests/browser/arguments.js';
import { load } from './load.js';
import { Machine } from './machine.js';
import { tree } from './tree.js';

const given = options(['server', 'only', 'port', 'rounds', 'znodes', 'node-modules', 'folder']);
const checkout = path.resolve(import.meta.dirname, '../..');
const folder = fs.mkdtempSync(path.join(given.folder ?? os.tmpdir(), 'ostler-console-'));
const machine = new Machine({
  program: path.resolve(given.server ?? path.join(checkout, 'target/release/ostler')),
  folder,
  port: Number(given.port ?? 25300),
});
const plan = { machine, rounds: Number(given.rounds ?? 5), znodes: Number(given.znodes ?? 1_000_000), modules: given['node-modules'] };
try {
  await machine.start();
  await machine.fill(plan.znodes);
  if (given.only !== 'load') await tree(plan);
  if (given.only !== 'tree') await load(plan);
} finally {
  await machine.end();
  fs.rmSync(folder, { recursive: true, force: true });
}
