// Runs the console of a real ensemble in a real browser. See README.md.

import { options } from './arguments.js';
import { prepare } from './world.js';

/** The subjects, in this order: the later ones change what the earlier ones look at. */
const SUBJECTS = ['sources', 'pages', 'secrets', 'empty', 'refusals', 'leadership', 'changes', 'tree', 'keyboard', 'hostile', 'origins', 'elections'];

const given = options(['server', 'port', 'only', 'out', 'assets', 'node-modules']);

/** All checks with their names. */
async function checks() {
  const all = [];
  for (const subject of SUBJECTS) {
    const { default: own } = await import(`./checks/${subject}.js`);
    for (const [name, check] of Object.entries(own)) all.push([`${subject}: ${name}`, check]);
  }
  return all.filter(([name]) => !given.only || name.includes(given.only));
}

/** @param {[string, (world: any) => Promise<void>][]} all @param {any} world */
async function run(all, world) {
  let failed = 0;
  for (const [name, check] of all) {
    const begun = Date.now();
    try {
      await check(world);
      console.log(`ok ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name} ${given.out ? error.stack : error.message}`);
    }
  }
  console.log(`${all.length - failed} passed, ${failed} failed, 0 skipped`);
  return failed;
}

const all = await checks();
const world = await prepare(given);
try {
  process.exitCode = await run(all, world) > 0 ? 1 : 0;
} finally {
  await world.end();
}
