// Throughput and latency of a server with ten consoles and a search, and without.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { median } from './machine.js';

const SECONDS = '8';

/** @param {{machine: import('./machine.js').Machine, rounds: number}} plan */
export async function load({ machine, rounds }) {
  const kinds = {
    'getData': ['mix', '--ops', 'get=1', '--seconds', SECONDS],
    'setData': ['mix', '--ops', 'set=1', '--seconds', SECONDS],
    'get at 5,000 a second': ['rate', '--rate', '5000', '--op', 'get', '--seconds', SECONDS],
    'set at 2,000 a second': ['rate', '--rate', '2000', '--op', 'set', '--seconds', SECONDS],
  };
  for (const [name, words] of Object.entries(kinds)) {
    /** @type {{alone: any, beside: any}[]} */
    const pairs = [];
    for (let round = 0; round < rounds; round++) {
      const measured = {};
      for (const kind of round % 2 ? ['beside', 'alone'] : ['alone', 'beside']) {
        const consoles = kind === 'beside' ? await open(machine) : null;
        measured[kind] = await machine.bench(...words);
        await consoles?.close();
      }
      pairs.push(measured);
    }
    for (const [title, figure] of Object.entries(FIGURES)) {
      const [alone, beside] = ['alone', 'beside'].map((kind) => median(pairs.map((pair) => figure(pair[kind]))));
      const ratios = pairs.map((pair) => figure(pair.beside) / figure(pair.alone));
      console.log(`${name}: ${title} ${alone.toPrecision(4)}, with consoles ${beside.toPrecision(4)}: ratio ${median(ratios).toFixed(3)} (${ratios.map((one) => one.toFixed(2)).join(' ')})`);
    }
  }
}

/** @type {Record<string, (result: any) => number>} */
const FIGURES = {
  'requests a second': (result) => result.ops_per_second,
  'p50 us': (result) => result.latency_us.p50,
  'p99 us': (result) => result.latency_us.p99,
  'CPU us a request': (result) => result.server_process.cpu_us_per_op,
};

/** Ten consoles and a search, in a process of their own. @param {import('./machine.js').Machine} machine */
async function open(machine) {
  const process = spawn('node', [path.join(import.meta.dirname, 'consoles.js'), machine.base], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((done, failed) => {
    process.stdout.once('data', done);
    process.once('exit', () => failed(new Error('the consoles have ended')));
  });
  return { close: () => new Promise((done) => { process.once('exit', done); process.kill('SIGTERM'); }) };
}
