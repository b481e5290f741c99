// Changes of znodes by the pages: an edit, a conflict, a subtree of 10,000.

import { close, drawn, has, open } from '../browser.js';
import { JOBS } from '../fill.js';
import { expect, until } from '../until.js';

const button = (page, name) => page.getByRole('button', { name, exact: true });
const value = (page) => page.getByLabel('Value', { exact: true });

export default {
  async 'an edit is saved byte for byte'({ admin, api }) {
    await api.create('/edited/text', 'one\r\ntwo\r\n');
    const page = await open(admin, 'tree?path=/edited/text');
    await button(page, 'Edit').click();
    await value(page).fill('one\ntwo\nthree ≠ 3\n');
    await button(page, 'Save').click();
    await has(page, 'three ≠ 3', '[role=tabpanel] pre');
    expect(await api.text('/edited/text') === 'one\r\ntwo\r\nthree ≠ 3\r\n', `it is ${JSON.stringify(await api.text('/edited/text'))}`);
    await close(page);
  },

  async 'a conflict shows three sides, and saves what was decided'({ admin, api }) {
    await api.create('/edited/conflict', 'first\nsecond\nthird\n');
    const page = await open(admin, 'tree?path=/edited/conflict', { allowed: [409] });
    await button(page, 'Edit').click();
    await value(page).fill('first\nsecond of mine\nthird\n');
    await api.set('/edited/conflict', 'first\nsecond\nthird of theirs\n');
    await button(page, 'Save').click();
    await has(page, 'Somebody changed this znode while you wrote');
    const sides = async (label) => page.getByRole('region', { name: label }).innerText();
    expect(/\+ third of theirs/.test(await sides('What they changed')), await sides('What they changed'));
    expect(/\+ second of mine/.test(await sides('What you changed')), await sides('What you changed'));
    expect(await api.text('/edited/conflict') === 'first\nsecond\nthird of theirs\n', 'nothing is saved before somebody decides');
    const result = page.getByLabel('Result');
    await button(page, 'Take theirs').click();
    expect(await result.inputValue() === 'first\nsecond\nthird of theirs\n', await result.inputValue());
    const resolved = 'first\nsecond of mine\nthird of theirs\n';
    await result.fill(resolved);
    await page.getByRole('button', { name: /^Save the result over version 1/ }).click();
    await has(page, 'second of mine', '[role=tabpanel] pre');
    expect(await api.text('/edited/conflict') === resolved, `it is ${await api.text('/edited/conflict')}`);
    await close(page);
  },

  async 'a znode is created, copied, and deleted'({ admin, api }) {
    await api.create('/edited/parent', '');
    const page = await open(admin, 'tree?path=/edited/parent');
    await button(page, 'Create child').click();
    await page.getByLabel(/^Name below/).fill('child');
    await page.locator('dialog textarea').fill('its data');
    await button(page, 'Create').click();
    await has(page, 'its data', '[role=tabpanel] pre');
    expect(await api.text('/edited/parent/child') === 'its data', 'the child has its data');
    await button(page, 'Copy').click();
    await page.getByLabel('To the path').fill('/edited/parent/copy');
    await page.locator('dialog .primary').click();
    await has(page, 'Done.', 'dialog');
    await page.locator('dialog .primary').click();
    expect(await api.text('/edited/parent/copy') === 'its data', 'the copy has the data');
    await page.waitForFunction(() => location.hash.includes('copy') && document.querySelector('.tree-path')?.textContent?.includes('copy'));
    await button(page, 'Delete').click();
    await page.locator('dialog .danger').click();
    await until('it is deleted', async () => !await api.exists('/edited/parent/copy'));
    expect(await api.exists('/edited/parent/child'), 'its sibling stays');
    await close(page);
  },

  async 'a subtree of 10,000 is deleted with a plan and progress'({ admin, api }) {
    const page = await open(admin, 'tree?path=/jobs');
    await button(page, 'Delete').click();
    await has(page, (JOBS + 1).toLocaleString('en-US'), 'dialog');
    const act = page.locator('dialog button.danger');
    expect(await act.isDisabled(), 'nothing is deleted without the name');
    await page.locator('dialog input').fill('job');
    expect(await act.isDisabled(), 'nothing is deleted with another name');
    await page.locator('dialog input').fill('jobs');
    await act.click();
    await page.waitForFunction(() => (document.querySelector('dialog progress')?.value ?? 0) > 0);
    await has(page, 'Done.', 'dialog');
    await drawn(page);
    expect(await page.locator('dialog progress').evaluate((one) => one.value) === JOBS + 1, 'the progress is whole');
    await page.locator('dialog .primary').click();
    expect(!await api.exists('/jobs'), 'the parent is gone');
    await page.waitForFunction(() => !document.querySelector('.tree-rows')?.textContent?.includes('jobs'));
    await close(page);
  },
};
