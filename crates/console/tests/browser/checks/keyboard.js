// The pages without a mouse.

import { close, goTo, has, open, settled } from '../browser.js';
import { expect } from '../until.js';

/** What has the focus, and whether one sees it. @param {any} page */
const focus = (page) => page.evaluate(() => {
  const one = document.activeElement;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
  const { width, height } = one.getBoundingClientRect();
  const isMarked = (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1) || boxShadow !== 'none';
  return { name: `${one.tagName} ${one.getAttribute('aria-label') ?? one.textContent?.trim().slice(0, 40)}`, isSeen: isMarked && width > 0 && height > 0, isBody: one === document.body };
});

/** Presses Tab until a thing with this name has the focus. @param {any} page @param {RegExp} wanted */
async function tabTo(page, wanted) {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab');
    const { name, isSeen, isBody } = await focus(page);
    expect(isSeen || isBody, `the focus is not seen at ${name}`);
    if (wanted.test(name)) return;
  }
  throw new Error(`Tab does not come to ${wanted}`);
}

const activeRow = (page) => page.evaluate(() => document.getElementById(document.querySelector('[role=treegrid]')?.getAttribute('aria-activedescendant') ?? '')?.querySelector('.name')?.textContent);
const untilListed = (page, name) => page.waitForFunction((name) => [...document.querySelectorAll('.tree-rows .name')].some((one) => one.textContent === name), name);
const untilActive = (page, name) => page.waitForFunction((name) => document.getElementById(document.querySelector('[role=treegrid]')?.getAttribute('aria-activedescendant') ?? '')?.querySelector('.name')?.textContent === name, name);

export default {
  async 'a znode is found, opened, edited and saved by keys alone'({ admin, api }) {
    await api.create('/keys/value', 'before');
    const page = await open(admin, 'ensemble');
    await has(page, 'Serving');
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.waitForSelector('[role=treegrid]');
    await untilListed(page, 'keys');
    await tabTo(page, /^DIV Znodes/);
    await page.keyboard.press('Home');
    for (let row = 0; row < 30 && await activeRow(page) !== 'keys'; row++) {
      const before = await activeRow(page);
      await page.keyboard.press('ArrowDown');
      await page.waitForFunction((before) => document.getElementById(document.querySelector('[role=treegrid]')?.getAttribute('aria-activedescendant') ?? '')?.querySelector('.name')?.textContent !== before, before);
    }
    await untilActive(page, 'keys');
    await page.keyboard.press('ArrowRight');
    await untilListed(page, 'value');
    await page.keyboard.press('ArrowRight');
    await untilActive(page, 'value');
    await page.keyboard.press('Enter');
    await has(page, 'before', '[role=tabpanel] pre');
    await page.keyboard.press('e');
    await page.waitForSelector('textarea');
    await tabTo(page, /^TEXTAREA Value/);
    await page.keyboard.press('Control+a');
    await page.keyboard.type('after');
    await tabTo(page, /^BUTTON Save/);
    await page.keyboard.press('Enter');
    await has(page, 'after', '[role=tabpanel] pre');
    expect(await api.text('/keys/value') === 'after', 'it is saved');
    await close(page);
  },

  async 'a dialog takes the focus, Escape closes it, and the focus comes back'({ admin, api }) {
    await api.create('/keys/deleted', 'x');
    const page = await open(admin, 'tree?path=/keys/deleted');
    await settled(page);
    await tabTo(page, /^BUTTON Delete/);
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open]');
    expect(await page.evaluate(() => document.querySelector('dialog')?.contains(document.activeElement)), 'the focus is in the dialog');
    for (let presses = 0; presses < 6; presses++) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate(() => document.activeElement === document.body || document.querySelector('dialog')?.contains(document.activeElement)), 'Tab stays in the dialog');
    }
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    expect(/^BUTTON Delete/.test((await focus(page)).name), `the focus is at ${(await focus(page)).name}`);
    expect(await api.exists('/keys/deleted'), 'nothing is deleted');
    await close(page);
  },

  async 'rows of a table open and close by keys'({ admin }) {
    const page = await open(admin, 'sessions');
    await settled(page);
    await page.waitForSelector('tbody tr');
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    expect((await focus(page)).isSeen, 'the focus of a row is not seen');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open]');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    expect(/^TR/.test((await focus(page)).name), `the focus is at ${(await focus(page)).name}`);
    await close(page);
  },

  async 'each page can be walked with Tab'({ admin }) {
    const page = await open(admin, 'ensemble');
    for (const name of ['ensemble', 'elections', 'leadership', 'operations', 'configuration', 'disk', 'clients', 'sign-in']) {
      await goTo(page, name);
      for (let presses = 0; presses < 12; presses++) {
        await page.keyboard.press('Tab');
        const { name: at, isSeen, isBody } = await focus(page);
        expect(isSeen || isBody, `${name}: the focus is not seen at ${at}`);
      }
    }
    await close(page);
  },
};
