// All that the tests look at: servers with data, and a browser in which an operator has signed in.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { launch, profile, signIn } from './browser.js';
import { fill } from './fill.js';
import { packages } from './modules.js';
import { ADMIN, Servers } from './servers.js';
import { Shells } from './shells.js';

/** @param {Record<string, any>} given the options of the command line */
export async function prepare(given) {
  if (typeof given.server !== 'string') throw new Error('Name the program to test: --server target/debug/ostler');
  const program = path.resolve(given.server);
  const { chromium, axe } = packages(given['node-modules']);
  const isKept = typeof given.out === 'string';
  const folder = isKept ? path.resolve(given.out) : fs.mkdtempSync(path.join(os.tmpdir(), 'ostler-browser-'));
  const assets = given.assets && path.resolve(given.assets);
  const servers = await Servers.prepare({ program, folder, first: Number(given.port) || undefined });
  const shells = new Shells(program);
  const world = { servers, shells, axe, assets, browser: null };
  world.end = async () => {
    await world.browser?.close();
    await shells.end();
    await servers.end();
    if (!isKept) fs.rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void world.end().then(() => process.exit(130)));
  try {
    await start(world, { chromium });
  } catch (error) {
    await world.end();
    throw error;
  }
  return world;
}

async function start(world, { chromium }) {
  const { servers, assets } = world;
  const started = servers.start();
  started.catch(() => {});
  world.browser = await launch({ chromium });
  await started;
  const leader = await servers.untilLed();
  // Its console stays when the leader dies.
  world.server = servers.members.find((one) => one !== leader);
  world.api = world.server.api.as(ADMIN);
  await fill(world);
  world.admin = await profile(world.browser, { base: world.server.base, assets });
  await signIn(world.admin, ADMIN);
}
