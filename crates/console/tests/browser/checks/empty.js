// Pages without anything to show: a standalone server without clients, read by somebody who has not signed in.

import { close, has, inspect, open, profile } from '../browser.js';

/** @type {[string, string, string][]} */
const PAGES = [
  ['ensemble', 'ensemble', 'There are no links.'], ['the card of a server', 'ensemble', 'This server is standalone'], ['elections', 'elections', 'Nobody to elect: this is a standalone server.'], ['tree', 'tree?path=/zookeeper/config', 'This znode has no data.'],
  ['sessions', 'sessions', 'No client is connected to'], ['ended sessions', 'sessions?state=ended', 'No session has ended since the servers started.'],
  ['leadership', 'leadership', 'No group of leaders or locks is recognised.'], ['watches', 'watches', 'watches anything.'], ['operations', 'operations', 'No operation took longer than'],
  ['metrics', 'metrics', 'Operations per second'], ['configuration', 'configuration', 'window.__hacked'], ['disk', 'disk', 'They grow by'], ['clients', 'clients', 'No request was refused.'],
  ['sign-in', 'sign-in', 'Password'], ['a page that does not exist', '<img src=x onerror=window.__hacked=1>', 'No such page'], ['a znode that does not exist', 'tree?path=/not/there', 'There is no znode at this path.'],
];

const checks = {};
for (const [name, hash, text] of PAGES) {
  checks[name] = async ({ browser, servers, assets, axe }) => {
    const context = await profile(browser, { base: servers.alone.base, assets });
    // That a znode does not exist is an answer, too.
    const page = await open(context, hash, { allowed: [404] });
    await has(page, text);
    await inspect(page, axe);
    await close(page);
    await context.close();
  };
}
export default checks;
