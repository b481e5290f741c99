// node-zookeeper-client against the server at HOST:PORT.
//   node check.js HOST:PORT           every operation, watches, a lock-like queue of ephemerals
//   node check.js HOST:PORT hold PATH an ephemeral that is kept until the session ends; says so when it does
'use strict';
const assert = require('assert');
const zookeeper = require('node-zookeeper-client');

const [server, role, heldPath] = process.argv.slice(2);
const { CreateMode, Exception, ACL, Permission, Id } = zookeeper;

function connect() {
  const client = zookeeper.createClient(server, { sessionTimeout: 3000, spinDelay: 100, retries: 0 });
  return new Promise((done) => {
    client.once('connected', () => done(client));
    client.connect();
  });
}

// The client's calls take a callback last: call(client, 'create', path, data) gives a promise of what it is called with.
function call(client, name, ...args) {
  return new Promise((done, fail) => {
    client[name](...args, (error, ...results) => (error ? fail(error) : done(results.length > 1 ? results : results[0])));
  });
}

async function refused(promise, code) {
  await assert.rejects(promise, (error) => error.getCode() === code);
}

function nextEvent(client, name, path) {
  let fire;
  const event = new Promise((done) => { fire = done; });
  return call(client, name, path, fire).then(() => event);
}

async function nodes(client) {
  assert.strictEqual(await call(client, 'create', '/n', Buffer.from('x')), '/n');
  await refused(call(client, 'create', '/n', Buffer.from('x')), Exception.NODE_EXISTS);
  await refused(call(client, 'create', '/no/parent', null), Exception.NO_NODE);
  await call(client, 'create', '/n/empty', null);
  assert.strictEqual(await call(client, 'create', '/n/s-', CreateMode.PERSISTENT_SEQUENTIAL), '/n/s-0000000001');
  assert.strictEqual(await call(client, 'create', '/n/e-', CreateMode.EPHEMERAL_SEQUENTIAL), '/n/e-0000000002');
  const large = Buffer.alloc(900000, 'z');
  const stat = await call(client, 'setData', '/n', large, 0);
  assert.strictEqual(stat.version, 1);
  await refused(call(client, 'setData', '/n', Buffer.from('y'), 0), Exception.BAD_VERSION);
  const [data, got] = await call(client, 'getData', '/n');
  assert.ok(data.equals(large));
  assert.strictEqual(got.dataLength, large.length);
  assert.strictEqual(got.numChildren, 3);
  const [children] = await call(client, 'getChildren', '/n');
  assert.deepStrictEqual(children.sort(), ['e-0000000002', 'empty', 's-0000000001']);
  assert.strictEqual(await call(client, 'exists', '/nowhere'), null);
  await call(client, 'mkdirp', '/m/k/d/i/r');
  assert.notStrictEqual(await call(client, 'exists', '/m/k/d/i/r'), null);
  await refused(call(client, 'remove', '/n', -1), Exception.NOT_EMPTY);
}

async function access(client) {
  client.addAuthInfo('digest', Buffer.from('bob:secret'));
  await call(client, 'create', '/acl', Buffer.from('a'), [new ACL(Permission.ALL, new Id('auth', ''))], CreateMode.PERSISTENT);
  const [acls] = await call(client, 'getACL', '/acl');
  assert.strictEqual(acls[0].id.scheme, 'digest');
  await call(client, 'setACL', '/acl', [new ACL(Permission.READ | Permission.ADMIN, new Id('ip', '127.0.0.1'))], -1);
  await refused(call(client, 'setData', '/acl', Buffer.from('no'), -1), Exception.NO_AUTH);
}

async function transactions(client) {
  const done = client.transaction().create('/t').create('/t/a', Buffer.from('1')).setData('/t/a', Buffer.from('2'), 0).check('/t/a', 1);
  await call(done, 'commit');
  assert.strictEqual((await call(client, 'getData', '/t/a'))[0].toString(), '2');
  const broken = client.transaction().setData('/t/a', Buffer.from('refused')).check('/t', 9);
  await refused(call(broken, 'commit'), Exception.BAD_VERSION);
  assert.strictEqual((await call(client, 'getData', '/t/a'))[0].toString(), '2');
}

async function watches(client, other) {
  let event = nextEvent(client, 'exists', '/w');
  await call(client, 'exists', '/w');
  await call(other, 'create', '/w', Buffer.from('1'));
  assert.strictEqual((await event).getName(), 'NODE_CREATED');
  for (const [read, change, name] of [
    ['getData', () => call(other, 'setData', '/w', Buffer.from('2'), -1), 'NODE_DATA_CHANGED'],
    ['getChildren', () => call(other, 'create', '/w/child', null), 'NODE_CHILDREN_CHANGED'],
    ['getData', () => call(other, 'removeRecursive', '/w'), 'NODE_DELETED'],
  ]) {
    event = nextEvent(client, read, '/w');
    await call(client, 'exists', '/w');
    await change();
    const fired = await event;
    assert.strictEqual(fired.getName(), name);
    assert.strictEqual(fired.getPath(), '/w');
  }
}

// The fair lock: the smallest number holds, each waits for the one before. This client has no recipe of its own.
async function lock(client, log, name) {
  const mine = (await call(client, 'create', '/lock/n-', CreateMode.EPHEMERAL_SEQUENTIAL)).slice('/lock/'.length);
  for (;;) {
    const names = (await call(client, 'getChildren', '/lock'))[0].sort();
    const before = names[names.indexOf(mine) - 1];
    if (!before) break;
    let fire;
    const gone = new Promise((done) => { fire = done; });
    if (await call(client, 'exists', '/lock/' + before, fire)) await gone;
  }
  log.push(name + ' in');
  await new Promise((done) => setTimeout(done, 5));
  log.push(name + ' out');
  await call(client, 'remove', '/lock/' + mine, -1);
}

async function locks() {
  const clients = await Promise.all([1, 2, 3, 4].map(connect));
  await call(clients[0], 'create', '/lock', null);
  const log = [];
  await Promise.all(clients.map(async (client, n) => {
    for (let round = 0; round < 10; round++) await lock(client, log, 'client ' + n);
  }));
  assert.strictEqual(log.length, 80);
  for (let n = 0; n < log.length; n += 2) assert.strictEqual(log[n].replace(' in', ' out'), log[n + 1]);
  clients.forEach((client) => client.close());
}

async function everything() {
  const [client, other] = [await connect(), await connect()];
  await nodes(client);
  await access(client);
  await transactions(client);
  await watches(client, other);
  await locks();
  client.close();
  await new Promise((done) => setTimeout(done, 200));
  assert.deepStrictEqual((await call(other, 'getChildren', '/n'))[0].sort(), ['empty', 's-0000000001']);
  other.close();
  console.log('all operations work');
}

async function hold() {
  const client = await connect();
  client.on('expired', () => console.log('expired'));
  await call(client, 'create', heldPath, Buffer.from('x'), CreateMode.EPHEMERAL);
  console.log('holding');
}

(role === 'hold' ? hold() : everything()).catch((error) => {
  console.log('failed: ' + (error.stack || error));
  process.exit(1);
});
