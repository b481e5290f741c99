// First paint, rows, places and searches in trees of a million znodes, in a browser.

import { launch, profile, signIn } from '../../crates/console/tests/browser/browser.js';
import { packages } from '../../crates/console/tests/browser/modules.js';
import { ADMIN, bottom, LEVELS, median } from './machine.js';

/** @param {{machine: import('./machine.js').Machine, rounds: number, znodes: number, modules?: string}} plan */
export async function tree({ machine, rounds, znodes, modules }) {
  const { chromium } = packages(modules);
  const browser = await launch({ chromium });
  const signedIn = await profile(browser, { base: machine.base });
  await signIn(signedIn, ADMIN);
  const state = await signedIn.storageState();
  /** @type {Map<string, number[]>} */
  const figures = new Map();
  const note = (name, ms) => figures.set(name, [...(figures.get(name) ?? []), ms]);
  for (let round = 0; round < rounds; round++) {
    for (const [name, look] of Object.entries(LOOKS)) {
      const context = await profile(browser, { base: machine.base, state });
      const page = await context.newPage();
      await look(page, { base: machine.base, znodes, note: (what, ms) => note(`${name}: ${what}`, ms) });
      await context.close();
    }
  }
  await browser.close();
  for (const [name, values] of figures) console.log(`${name} ${median(values).toFixed(0)} ms (most ${Math.max(...values).toFixed(0)})`);
}

const timed = async (work) => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

/** When the browser drew the first text, in ms after the page was asked for. */
const firstPaint = (page) => page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime).then((handle) => handle.jsonValue());

/** The names that `ostler bench fill` gives. */
const PARENT = '0000';
const child = (/** @type {number} */ at) => String(at).padStart(6, '0');

const row = (/** @type {any} */ page, /** @type {string} */ name) => page.locator('.tree-rows .name', { hasText: new RegExp(`^${name}$`) });

/** Waits until a row is shown in the grid. @param {any} page @param {string} name */
const shown = (page, name) => page.waitForFunction((name) => [...document.querySelectorAll('.tree-rows .name')].some((one) => one.textContent === name), name, { polling: 'raf' });

/** The text that counts the matches of a search, once it has ended. */
const searched = (page) => page.waitForFunction(() => !document.querySelector('.tree-search progress') && /looked at/.test(document.querySelector('.tree-search [role=status]')?.textContent), null, { polling: 'raf' });

/** @param {any} page @param {string} name @param {string} value */
async function search(page, name, value) {
  await page.fill('.tree-search label:has-text("Name") input', name);
  await page.fill('.tree-search label:has-text("Value") input', value);
  await page.click('.tree-search .primary');
}

/** @type {Record<string, (page: any, how: {base: string, znodes: number, note: (what: string, ms: number) => void}) => Promise<void>>} */
const LOOKS = {
  'Ensemble': async (page, { base, note }) => {
    const whole = await timed(async () => {
      await page.goto(`${base}/console/#/ensemble`);
      await page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('main [aria-busy=true]'), null, { polling: 'raf' });
    });
    note('first paint', await firstPaint(page));
    note('with its data', whole);
  },
  'a million children': async (page, { base, znodes, note }) => {
    const whole = await timed(async () => {
      await page.goto(`${base}/console/#/tree?path=/wide`);
      await shown(page, 'wide');
    });
    note('first paint', await firstPaint(page));
    note('the root\'s rows', whole);
    await row(page, 'wide').click();
    await page.keyboard.press('ArrowRight');
    await shown(page, PARENT);
    await row(page, PARENT).click();
    note('opened, first rows', await timed(async () => {
      await page.keyboard.press('ArrowRight');
      await shown(page, child(0));
    }));
    note('first to last row', await timed(async () => {
      await page.keyboard.press('End');
      await page.keyboard.press('ArrowUp');
      await shown(page, child(znodes - 1));
    }));
    note('to the middle', await timed(async () => {
      await page.evaluate(() => { const grid = document.querySelector('.tree-grid'); grid.scrollTop = grid.scrollHeight / 2; });
      await page.waitForFunction((half) => [...document.querySelectorAll('.tree-rows .name')].some((one) => Math.abs(Number(one.textContent.replace(/\D/g, '')) - half) < half / 50), znodes / 2, { polling: 'raf' });
    }));
  },
  'a place in a million': async (page, { base, znodes, note }) => {
    const name = child(Math.floor(znodes * 0.7));
    note('shown by its path', await timed(async () => {
      await page.goto(`${base}/console/#/tree?path=/wide/${PARENT}/${name}`);
      await shown(page, name);
    }));
  },
  'search': async (page, { base, znodes, note }) => {
    await page.goto(`${base}/console/#/tree?search=1`);
    await page.waitForSelector('.tree-search');
    note('by a name, all looked at', await timed(async () => {
      await search(page, `*${child(Math.floor(znodes * 0.6))}`, '');
      await searched(page);
    }));
    await page.reload();
    await page.waitForSelector('.tree-search');
    note('by a value that nobody wrote, all looked at', await timed(async () => {
      await search(page, '', 'nobody-wrote-this');
      await searched(page);
    }));
  },
  'a hundred levels': async (page, { base, znodes, note }) => {
    const path = bottom(Math.floor(znodes / LEVELS / 2));
    note('shown by its path', await timed(async () => {
      await page.goto(`${base}/console/#/tree?path=${path}`);
      await shown(page, path.slice(path.lastIndexOf('/') + 1));
    }));
  },
};
