// Runs the console of a real ensemble in a real browser. See README.md.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { options } from './arguments.js';
import { launch, profile, signIn } from './browser.js';
import { fill } from './fill.js';
import { packages } from './modules.js';
import { ADMIN, Servers } from './servers.js';
import { Shells } from './shells.js';

/** The subjects, in this order: the later ones change what the earlier ones look at. */
const SUBJECTS = ['sources', 'empty', 'pages'];

const given = options(['server', 'port', 'only', 'out', 'node-modules']);
if (!given.server) throw new Error('Name the program to test: --server target/debug/ostler');
const program = path.resolve(given.server);
const folder = given.out ? path.resolve(given.out) : fs.mkdtempSync(path.join(os.tmpdir(), 'ostler-browser-'));
const tools = packages(given['node-modules']);

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
      console.log(`FAILED ${name} ${error.message}${given.out ? `\n${error.stack}` : ''}`);
    }
  }
  console.log(`${all.length - failed} passed, ${failed} failed, 0 skipped`);
  return failed;
}

async function main() {
  const all = await checks();
  fs.mkdirSync(folder, { recursive: true });
  const shells = new Shells(program);
  const servers = await Servers.prepare({ program, folder, first: Number(given.port) || undefined });
  const end = async () => {
    await shells.end();
    await servers.end();
    if (!given.out) fs.rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void end().then(() => process.exit(130)));
  let browser;
  try {
    const started = servers.start();
    browser = await launch(tools);
    await started;
    const leader = await servers.untilLed();
    const server = servers.members.find((one) => one !== leader);
    const world = { browser, servers, shells, server, axe: tools.axe, program, api: server.api.as(ADMIN) };
    await fill(world);
    world.admin = await profile(browser, { base: server.base });
    await signIn(world.admin, ADMIN);
    return await run(all, world);
  } finally {
    await browser?.close();
    await end();
  }
}

process.exitCode = (await main()) > 0 ? 1 : 0;
