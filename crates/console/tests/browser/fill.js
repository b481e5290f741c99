// Programs leave their data in an ensemble: configuration, services, locks, leaders, a queue of 10,000 jobs.

import { randomUUID } from 'node:crypto';
import { digestId } from './api.js';
import { word } from './shells.js';
import { until } from './until.js';

/** Somebody whose znodes only they may read. */
export const KEEPER = { user: 'keeper', password: 'of-the-secret' };
/** Words that are only in what the keeper may read. */
export const SECRETS = ['secret-value-4711', 'secret-child-4712', 'secret-lock-4713'];
export const JOBS = 10_000;
/** So small that these are more than 128 transactions: then the servers have a digest to compare. */
const JOBS_AT_ONCE = 50;

const CONFIG = { threads: 8, timeout_ms: 2500, hosts: ['db-1', 'db-2'], features: { search: true, export: false } };
const KEEPER_ONLY = `digest:${digestId(KEEPER)}:cdrwa`;

/** @param {string} name @param {number} port */
const instance = (name, port) => JSON.stringify({ name, id: randomUUID(), address: `${name}-${port % 10}.internal`, port, registrationTimeUTC: 1795786990244, serviceType: 'DYNAMIC' });

/** Commands that make a queue of jobs, in transactions. @param {number} jobs */
function* queue(jobs) {
  yield 'create /jobs';
  for (let at = 0; at < jobs; at++) {
    if (at % JOBS_AT_ONCE === 0) yield 'begin';
    yield `create /jobs/job-${String(at).padStart(6, '0')} {"to":"customer-${at}"}`;
    if ((at + 1) % JOBS_AT_ONCE === 0 || at === jobs - 1) yield 'commit';
  }
}

/** @param {{servers: import('./servers.js').Servers, shells: import('./shells.js').Shells, jobs?: number}} world */
export async function fill({ servers, shells, jobs = JOBS }) {
  const { hosts } = servers;
  const deep = `/deep${Array.from({ length: 40 }, (_, at) => `/level-${at + 1}`).join('')}`;
  await shells.run(hosts, [
    `create -p /app/config ${word(JSON.stringify(CONFIG))}`, 'create /app/config/limits {"requests_per_s":400}', 'create /app/motd Hello', `set /app/motd ${word('Good morning.\nAll is well.\n')}`,
    'create -c /app/members', 'create -p /services/orders', 'create /services/search', 'create /locks', 'create -p /locks/report', 'create -p /locks/stock', `create -p ${deep} bottom`,
    'setquota -n 100 /app', `create -b /app/logo ${Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 255]).toString('base64')}`,
    `create /secret x ${KEEPER_ONLY}`, 'addauth digest keeper:of-the-secret', `set /secret ${SECRETS[0]}`, `create /secret/${SECRETS[1]} ${SECRETS[0]} ${KEEPER_ONLY}`, `create /secret/${SECRETS[2]} x ${KEEPER_ONLY}`,
  ]);
  await shells.run(hosts, [...queue(jobs)]);
  await Promise.all(sessions().map(({ lines }, at) => shells.hold(servers.members[at % 3].address + `,${hosts}`, lines)));
}

/** The sessions that stay, by what they do. */
function sessions() {
  const lock = (path, id) => `create -e -s ${path}/_c_${randomUUID()}-lock- ${id}`;
  const serves = (name, port) => [`create -e -s /services/${name}/node- ${word(instance(name, port))}`, 'get -w /app/config', 'ls -w /app/members'];
  return [
    serves('orders', 8081), serves('orders', 8082), serves('search', 9201),
    [lock('/locks/report', '10.0.4.11')], [lock('/locks/report', '10.0.4.12')], [lock('/locks/stock', '10.0.4.13')],
    [`create -e -s /app/members/m- worker-1`, 'addWatch -m PERSISTENT_RECURSIVE /app', 'addWatch -m PERSISTENT /services'],
    ['addauth digest keeper:of-the-secret', `create -e /secret/${SECRETS[1]}/owner x ${KEEPER_ONLY}`, `create -e -s /secret/${SECRETS[2]}/_c_${randomUUID()}-lock- ${SECRETS[0]} ${KEEPER_ONLY}`,
      `get -w /secret/${SECRETS[1]}`, `addWatch /secret/${SECRETS[2]}`, `delete /secret/${SECRETS[1]}/owner`, `create -e /secret/${SECRETS[1]}/owner ${SECRETS[0]} ${KEEPER_ONLY}`],
  ].map((lines) => ({ lines }));
}

/** Programs that want to lead at a path, the first of them leading. @param {any} world @param {string} path @param {number} count @param {{address: string}} server */
export async function elect({ shells, servers }, path, count, server) {
  const programs = [];
  for (let at = 0; at < count; at++) {
    programs.push(shells.elect(server.address, path));
    await until(`${at + 1} stand in the queue of ${path}`, async () => (await servers.members[0].api.get('/tree/children', { path })).items.length === at + 1);
  }
  return programs;
}
