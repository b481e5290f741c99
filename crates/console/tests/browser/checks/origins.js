// Pages of other sites, in the browser of an operator who has signed in.

import http from 'node:http';
import { expect } from '../until.js';

/** The paths that write, with bodies that would work. @param {any} ids @returns {[string, any][]} */
const WRITES = ({ session, plan, holder }) => [
  ['/tree/create', { path: '/forged', data: 'eA==', mode: 'persistent' }], ['/tree/set', { path: '/target', data: 'eA==', version: -1 }], ['/tree/delete', { path: '/target', version: -1 }],
  ['/tree/set-acl', { path: '/target', acl: [{ scheme: 'world', id: 'anyone', perms: 'r' }], version: -1 }], ['/tree/try-acl', { path: '/target', acl: [] }],
  ['/tree/delete-all', { plan, confirm: 'target' }], ['/tree/set-acl-all', { plan, acl: [{ scheme: 'world', id: 'anyone', perms: 'r' }] }], ['/tree/copy', { from: '/target', to: '/forged', move: false }], ['/tree/stop-run', { id: '1' }],
  [`/sessions/${session}/expire`, {}], ['/recipes/hand-over', { path: '/locks/stock', holder: holder?.path, token: holder?.token, way: 'expire' }],
  ['/hot/measure', { seconds: 30 }], ['/disk/snapshot', {}], ['/disk/purge', { keep: 3, plan: [] }], ['/sign-out', {}], ['/sign-in', { scheme: 'digest', user: 'mallory', password: 'x' }],
];

/** Runs in the foreign page: sends each body in all ways that need no leave. @param {{base: string, writes: [string, any][]}} what */
async function attack({ base, writes }) {
  const kinds = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'];
  for (const [path, body] of writes) {
    const url = `${base}/api/v1${path}`;
    const text = JSON.stringify(body);
    for (const kind of kinds) {
      const headers = { 'Content-Type': kind };
      for (const mode of ['no-cors', 'cors']) await fetch(url, { method: 'POST', mode, credentials: 'include', headers, body: text }).catch(() => {});
    }
    for (const headers of [{ 'Content-Type': 'application/json', 'X-Ostler-Token': '0' }, { 'Content-Type': 'application/json', Authorization: 'digest admin:secret' }]) {
      await fetch(url, { method: 'POST', credentials: 'include', headers, body: text }).catch(() => {});
    }
    await fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body: new Blob([text]) }).catch(() => {});
    navigator.sendBeacon(url, new Blob([text], { type: 'text/plain' }));
    // A form whose one field is the body.
    const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { name: `to-${path}` }));
    const form = document.body.appendChild(Object.assign(document.createElement('form'), { method: 'post', action: url, enctype: 'text/plain', target: frame.name }));
    const end = text.lastIndexOf('}');
    form.append(Object.assign(document.createElement('input'), { name: `${text.slice(0, end)}${end > 1 ? ',' : ''}"x":"`, value: '"}' }));
    const answered = new Promise((done) => frame.addEventListener('load', done));
    form.submit();
    await answered;
  }
  const read = await fetch(`${base}/api/v1/me`, { credentials: 'include' }).then((response) => response.text()).catch(() => '');
  const tried = writes.length;
  return { read, tried };
}

/** A page of another site. @returns {Promise<http.Server>} */
const otherSite = () => new Promise((done) => {
  const server = http.createServer((_, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>another site</title>')).listen(0, '127.0.0.1', () => done(server));
});

/** What the attacks could have changed. */
async function state({ api, servers }) {
  const node = await api.get('/tree/node', { path: '/target' });
  const stock = await api.get('/tree/children', { path: '/locks/stock' });
  const disk = await servers.members.find((one) => one.base === api.base).api.get('/disk?local=1');
  return JSON.stringify({ stat: node.stat, acl: node.acl, text: await api.text('/target'), forged: await api.exists('/forged'), stock: stock.items.map(({ name }) => name), snapshots: disk.disks[0].snapshots.map(({ name }) => name), measured: (await api.get('/hot')).measured });
}

export default {
  async 'nothing is written for a page of another site'(world) {
    const { admin, api, server, browser } = world;
    await api.create('/target', 'as it was');
    const plan = (await api.get('/tree/plan', { path: '/target', kind: 'delete' })).id;
    const { holder } = await api.get('/recipes/group', { path: '/locks/stock' });
    const before = await state(world);
    const site = await otherSite();
    // The console and the site have one host, so the browser sends the cookie along.
    const context = await browser.newContext({ storageState: await admin.storageState() });
    const statuses = new Map();
    context.on('response', (response) => {
      if (response.url().startsWith(server.base) && response.request().method() === 'POST') statuses.set(`${response.request().headers()['content-type']} ${response.url()}`, response.status());
    });
    try {
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${site.address().port}/`);
      const { read, tried } = await page.evaluate(attack, { base: server.base, writes: WRITES({ session: holder.session, plan, holder }) });
      expect(tried === 16 && statuses.size >= tried, `${statuses.size} requests of ${tried} paths were answered`);
      const taken = [...statuses].filter(([, status]) => status < 400);
      expect(taken.length === 0, `taken: ${taken.slice(0, 3).join('; ')}`);
      expect(read === '', 'another site reads who one is');
      expect(await state(world) === before, `${before} became ${await state(world)}`);
    } finally {
      await context.close();
      await new Promise((done) => site.close(done));
    }
    // With the right headers the same changes are taken, so it was not the body that was refused.
    await api.set('/target', 'changed');
    expect(await api.text('/target') === 'changed', 'the operator cannot write either');
  },

  async 'a name that leads to this host is not believed'({ server, api }) {
    const port = new URL(server.base).port;
    const ask = (headers, method = 'GET', path = '/api/v1/me', body = undefined) => new Promise((done, fail) => {
      const request = http.request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
        response.resume();
        done(response.statusCode);
      }).on('error', fail);
      request.end(body);
    });
    expect(await ask({ Host: `127.0.0.1:${port}` }) === 200, 'its own name is refused');
    const body = JSON.stringify({ path: '/rebound', data: '', mode: 'persistent' });
    const headers = { Host: `rebound.example:${port}`, Origin: `http://rebound.example:${port}`, 'Content-Type': 'application/json' };
    const status = await ask(headers, 'POST', '/api/v1/tree/create', body);
    expect(status >= 400 && !await api.exists('/rebound'), `a name of somebody else's is believed: ${status}`);
    expect(await ask({ Host: `rebound.example:${port}` }) >= 400, 'somebody else’s name may read');
  },
};
