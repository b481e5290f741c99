// Each page with real data, while it loads, and when the server refuses.

import { close, has, inspect, open, settled } from '../browser.js';
import { expect } from '../until.js';

/** The pages: the hash, and a text that only real data have. @type {[string, string, string][]} */
export const PAGES = [
  ['ensemble', 'ensemble', 'Serving. 3 of 3 voters'],
  ['elections', 'elections', 'leads epoch'],
  ['tree', 'tree?path=/app/config', 'timeout_ms'],
  ['sessions', 'sessions', '127.0.0.1:'],
  ['ended sessions', 'sessions?state=ended', 'close'],
  ['leadership', 'leadership', '/locks/report'],
  ['a group', 'leadership?path=/locks/report', '10.0.4.11'],
  ['watches', 'watches', '/app/config'],
  ['operations', 'operations', 'mostly'],
  ['metrics', 'metrics', 'Operations'],
  ['configuration', 'configuration', 'tickTime'],
  ['disk', 'disk', 'They grow by'],
  ['clients', 'clients', 'For example 127.0.0.1'],
];

/** Refuses all questions but who one is. */
export const refuse = (page) => page.route(/\/api\/v1\/(?!me$)/, (route) => route.fulfill({ status: 503, contentType: 'application/json', body: '{"code":"BUSY","sentence":"The server is busy with other questions."}' }));

/** Answers nothing but who one is. */
const hold = (page) => page.route(/\/api\/v1\/(?!me$)/, () => {});

const checks = {
  async 'the trees of three servers are compared by their digests'({ admin }) {
    const page = await open(admin, 'ensemble');
    await has(page, '= equal');
    await close(page);
  },
};
for (const [name, hash, text] of PAGES) {
  checks[`${name} with data`] = async ({ admin, axe }) => {
    const page = await open(admin, hash);
    await has(page, text);
    await settled(page);
    await inspect(page, axe);
    await close(page);
  };
  checks[`${name} loads`] = async ({ admin, axe }) => {
    const page = await open(admin, hash, { before: hold });
    await page.waitForSelector('main [aria-busy=true], .tree-rows .bar');
    await inspect(page, axe);
    expect(await page.locator('[role=alert]').count() === 0, 'an error is shown while the page loads');
    await close(page);
  };
  checks[`${name} says that the server refuses, and tries again`] = async ({ admin, axe }) => {
    const page = await open(admin, hash, { before: refuse, allowed: [503] });
    await has(page, 'The server is busy with other questions.');
    await inspect(page, axe);
    await page.unroute(/\/api\/v1\/(?!me$)/);
    await page.getByRole('button', { name: 'Try again' }).first().click();
    await has(page, text);
    await close(page);
  };
}
export default checks;
