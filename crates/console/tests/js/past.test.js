// The past of a deleted znode, as its history tells it.

import assert from 'node:assert/strict';
import test from 'node:test';
import { wasAt } from '../../assets/tree/past.js';

/** @typedef {import('../../assets/tree/types').Change} Change */

const OPEN = [{ scheme: 'world', id: 'anyone', perms: 'cdrwa' }];
const ANN = [{ scheme: 'digest', id: 'ann:hash', perms: 'cdrwa' }];

/** @param {Change['kind']} kind @param {Partial<Change>} [more] @returns {Change} */
const change = (kind, more) => ({
  zxid: '0x1', time_ms: 0, session: '0x1', kind, version: 0, data: 'eA==', length: 1, acl: OPEN, acl_is_masked: false, znode: { kind: 'persistent', ttl_ms: null }, ...more,
});
const gone = () => change('delete', { data: null, acl: null, znode: null });

test('a znode is put back with its ACL and of its kind', () => {
  assert.deepEqual(wasAt([gone(), change('create', { acl: ANN })], 1), { mode: 'persistent', ttl_ms: null, acl: ANN, note: '' });
  assert.deepEqual(wasAt([gone(), change('create', { znode: { kind: 'ttl', ttl_ms: 5000 } })], 1), { mode: 'ttl', ttl_ms: 5000, acl: OPEN, note: '' });
  assert.equal(wasAt([gone(), change('create', { znode: { kind: 'container', ttl_ms: null } })], 1).mode, 'container');
});

test('the ACL that was set last is the one that comes back, but not that of a later znode', () => {
  const closed = change('set_acl', { acl: ANN, data: null });
  assert.deepEqual(wasAt([gone(), closed, change('set'), change('create')], 2).acl, ANN);
  assert.deepEqual(wasAt([gone(), closed, change('set_acl', { data: null }), change('create')], 3).acl, ANN);
  assert.deepEqual(wasAt([closed, change('create'), gone(), change('create')], 3).acl, OPEN);
  assert.deepEqual(wasAt([gone(), closed, change('create'), change('delete'), change('create')], 4).acl, OPEN);
});

test('somebody chooses the ACL where digests are not shown, or nothing is known of it', () => {
  for (const hidden of [{ acl: ANN, acl_is_masked: true }, { acl: null }]) {
    const was = wasAt([gone(), change('create', hidden)], 1);
    assert.equal(was.acl, null);
    assert.match(was.note, /Its ACL/);
  }
});

test('an ephemeral does not come back as something else without a choice', () => {
  const was = wasAt([gone(), change('create', { znode: { kind: 'ephemeral', ttl_ms: null } })], 1);
  assert.equal(was.mode, '');
  assert.match(was.note, /ephemeral/);
  assert.equal(wasAt([gone(), change('create', { znode: null })], 1).mode, '');
});
