// Pages in a browser, with all that the browser complains about.

import path from 'node:path';
import { expect, until } from './until.js';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
export const WIDE = { width: 1400, height: 900 };
export const NARROW = { width: 390, height: 844 };
// Other sites' names lead to the servers of the tests, as an attacker can make them.
const ARGUMENTS = ['--host-resolver-rules=MAP *.example 127.0.0.1', '--no-sandbox', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];

/** @param {{chromium: any}} packages */
export const launch = ({ chromium }) => chromium.launch({ executablePath: process.env.OSTLER_CHROMIUM || '/usr/bin/chromium', args: ARGUMENTS });

/**
 * A browser's profile at one console.
 * @param {any} browser
 * @param {{base: string, assets?: string, state?: any, theme?: string}} how `state`: the cookies of another context; `assets`: a folder whose files are shown in place of the server's
 */
export async function profile(browser, { base, assets, state, theme = 'light' }) {
  const context = await browser.newContext({ viewport: WIDE, colorScheme: theme, reducedMotion: 'reduce', storageState: state, baseURL: base });
  context.setDefaultTimeout(20_000);
  if (assets) {
    await context.route('**/console/assets/**', async (route) => {
      const url = new URL(route.request().url());
      const name = url.pathname.replace('/console/assets/', '');
      // Only the browser knows the names of other sites.
      url.hostname = '127.0.0.1';
      const response = await route.fetch({ url: url.href });
      await route.fulfill({ response, path: path.join(assets, name) });
    });
  }
  return context;
}

/**
 * An open page. `page.said` has what the browser complains about, but for what is in `allowed`: the status of a refusal (0: none), or a text.
 * @param {any} context
 * @param {string} hash such as `sessions?state=ended`
 * @param {{allowed?: (number | string)[], before?: (page: any) => Promise<unknown>}} [how]
 */
export async function open(context, hash, { allowed = [], before } = {}) {
  const page = await context.newPage();
  /** @type {string[]} */
  page.said = [];
  const base = context._options.baseURL;
  const isAllowed = (/** @type {string} */ text) => allowed.some((one) => text.includes(typeof one === 'string' ? one : one ? `status of ${one}` : 'net::ERR_'));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !isAllowed(message.text())) page.said.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => page.said.push(`thrown: ${error.stack}`));
  page.on('dialog', (dialog) => {
    page.said.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${base}/`) && !/^(data|blob):/.test(request.url())) page.said.push(`request to elsewhere: ${request.url()}`);
  });
  // Streams of events do not end.
  const counts = (/** @type {any} */ request) => !request.url().includes('/api/v1/events');
  page.waiting = new Set();
  page.on('request', (request) => counts(request) && page.waiting.add(request));
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => page.waiting.delete(request));
  await page.addInitScript(() => addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await before?.(page);
  await page.goto(`${base}/console/#/${hash}`, { waitUntil: 'domcontentloaded' });
  return page;
}

/** Waits until the page shows a text. @param {any} page @param {string} text @param {string} [where] */
export async function has(page, text, where = 'main') {
  const holds = ([where, text]) => !!document.querySelector(where)?.textContent?.includes(text);
  await page.waitForFunction(holds, [where, text]).catch(async () => {
    const shown = await page.evaluate((where) => document.querySelector(where)?.innerText, where);
    throw new Error(`the page has no “${text}”, but: ${String(shown).slice(0, 400)}; ${page.said.join('; ')}`);
  });
}

/** Waits until nothing in the page is loading. */
export const settled = (page) => page.waitForFunction(() => document.querySelector('main h1, main [role=treegrid]') && !document.querySelector('main [aria-busy=true], .tree-rows .bar'));

/** Goes to another page of the same document, and waits until it has all that it asked for. @param {any} page @param {string} hash */
export async function goTo(page, hash) {
  await page.evaluate((hash) => { location.hash = `#/${hash}`; }, hash);
  await until(`${hash} has its answers`, async () => {
    for (let picture = 0; picture < 2; picture++) {
      await drawn(page);
      if (page.waiting.size > 0) return false;
    }
    return true;
  });
  await settled(page);
}

/** Waits until the next picture is drawn. */
export const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Barriers that keep people out, of the grave kinds. @param {any} page @param {string} axe @returns {Promise<string[]>} */
export async function barriers(page, axe) {
  if (!await page.evaluate(() => 'axe' in window)) {
    // The page's policy lets no page add a script, so the driver does.
    const session = await page.context().newCDPSession(page);
    await session.send('Runtime.evaluate', { expression: axe });
    await session.detach();
  }
  const { violations } = await page.evaluate((values) => window.axe.run(document, { runOnly: { type: 'tag', values }, resultTypes: ['violations'] }), TAGS);
  const grave = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  return grave.map(({ id, help, nodes }) => `axe ${id}: ${help}: ${nodes.slice(0, 3).map((node) => `${node.target.join(' ')} (${node.any[0]?.message ?? node.all[0]?.message ?? ''})`).join('; ')}`);
}

/** By how many pixels the page is wider than its window. */
export const tooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Looks at a page wide and narrow, light and dark. @param {any} page @param {string} axe */
export async function inspect(page, axe) {
  for (const [size, theme] of [[WIDE, 'light'], [NARROW, 'dark']]) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: theme });
    await drawn(page);
    await until(`it is not wider than ${size.width} px`, async () => await tooWide(page) <= 0, 3000).catch(async (error) => page.said.push(`${error.message}: ${await widest(page)}`));
    page.said.push(...(await barriers(page, axe)).map((one) => `${theme}, ${size.width} px: ${one}`));
  }
  await page.setViewportSize(WIDE);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** The elements that reach beyond the window, but for those in a part that scrolls by itself. @param {any} page */
const widest = (page) => page.evaluate(() => {
  const beyond = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
  const scrolls = (one) => one && (getComputedStyle(one).overflowX !== 'visible' || scrolls(one.parentElement));
  return beyond.filter((one) => !scrolls(one.parentElement)).slice(0, 6).map((one) => `${one.tagName}.${one.className} ${one.textContent?.slice(0, 30)}`).join(' | ');
});

/** Closes a page that nobody complained about. @param {any} page */
export async function close(page) {
  const { said } = page;
  await page.close();
  expect(said.length === 0, [...new Set(said)].join('\n    '));
}

/** Signs in by the page for it. @param {any} context @param {{user: string, password: string}} who */
export async function signIn(context, { user, password }) {
  const page = await open(context, 'sign-in');
  await page.fill('[name=user]', user);
  await page.fill('[name=password]', password);
  await page.click('form .primary');
  await page.waitForSelector('text=Sign out');
  await close(page);
}
