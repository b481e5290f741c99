// Znodes that are deleted and created anew while somebody looks at them, and znodes that are put back.

import { close, drawn, has, open } from '../browser.js';
import { expect, until } from '../until.js';

const button = (page, name) => page.getByRole('button', { name, exact: true });
const dialog = (page, name) => page.locator('dialog').getByRole('button', { name, exact: true });
const remove = (api, path) => api.post('/tree/delete', { path, version: -1 });

/** Deletes a znode and creates it anew: it has the same version. @param {any} api @param {string} path @param {string} text */
async function anew(api, path, text) {
  await remove(api, path);
  await api.create(path, text);
}

/** The page has read the znode again. @param {any} page */
const readAgain = (page) => page.waitForResponse((response) => response.url().includes('/tree/node?'));

export default {
  async 'a draft is not saved over a znode that was created anew'({ admin, api }) {
    await api.create('/anew/draft', 'first\n');
    const page = await open(admin, 'tree?path=/anew/draft', { allowed: [409] });
    await button(page, 'Edit').click();
    await page.getByLabel('Value', { exact: true }).fill('first\nmine\n');
    await anew(api, '/anew/draft', 'another\n');
    await button(page, 'Save').click();
    await has(page, 'deleted while you wrote, and created anew');
    expect(await api.text('/anew/draft') === 'another\n', 'nothing is saved before somebody decides');
    await page.getByRole('button', { name: /^Save the result over version 0/ }).click();
    await has(page, 'mine', '[role=tabpanel] pre');
    expect(await api.text('/anew/draft') === 'first\nmine\n', 'what was decided is saved');
    await close(page);
  },

  async 'an ACL is not set on a znode that was created anew'({ admin, api }) {
    await api.create('/anew/acl', 'x');
    const page = await open(admin, 'tree?path=/anew/acl&tab=acl', { allowed: [409] });
    await button(page, 'Edit the ACL').click();
    await page.getByLabel('create for row 1').uncheck();
    await anew(api, '/anew/acl', 'x');
    await button(page, 'Save').click();
    await has(page, 'deleted and created anew');
    expect((await api.get('/tree/node', { path: '/anew/acl' })).stat.aversion === 0, 'the ACL is as it was');
    await close(page);
  },

  async 'the dialog to delete is about the znode that was seen when it opened'({ admin, api }) {
    await api.create('/anew/deleted', 'x');
    const page = await open(admin, 'tree?path=/anew/deleted', { allowed: [409] });
    await button(page, 'Delete').click();
    await has(page, 'version 0', 'dialog');
    await api.set('/anew/deleted', 'somebody else');
    await readAgain(page);
    await drawn(page);
    await has(page, 'version 0', 'dialog');
    await dialog(page, 'Delete').click();
    await has(page, 'changed meanwhile', 'dialog');
    await page.keyboard.press('Escape');
    await anew(api, '/anew/deleted', 'another');
    await readAgain(page);
    await button(page, 'Delete').click();
    await has(page, 'version 0', 'dialog');
    await anew(api, '/anew/deleted', 'a third');
    await dialog(page, 'Delete').click();
    await has(page, 'deleted and created anew', 'dialog');
    expect(await api.text('/anew/deleted') === 'a third', 'it is still there');
    await close(page);
  },

  async 'a deleted znode is put back with its ACL and of its kind'({ admin, api }) {
    const acl = [{ scheme: 'world', id: 'anyone', perms: 'ra' }, { scheme: 'auth', id: '', perms: 'cdrwa' }];
    await api.create('/anew/back', 'its data', { mode: 'container', acl });
    const before = await api.get('/tree/node', { path: '/anew/back' });
    await remove(api, '/anew/back');
    const page = await open(admin, 'tree?path=/anew/back', { allowed: [404] });
    await button(page, 'Put this value back').click();
    await has(page, 'as it was: world:anyone:ra', 'dialog');
    await dialog(page, 'Create').click();
    await has(page, 'its data', '[role=tabpanel] pre');
    const after = await api.get('/tree/node', { path: '/anew/back' });
    expect(after.kind === 'container', `it is ${after.kind}`);
    expect(JSON.stringify(after.acl) === JSON.stringify(before.acl), JSON.stringify(after.acl));
    await close(page);
  },

  async 'an ephemeral comes back only if somebody has chosen as what'({ admin, api, shells, servers }) {
    await shells.run(servers.hosts, ['create -e /anew/session x']);
    await until('its session is over', async () => !await api.exists('/anew/session'));
    const page = await open(admin, 'tree?path=/anew/session', { allowed: [404] });
    await button(page, 'Put this value back').click();
    await has(page, 'It was ephemeral', 'dialog');
    await dialog(page, 'Create').click();
    await drawn(page);
    expect(!await api.exists('/anew/session'), 'nothing is created without a choice');
    await page.locator('dialog').getByLabel('Kind').selectOption('persistent');
    await dialog(page, 'Create').click();
    await until('it is created', () => api.exists('/anew/session'));
    expect((await api.get('/tree/node', { path: '/anew/session' })).kind === 'persistent', 'it is persistent');
    await close(page);
  },

  async 'a copy that stopped with nothing made leaves the page where it was'({ admin, api, shells, servers }) {
    await api.create('/anew/with-owner', 'x');
    await shells.hold(servers.hosts, ['create -e /anew/with-owner/owner x']);
    await until('the ephemeral is there', () => api.exists('/anew/with-owner/owner'));
    const page = await open(admin, 'tree?path=/anew/with-owner', { allowed: [404] });
    await button(page, 'Copy').click();
    await page.getByLabel('To the path').fill('/anew/nothing');
    await page.locator('dialog .primary').click();
    await has(page, 'Stopped.', 'dialog');
    await page.locator('dialog .primary').click();
    await page.waitForSelector('dialog', { state: 'detached' });
    await drawn(page);
    expect((await page.locator('.tree-path').innerText()).includes('with-owner'), await page.locator('.tree-path').innerText());
    await close(page);
  },

  async 'the middle of 10,000 children whose names start with a text is reached in one step'({ admin, api, shells, servers }) {
    const commands = ['create /anew/many'];
    for (let at = 0; at < 20_000; at++) {
      if (at % 500 === 0) commands.push('begin');
      commands.push(`create /anew/many/${at % 2 ? 'odd' : 'even'}-${String(at).padStart(6, '0')} x`);
      if (at % 500 === 499) commands.push('commit');
    }
    await shells.run(servers.hosts, commands);
    const page = await open(admin, 'tree?path=/anew/many');
    await page.waitForFunction(() => document.querySelector('.tree-path')?.textContent?.includes('many'));
    await until('it is listed', async () => (await page.locator('.tree-rows .name').allInnerTexts()).includes('many'));
    await page.getByRole('treegrid').focus();
    await page.keyboard.press('ArrowRight');
    await until('its children are listed', async () => (await page.locator('.tree-rows .name').allInnerTexts()).includes('even-000000'));
    const asked = [];
    page.on('request', (request) => request.url().includes('/tree/children') && asked.push(request.url()));
    await page.getByLabel(/^Children of .*many/).fill('odd-');
    await until('the names are filtered', async () => (await page.locator('.tree-rows .name').allInnerTexts()).includes('odd-000001'));
    await has(page, '10,000', '.tree-status');
    await page.getByRole('treegrid').evaluate((grid) => { grid.scrollTop = grid.scrollHeight / 2; });
    await until('the middle is there', async () => (await page.locator('.tree-rows .name').allInnerTexts()).some((name) => /^odd-0(09|10)/.test(name)));
    expect(asked.some((url) => /[?&]from=\d/.test(url)), asked.join('\n'));
    expect(asked.length < 8, `asked ${asked.length} times`);
    await close(page);
  },
};
