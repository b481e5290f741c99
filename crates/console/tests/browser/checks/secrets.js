// ACLs hide znodes from a browser of nobody in particular: no page and no answer has them.

import { close, goTo, has, open, profile, signIn } from '../browser.js';
import { KEEPER, SECRETS } from '../fill.js';
import { expect } from '../until.js';

const [VALUE, CHILD, LOCK] = SECRETS;
const HASHES = [
  'ensemble', 'elections', 'tree', 'tree?path=/secret', 'tree?path=/secret&tab=stat', 'tree?path=/secret&tab=acl', 'tree?path=/secret&tab=children', 'tree?path=/secret&tab=history', 'tree?path=/secret&tab=watches',
  'sessions', 'sessions?state=ended', 'leadership', 'leadership?path=/secret', 'watches', 'watches?by=session', 'operations', 'metrics', 'configuration', 'disk', 'clients',
];
/** Questions that a page would not ask. */
const QUESTIONS = [
  '/tree/data?path=/secret', '/tree/data?path=/secret&download=1', '/tree/children?path=/secret', '/tree/history?path=/secret', '/tree/search?under=/secret&name=*', '/tree/search?under=/&name=secret-*', '/tree/search?under=/&value=secret-value',
  '/tree/search?under=/&larger_than=0', '/tree/plan?path=/secret&kind=delete', '/tree/plan?path=/secret&kind=set-acl', '/recipes?under=/secret', '/recipes/group?path=/secret', '/watches?by=path&limit=1000', '/watches?by=session', '/slow?limit=1000', '/hot',
  '/sessions?state=live&limit=1000', '/sessions?state=ended&limit=1000', '/ensemble', '/config', '/disk', '/clients', '/metrics', '/elections',
];

/** @param {string} text @param {string} where @param {string[]} [words] */
function hidesAll(text, where, words = SECRETS) {
  const found = words.find((one) => text.includes(one) || text.includes(Buffer.from(one).toString('base64').replace(/.{4}=*$/, '')));
  expect(!found, `${where} has ${found}: ${text.slice(Math.max(0, text.indexOf(found ?? '') - 100)).slice(0, 250)}`);
}

export default {
  async 'no page and no answer has what the ACLs hide'({ browser, server, assets }) {
    const context = await profile(browser, { base: server.base, assets });
    const answers = [];
    context.on('response', (response) => {
      if (/\/api\/v1\/(?!events)/.test(response.url())) answers.push(response.text().then((text) => [response.url(), text], () => null));
    });
    const page = await open(context, 'ensemble', { allowed: [401, 403, 404] });
    for (const hash of HASHES) {
      await goTo(page, hash);
      hidesAll(await page.evaluate(() => document.documentElement.outerHTML), `the page ${hash}`);
    }
    const all = (await Promise.all(answers)).filter(Boolean);
    expect(all.length >= 15, `only ${all.length} answers`);
    for (const [url, text] of all) hidesAll(text, url);
    await close(page);
    await context.close();
  },

  async 'no question of the API is answered with it'({ server }) {
    const { items } = await server.api.get('/sessions', { state: 'live', limit: '1000' });
    for (const path of [...QUESTIONS, ...items.map(({ id }) => `/sessions/${id}`)]) {
      const { text } = await server.api.raw(path);
      hidesAll(text, path);
    }
    // Whoever asks for a path knows it; the answer says nothing else.
    for (const path of [`/tree/data?path=/secret/${CHILD}`, `/tree/children?path=/secret/${CHILD}`, `/tree/children?path=/secret/${LOCK}`, `/tree/history?path=/secret/${CHILD}`]) {
      const { status, text } = await server.api.raw(path);
      expect(status === 403 || status === 401, `${path}: ${status} ${text.slice(0, 200)}`);
      hidesAll(text, path, [VALUE]);
    }
  },

  async 'whoever may read it sees it'({ browser, server, assets }) {
    const context = await profile(browser, { base: server.base, assets });
    await signIn(context, KEEPER);
    const page = await open(context, 'tree?path=/secret');
    await has(page, VALUE);
    await page.getByRole('tab', { name: /Children/ }).click();
    await has(page, CHILD);
    await close(page);
    await context.close();
  },
};
