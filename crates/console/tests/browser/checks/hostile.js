// Names, data and identities that would be markup or programs if a page took them for that.

import { randomUUID } from 'node:crypto';
import { close, goTo, has, open, profile } from '../browser.js';
import { word } from '../shells.js';
import { expect, until } from '../until.js';

const RUN = 'window.__hacked=1';
/** What a tag would look like. It has no slash, so it can be a name. */
const IMAGE = `<img src=x onerror=${RUN}>`;
const NAMES = [
  IMAGE, `<script>${RUN}<`, `"><svg onload=${RUN}>`, `' onmouseover='${RUN}`, `javascript:${RUN}`, '${' + RUN + '}', '&lt;b&gt;&amp;', `\u202egnp.${RUN}`, 'a\u2066b\u200bc\u2028d', '%2e%2e%2f', '..%00', '?path=#', ' a b ', '\\', `x'; ${RUN}; '`,
  `x${'<b>'.repeat(2000)}`,
];
const DATA = [`<html><script>${RUN}</script><img src=x onerror="${RUN}">`, `{"a":"<img src=x onerror=${RUN}>","__proto__":{"b":"</script><script>${RUN}</script>"}}`, `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a onload="${RUN}">&b;</a>`, `\u001b[31m\u202e${IMAGE}`];
const TABS = ['data', 'stat', 'acl', 'children', 'history', 'watches'];
const QUERY = (/** @type {Record<string, string>} */ query) => `?${new URLSearchParams(query)}`;

/** Znodes and sessions of somebody who means harm. */
async function plant({ api, shells, servers }) {
  for (const [at, name] of NAMES.entries()) {
    const acl = [{ scheme: 'world', id: 'anyone', perms: 'cdrwa' }, { scheme: 'digest', id: `${IMAGE}:${at}`, perms: 'r' }];
    await api.create(`/hostile/${name}`, DATA[at % DATA.length], { acl });
  }
  const [name] = NAMES;
  await api.create(`/hostile/${name}/<script>${RUN}</script>/"><iframe srcdoc=x>`, DATA[0]);
  await api.create(`/hostile/lock-${name}`, '');
  await api.set(`/hostile/${name}`, DATA[1]);
  const group = `/hostile/lock-${name}`;
  return shells.hold(servers.members[0].address, [
    `addauth digest ${word(`${IMAGE}:secret`)}`, `create -e -s ${word(`${group}/_c_${randomUUID()}-lock-`)} ${word(IMAGE)}`, `create -e ${word(`/hostile/owned-${IMAGE}`)} ${word(DATA[0])}`,
    `get -w ${word(`/hostile/${name}`)}`, `addWatch ${word(`/hostile/lock-${name}`)}`, ...NAMES.slice(0, 6).map((one) => `get ${word(`/hostile/${one}`)}`),
  ]);
}

/** That nothing of it has become a part of the page. @param {any} page @param {string} where */
async function harmless(page, where) {
  const found = await page.evaluate(() => ({
    ran: window.__hacked,
    foreign: [...document.querySelectorAll('img, script, iframe, svg[onload], b b, object, embed, [srcdoc]')].map((one) => one.outerHTML.slice(0, 100)).filter((one) => !/^<img [^>]*assets\/icon\.svg|^<script type="module" src="assets\/app\.js"/.test(one)),
    handlers: [...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames().filter((name) => name.startsWith('on')).map((name) => `${one.tagName} ${name}`)),
    links: [...document.querySelectorAll('[href], [src], [action]')].map((one) => one.href ?? one.src ?? one.action).filter((url) => typeof url === 'string' && !url.startsWith(location.origin)),
  }));
  expect(found.ran === undefined, `${where}: a script ran`);
  for (const kind of ['foreign', 'handlers', 'links']) expect(found[kind].length === 0, `${where}: ${kind}: ${found[kind].slice(0, 3)}`);
}

/** Opens pages one after the other in one document. @param {any} context @param {[string, string?][]} hashes with a text that is to be seen */
async function walk(context, hashes) {
  const page = await open(context, 'ensemble', { allowed: [400, 403, 404] });
  for (const [hash, text] of hashes) {
    await goTo(page, hash);
    if (text) await has(page, text);
    await harmless(page, hash.slice(0, 120));
  }
  await close(page);
}

