// Real servers: an ensemble of three, and a standalone one.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Api, digestId } from './api.js';
import { until } from './until.js';

const MEMBERS = [1, 2, 3];
/** Who may act on the servers. */
export const ADMIN = { user: 'admin', password: 'secret' };

/** The ports of a server: for clients, for its admin server, for the quorum and for elections. */
const KINDS = 4;

/** Ports that were free just now, or from `first` on, each kind in a hundred of its own. @param {number} servers @param {number} [first] */
async function ports(servers, first) {
  const count = servers * KINDS;
  if (first) return Array.from({ length: count }, (_, at) => first + 100 * (at % KINDS) + Math.floor(at / KINDS));
  const held = await Promise.all(Array.from({ length: count }, () => new Promise((done) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => done(server));
  })));
  const found = held.map((server) => server.address().port);
  await Promise.all(held.map((server) => new Promise((done) => server.close(done))));
  return found;
}

/** One server: its folder, its ports and its process. */
class Server {
  constructor(program, folder, clients, admin) {
    Object.assign(this, { program, folder, clients, admin, process: null });
    this.address = `127.0.0.1:${clients}`;
    this.base = `http://127.0.0.1:${admin}`;
    this.api = new Api(this.base);
  }

  start() {
    const log = fs.openSync(path.join(this.folder, 'log'), 'a');
    this.process = spawn(this.program, ['server', path.join(this.folder, 'zoo.cfg')], { stdio: ['ignore', log, log] });
    fs.closeSync(log);
  }

  /** Ends it as a failure of its machine would. */
  async kill() {
    const { process } = this;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const ended = new Promise((done) => process.once('exit', done));
    process.kill('SIGKILL');
    await ended;
  }
}

/** Three members, and one server without an ensemble. */
export class Servers {
  /** @param {{program: string, folder: string, first?: number}} how */
  static async prepare({ program, folder, first }) {
    const all = await ports(MEMBERS.length + 1, first);
    const one = (at) => {
      const home = path.join(folder, `server-${at}`);
      fs.mkdirSync(home, { recursive: true });
      return new Server(program, home, all[at * KINDS], all[at * KINDS + 1]);
    };
    const servers = new Servers();
    servers.members = MEMBERS.map((id) => one(id - 1));
    servers.alone = one(3);
    const lines = MEMBERS.map((id) => `server.${id}=127.0.0.1:${all[id * KINDS - 2]}:${all[id * KINDS - 1]}:participant;${servers.members[id - 1].address}`);
    const peers = MEMBERS.map((id) => `${id}=127.0.0.1:${servers.members[id - 1].admin}`).join(';');
    for (const id of MEMBERS) {
      const member = servers.members[id - 1];
      fs.writeFileSync(path.join(member.folder, 'myid'), `${id}\n`);
      write(member, [...lines, 'standaloneEnabled=false', 'initLimit=20', 'syncLimit=10', `admin.peers=${peers}`, 'admin.readOnly=false', `admin.operators=digest:${digestId(ADMIN)}`, 'slowRequestThresholdMs=0']);
    }
    // A mistake in a configuration may look like this.
    write(servers.alone, [`clientPort=${servers.alone.clients}`, 'clientPortAddress=127.0.0.1', 'autopurge.<img src=x onerror=window.__hacked=1>=<script>window.__hacked=1</script>']);
    return servers;
  }

  get all() {
    return [...this.members, this.alone];
  }

  /** The client addresses of all members. */
  get hosts() {
    return this.members.map(({ address }) => address).join(',');
  }

  async start() {
    this.all.forEach((server) => server.start());
    await this.untilLed();
    await until('the standalone server answers', () => this.alone.api.get('/me'));
  }

  /** The leader, as soon as all running members work together. @param {number} [present] @param {Server} [ask] */
  async untilLed(present = MEMBERS.length, ask = this.members[0]) {
    const leader = await until(`${present} members work together`, async () => {
      const { leader, quorum } = await ask.api.get('/ensemble');
      return leader && quorum.present === present && leader.id;
    });
    return this.members[leader - 1];
  }

  async end() {
    await Promise.all(this.all.map((server) => server.kill()));
  }
}

/** @param {Server} server @param {string[]} lines */
function write({ folder, admin }, lines) {
  const common = ['tickTime=500', `dataDir=${folder}`, 'maxSessionTimeout=60000', 'preAllocSize=1024', 'forceSync=no', '4lw.commands.whitelist=*', `admin.serverPort=${admin}`];
  fs.writeFileSync(path.join(folder, 'zoo.cfg'), `${[...common, ...lines].join('\n')}\n`);
}
