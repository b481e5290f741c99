// The pages while servers die.

import { close, has, inspect, open, profile } from '../browser.js';
import { expect } from '../until.js';

export default {
  async 'a new election appears when the leader dies'({ admin, servers, server, axe }) {
    const leader = await servers.untilLed(3, server);
    const { elections } = await server.api.get('/elections');
    const { epoch } = elections[0];
    const page = await open(admin, 'elections');
    await has(page, `leads epoch ${epoch}`);
    await page.evaluate(() => { window.__sameDocument = true; });
    await leader.kill();
    await has(page, `leads epoch ${epoch + 1}`);
    const next = await servers.untilLed(2, server);
    expect(next !== leader, 'a dead server leads');
    await has(page, `Server ${servers.members.indexOf(next) + 1} leads epoch ${epoch + 1}`);
    await has(page, `Server ${servers.members.indexOf(leader) + 1} is not in these data`);
    expect(await page.evaluate(() => window.__sameDocument), 'the page was loaded anew');
    await inspect(page, axe);
    leader.start();
    await servers.untilLed(3, server);
    await page.waitForFunction(() => !document.querySelector('.silent'));
    await close(page);
  },

  async 'the moments of an election step by keys'({ admin }) {
    const page = await open(admin, 'elections');
    await has(page, 'leads epoch');
    const place = () => page.locator('.steps small').innerText();
    const first = await place();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction((before) => document.querySelector('.steps small')?.innerText !== before, first);
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((before) => document.querySelector('.steps small')?.innerText === before, first);
    await close(page);
  },

  async 'old data stay while the server is gone, and it comes back'({ browser, servers, assets }) {
    const { alone } = servers;
    const context = await profile(browser, { base: alone.base, assets });
    const page = await open(context, 'ensemble', { allowed: [0] });
    const shows = (text) => page.waitForFunction((text) => document.querySelector('.top .dot')?.textContent?.includes(text), text);
    await shows('live');
    await has(page, 'Serving.');
    await alone.kill();
    await shows('lost');
    await page.waitForSelector('main .stale .verdict');
    alone.start();
    await shows('live');
    await page.waitForFunction(() => !document.querySelector('main .stale'));
    await close(page);
    await context.close();
  },
};