let planted;

export default {
  async 'znodes are text in all their parts'(world) {
    planted ??= await plant(world);
    const ofZnodes = NAMES.flatMap((name, at) => (at < 2 ? TABS : [TABS[at % TABS.length]]).map((tab) => [`tree${QUERY({ path: `/hostile/${name}`, tab })}`]));
    const acts = [[`tree${QUERY({ path: `/hostile/${NAMES[0]}`, edit: '1' })}`], [`tree${QUERY({ path: `/hostile/${NAMES[0]}/not there` })}`, 'There is no znode']];
    await walk(world.admin, [[`tree${QUERY({ path: '/hostile', tab: 'children' })}`, '<img src=x onerror='], ...ofZnodes, ...acts]);
  },

  async 'a search, and dialogs'(world) {
    planted ??= await plant(world);
    const path = `/hostile/${NAMES[0]}`;
    const page = await open(world.admin, `tree${QUERY({ search: '1', path })}`);
    await page.getByLabel('Name or path').fill('<');
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await has(page, `<script>${RUN}<`, '.tree-side');
    await harmless(page, 'search');
    for (const act of ['Create child', 'Copy', 'Move', 'Delete']) {
      await page.getByRole('button', { name: act, exact: true }).click();
      await page.waitForSelector('dialog[open] .primary, dialog[open] .danger');
      await harmless(page, act);
      await page.keyboard.press('Escape');
      await page.waitForSelector('dialog', { state: 'detached' });
    }
    await page.getByRole('tab', { name: 'History' }).click();
    await page.getByRole('button', { name: 'What changed' }).first().click();
    await harmless(page, 'history');
    await close(page);
  },

  async 'sessions, locks, watches, hot paths and clients are text'(world) {
    planted ??= await plant(world);
    const { api } = world;
    const { owner } = await api.get('/tree/node', { path: `/hostile/owned-${IMAGE}` });
    const group = `/hostile/lock-${IMAGE}`;
    await until('the group is recognised', () => api.get('/recipes/group', { path: group }).then(({ holder }) => holder?.id === IMAGE));
    await until('the watch is surveyed', () => api.get('/watches', { by: 'path', path: `/hostile/${IMAGE}` }).then(({ items }) => items.length > 0));
    await walk(world.admin, [
      ['sessions', `digest:${IMAGE}`], [`sessions?id=${owner.session}`], ['sessions?state=ended'], [`sessions${QUERY({ id: IMAGE })}`], [`sessions${QUERY({ address: IMAGE, server: '1' })}`],
      ['leadership', IMAGE], [`leadership${QUERY({ path: group })}`, IMAGE], [`leadership${QUERY({ path: `/${IMAGE}` })}`], ['watches', IMAGE], [`watches${QUERY({ path: `/hostile/${IMAGE}` })}`, IMAGE], ['watches?by=session'],
      ['operations', IMAGE], ['metrics'], ['configuration'], ['disk'], ['clients', IMAGE], ['elections'], ['ensemble'], [`sign-in${QUERY({ back: `javascript:${RUN}` })}`], [IMAGE],
    ]);
    planted.stdin.end();
  },

  async 'a configuration is text'({ browser, servers, assets }) {
    const context = await profile(browser, { base: servers.alone.base, assets });
    await walk(context, [['configuration', `<script>${RUN}</script>`]]);
    await context.close();
  },

  async 'data are never a page of their own'({ api }) {
    for (const query of [{ path: `/hostile/${IMAGE}` }, { path: `/hostile/${IMAGE}`, download: '1' }]) {
      const response = await fetch(`${api.base}/api/v1/tree/data${QUERY(query)}`);
      const kind = response.headers.get('content-type');
      const isAttachment = /^attachment/.test(response.headers.get('content-disposition') ?? '');
      expect(response.status === 200 && /json|octet-stream/.test(kind ?? '') && response.headers.get('x-content-type-options') === 'nosniff', `${kind}`);
      expect(!('download' in query) || isAttachment, 'the bytes are an attachment');
    }
  },
};
