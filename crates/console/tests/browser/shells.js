// Clients of the ensemble: `ostler shell`.

import { spawn } from 'node:child_process';
import { until } from './until.js';

/** A word for the shell, whatever characters it has. @param {string} text */
export function word(text) {
  const plain = [...Buffer.from(text)].map((byte) => (byte < 0x20 || byte > 0x7e || byte === 0x27 || byte === 0x5c ? `\\x${byte.toString(16).padStart(2, '0')}` : String.fromCharCode(byte)));
  return `$'${plain.join('')}'`;
}

export class Shells {
  /** @param {string} program */
  constructor(program) {
    this.program = program;
    /** @type {Set<import('node:child_process').ChildProcess>} */
    this.running = new Set();
  }

  /** Runs commands in a session of their own, which ends with them. @param {string} hosts @param {string[]} lines */
  async run(hosts, lines) {
    const shell = this.#spawn(['shell', '-e', hosts]);
    shell.stdin.end(`${lines.join('\n')}\n`);
    const code = await new Promise((done) => shell.once('exit', done));
    if (code !== 0) throw new Error(`ostler shell ended with ${code}: ${shell.said.slice(-300)}`);
  }

  /** Runs commands in a session that stays. @param {string} hosts @param {string[]} lines @param {string[]} [more] options */
  async hold(hosts, lines, more = []) {
    const shell = this.#spawn(['shell', '-e', ...more, hosts]);
    // The last answer has a line that no other has.
    shell.stdin.write(`${lines.join('\n')}\nls /zookeeper\n`);
    await until('a shell has run its commands', () => {
      if (shell.exitCode !== null) throw new Error(shell.said);
      return /^\[config, quota\]/m.test(shell.said);
    });
    return shell;
  }

  /** A program that leads, or waits to lead. @param {string} host @param {string} path */
  elect(host, path) {
    return this.#spawn(['shell', host, 'elect', path, '--', 'sleep', '600']);
  }

  #spawn(args) {
    const shell = spawn(this.program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    shell.said = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (data) => { shell.said += data; });
    shell.stdin.on('error', () => {});
    this.running.add(shell);
    shell.once('exit', () => this.running.delete(shell));
    return shell;
  }

  async end() {
    const ended = [...this.running].map((shell) => new Promise((done) => shell.once('exit', done)));
    this.running.forEach((shell) => shell.kill('SIGTERM'));
    await Promise.race([Promise.all(ended), new Promise((done) => setTimeout(done, 3000))]);
    this.running.forEach((shell) => shell.kill('SIGKILL'));
  }
}
