// The words of the pages when a server refuses, and when an act is not done yet.

import { close, has, inspect, open, profile } from '../browser.js';
import { elect } from '../fill.js';
import { expect, until } from '../until.js';

/** The streams of events that one address may have, see docs/console-api.md. */
const STREAMS = 16;
/** A name that leads to the server, and is none of its own. */
const OTHER_NAME = 'other-name.example';

/** Answers a path of the API in place of the server. @param {any} page @param {string} path @param {number} status @param {unknown} body */
const answer = (page, path, status, body) => page.route(`**/api/v1${path}`, (route) => route.fulfill({ status, contentType: 'application/json', body: JSON.stringify(body) }));

/** How often the page shows a text. @param {any} page @param {string} text */
const times = async (page, text) => (await page.locator('main').innerText()).split(text).length - 1;

/** Takes all streams that this address may have, and lets go of them at the end. @param {string} base */
async function takeStreams(base) {
  const stop = new AbortController();
  const one = async () => {
    const response = await fetch(`${base}/api/v1/events?topics=metrics`, { signal: stop.signal });
    if (response.status !== 200) return false;
    void (async () => { for await (const part of response.body) void part; })().catch(() => {});
    return true;
  };
  let taken = 0;
  while (taken < STREAMS + 1 && await one()) taken += 1;
  expect(taken > 0 && taken <= STREAMS, `${taken} streams were taken`);
  return () => stop.abort();
}

export default {
  async 'a name that the server does not know is named once, and nobody is asked to sign in'({ browser, servers, assets, axe }) {
    const { port } = new URL(servers.alone.base);
    const context = await profile(browser, { base: `http://${OTHER_NAME}:${port}`, assets });
    for (const hash of ['ensemble', 'tree', 'sign-in']) {
      const page = await open(context, hash, { allowed: [403, 'Cross-Origin-Opener-Policy header has been ignored'] });
      await has(page, `The request came by the name ${OTHER_NAME}`);
      await has(page, 'admin.hostNames');
      expect(await times(page, 'The request came by the name') === 1, `${hash}: the sentence is shown ${await times(page, 'The request came by the name')} times`);
      expect(await page.locator('main').getByRole('link', { name: 'Sign in' }).count() === 0, `${hash}: signing in would not help`);
      await inspect(page, axe);
      await close(page);
    }
    await context.close();
  },

  async 'too many pages that follow are named, and are fresh by questions'({ browser, servers, assets }) {
    const { alone } = servers;
    const context = await profile(browser, { base: alone.base, assets });
    const release = await takeStreams(alone.base);
    const page = await open(context, 'ensemble', { allowed: [429] });
    try {
      await has(page, 'follow this server: close some');
      await has(page, 'Serving.');
    } finally {
      release();
    }
    await page.waitForFunction(() => !document.querySelector('main')?.textContent?.includes('follow this server: close some'));
    await close(page);
    await context.close();
  },

  async 'somebody who may not sign in reads why'({ browser, servers, assets }) {
    const context = await profile(browser, { base: servers.alone.base, assets });
    const sentence = 'This port shows nothing to your identity.';
    const page = await open(context, 'sign-in', { allowed: [403], before: (page) => answer(page, '/sign-in', 403, { code: 'FORBIDDEN', sentence }) });
    await page.fill('[name=user]', 'ann');
    await page.fill('[name=password]', 'wrong');
    await page.click('form .primary');
    await has(page, sentence);
    await close(page);
    await context.close();
  },

  async 'an act that goes on is not called done'(world) {
    const { admin, server, api } = world;
    const path = '/scheduler/late';
    const [program] = await elect(world, path, 1, server);
    await until('the program leads', async () => (await api.get('/recipes', { under: path })).items[0]?.holder);
    const sentence = 'The leader was asked to end the session, and has not done so within 5 s.';
    const page = await open(admin, `leadership?path=${path}`, { before: (page) => answer(page, '/recipes/hand-over', 200, { done: false, sentence }) });
    await page.getByRole('button', { name: 'Expire the session …' }).click();
    await has(page, 'Only the leader', 'dialog');
    await page.locator('dialog button.danger').click();
    await has(page, `Not done yet ${sentence}`, 'dialog');
    await close(page);
    const disk = await open(admin, 'disk', { before: (page) => answer(page, '/disk/snapshot', 200, { done: false, snapshot: null }) });
    await disk.getByRole('button', { name: 'Snapshot now …' }).click();
    await disk.locator('dialog button.primary').click();
    await has(disk, 'Not done yet The server still writes the snapshot.', 'dialog');
    await close(disk);
    program.kill();
  },

  async 'a standalone server acts on its own disk'({ browser, servers, assets }) {
    const { alone } = servers;
    const me = { ...await alone.api.get('/me'), operator: true, read_only: false };
    const context = await profile(browser, { base: alone.base, assets });
    const page = await open(context, 'disk', { before: (page) => answer(page, '/me', 200, me) });
    await page.getByRole('button', { name: 'Snapshot now …' }).click();
    await has(page, 'serves its clients meanwhile', 'dialog');
    await close(page);
    await context.close();
  },

  async 'a group whose znodes go meanwhile is not called empty'({ admin, api }) {
    const path = '/locks/stock';
    const group = await api.get('/recipes/group', { path });
    const gone = { ...group, holder: null, queue: [], alarms: [], queue_left_out: 7 };
    const page = await open(admin, `leadership?path=${path}`, { before: (page) => answer(page, '/recipes/group*', 200, gone) });
    await has(page, 'The znode of the holder was deleted while the server looked at it.');
    await has(page, '7 znodes more stood behind them.');
    expect(await times(page, 'Nobody holds it.') === 0, 'nobody holds it, it says');
    await close(page);
  },
};
