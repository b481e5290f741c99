// A standalone server with many znodes.

import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { Api, digestId } from '../../crates/console/tests/browser/api.js';
import { until } from '../../crates/console/tests/browser/until.js';

const run = promisify(execFile);
export const ADMIN = { user: 'admin', password: 'secret' };
/** Levels of each chain below /deep. */
export const LEVELS = 100;
const SHELLS = 4;

export class Machine {
  /** @param {{program: string, folder: string, port: number}} how */
  constructor({ program, folder, port }) {
    Object.assign(this, { program, folder, host: `127.0.0.1:${port}`, base: `http://127.0.0.1:${port + 1}` });
    this.api = new Api(this.base).as(ADMIN);
    fs.writeFileSync(path.join(folder, 'zoo.cfg'), `${[
      `dataDir=${folder}`, `clientPort=${port}`, 'clientPortAddress=127.0.0.1', `admin.serverPort=${port + 1}`, 'admin.readOnly=false',
      `admin.operators=digest:${digestId(ADMIN)}`, '4lw.commands.whitelist=*',
    ].join('\n')}\n`);
  }

  async start() {
    const log = fs.openSync(path.join(this.folder, 'log'), 'a');
    this.process = spawn(this.program, ['server', path.join(this.folder, 'zoo.cfg')], { stdio: ['ignore', log, log] });
    await until('the server answers', () => this.api.get('/me'));
  }

  /** The result of `ostler bench`. @param {string[]} words */
  async bench(...words) {
    const { stdout } = await run(this.program, ['bench', ...words, '--server', this.host, '--json'], { maxBuffer: 1 << 24 });
    return JSON.parse(stdout);
  }

  /** A million children of one parent, and a million znodes in chains. @param {number} znodes */
  async fill(znodes) {
    await this.bench('fill', '--nodes', String(znodes), '--children-per-node', String(znodes), '--batch', '200', '--root', '/wide');
    const chains = Math.floor(znodes / LEVELS);
    await this.shell(['create /deep']);
    await Promise.all(Array.from({ length: SHELLS }, (_, shell) => this.shell(chainsOf(shell, chains))));
    const { znodes: now } = await this.api.get('/ensemble').then(({ servers }) => servers[0]);
    console.log(`${now ?? 'all'} znodes are there`);
  }

  /** @param {Iterable<string>} lines */
  async shell(lines) {
    const shell = spawn(this.program, ['shell', '-e', this.host], { stdio: ['pipe', 'ignore', 'inherit'] });
    const ended = new Promise((done) => shell.once('exit', done));
    for (const line of lines) {
      if (!shell.stdin.write(`${line}\n`)) await new Promise((done) => shell.stdin.once('drain', done));
    }
    shell.stdin.end();
    const code = await ended;
    if (code !== 0) throw new Error(`ostler shell ended with ${code}`);
  }

  async end() {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGKILL');
    await ended;
  }
}

/** The znode at the end of a chain. @param {number} chain */
export const bottom = (chain) => `/deep/chain-${chain}${Array.from({ length: LEVELS - 1 }, (_, level) => `/${level + 1}`).join('')}`;

/** @param {number} shell @param {number} chains */
function* chainsOf(shell, chains) {
  for (let chain = shell; chain < chains; chain += SHELLS) {
    yield 'begin';
    let path = `/deep/chain-${chain}`;
    yield `create ${path}`;
    for (let level = 1; level < LEVELS; level++) yield `create ${path += `/${level}`}`;
    yield 'commit';
  }
}

/** @param {number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
