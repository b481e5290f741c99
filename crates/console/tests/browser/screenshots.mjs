// Pictures of the pages of a real ensemble, for README and docs/images. See README.md.

import fs from 'node:fs';
import path from 'node:path';
import { options } from './arguments.js';
import { drawn, has, NARROW, open, profile, settled, WIDE } from './browser.js';
import { PAGES } from './checks/pages.js';
import { elect } from './fill.js';
import { withPalette } from './palette.js';
import { prepare } from './world.js';

const IMAGES = new URL('../../../../docs/images/', import.meta.url).pathname;
/** For documents: the name, the hash, and a text that the page has when it is complete. @type {[string, string, string][]} */
const DOCUMENTED = [
  ['ensemble', 'ensemble', 'Serving. 3 of 3 voters'], ['elections', 'elections?n=2', 'leads epoch 2'],
  ['tree', 'tree?path=/app/config', 'timeout_ms'], ['sessions', 'sessions', '127.0.0.1:'],
];
const MORE = [
  ['tree-stat', 'tree?path=/app/config&tab=stat', 'aversion'], ['tree-acl', 'tree?path=/app/config&tab=acl', 'anyone'], ['tree-children', 'tree?path=/jobs&tab=children', 'job-000001'],
  ['tree-history', 'tree?path=/app/motd&tab=history', 'create'], ['tree-search', 'tree?search=1&s.name=*lock*', '/locks/stock/_c_'], ['tree-edit', 'tree?path=/app/config&edit=1', 'byte for byte'],
  ['leader', 'leadership?path=/scheduler/leader', 'Hand over'], ['sign-in', 'sign-in', 'Password'], ['watches-by-session', 'watches?by=session', '0x'],
];

const given = options(['server', 'port', 'all', 'assets', 'node-modules', 'images']);
const images = path.resolve(typeof given.images === 'string' ? given.images : IMAGES);

/** Waits until the header has all that it shows. @param {any} page */
const headed = (page) => page.waitForFunction(() => document.querySelector('.top .dot')?.textContent?.includes('live') && document.querySelector('.top .name')?.textContent);

/** @param {any} context @param {[string, string, string]} which @param {string} file */
async function picture(context, [, hash, text], file) {
  const page = await open(context, hash);
  await has(page, text);
  await settled(page);
  await headed(page);
  await drawn(page);
  const png = withPalette(await page.screenshot());
  fs.writeFileSync(file, png);
  console.log(`${file} ${Math.ceil(png.length / 1000)} kB${page.said.length ? ` ${page.said.join('; ')}` : ''}`);
  await page.close();
}

/** Every page, dark and light, wide and narrow. @param {any} world @param {string} folder */
async function all(world, folder) {
  fs.mkdirSync(folder, { recursive: true });
  const state = await world.admin.storageState();
  for (const [theme, size] of [['light', WIDE], ['dark', WIDE], ['light', NARROW], ['dark', NARROW]]) {
    const context = await profile(world.browser, { base: world.server.base, assets: world.assets, state, theme });
    for (const which of [...PAGES, ...MORE]) {
      const name = `${which[0].replaceAll(' ', '-')}-${theme}-${size.width}.png`;
      const page = await open(context, which[1]);
      await page.setViewportSize(size);
      if (which[1].includes('search=')) await page.getByRole('button', { name: 'Find' }).click();
      await has(page, which[2]).catch((error) => console.log(`${name}: ${error.message}`));
      await settled(page);
      await headed(page);
      await drawn(page);
      await page.screenshot({ path: path.join(folder, name), fullPage: true });
      await page.close();
    }
    await context.close();
  }
}

/** Writes again and again, so that the first commit comes soon after an election. @param {any} world */
function write({ api }) {
  let isOver = false;
  const writing = (async () => {
    while (!isOver) await api.set('/app/motd', 'All is well.\n').catch(() => {});
  })();
  return () => {
    isOver = true;
    return writing;
  };
}

// The ports are in the pictures.
const world = await prepare({ port: '2181', ...given });
try {
  // A leader dies, so that there is an election to look at.
  const leader = await world.servers.untilLed();
  const stop = write(world);
  await leader.kill();
  await world.servers.untilLed(2, world.server);
  await stop();
  leader.start();
  await world.servers.untilLed(3, world.server);
  await elect(world, '/scheduler/leader', 3, world.server);
  if (given.all) await all(world, typeof given.all === 'string' ? given.all : 'console-pages');
  fs.mkdirSync(images, { recursive: true });
  for (const which of DOCUMENTED) await picture(world.admin, which, path.join(images, `console-${which[0]}.png`));
} finally {
  await world.end();
}
