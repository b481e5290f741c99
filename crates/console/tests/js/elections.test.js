// Elections: records from files, and the rule by which candidates are compared.

import assert from 'node:assert/strict';
import test from 'node:test';
import { boxesAt } from '../../assets/pages/elections/ballots.js';
import { firstStep, whyUnknown } from '../../assets/pages/elections/detail.js';
import { scaleOf } from '../../assets/pages/elections/lanes.js';
import { readRecord } from '../../assets/pages/elections/record.js';
import { candidateOf, decide } from '../../assets/pages/elections/why.js';

const vote = (/** @type {number} */ voter, /** @type {number} */ candidate, zxid = '0x10000000a', epoch = 1) => ({ voter, candidate, round: 2, epoch, zxid, counts: true, changed: true });
const moment = (/** @type {number} */ at_ms, /** @type {number} */ server, /** @type {string} */ kind, more = {}) => ({ at_ms, server, kind, sentence: 'It votes.', rule: null, highlights: [], changed: null, ...more });
/** @type {import('../../assets/pages/elections/record.js').Election} */
const ELECTION = {
  number: 4, kind: 'formed', epoch: 2, winner: 3, under_way: false, began_ms: 1000, total_for_ms: 15, cause: 'Server 2 was lost', summary: ['Server 3 leads.'], phases: [{ name: 'elect', for_ms: 2 }], left_out: 0,
  lanes: [{ server: 1, known: true, bands: [{ phase: 'detect', from_ms: 0, to_ms: 10 }, { phase: 'elect', from_ms: 10, to_ms: 10 }, { phase: 'discover', from_ms: 10, to_ms: null }] }, { server: 2, known: false, bands: [] }],
  moments: [moment(10, 1, 'loss'), moment(10, 1, 'vote'), moment(10, 1, 'change', { rule: 'id' }), moment(10, 1, 'decide'), moment(14, 3, 'lead')],
  ballots: [{ at_ms: 10, server: 1, moment: 1, votes: [vote(1, 1)] }, { at_ms: 10, server: 1, moment: 2, votes: [vote(1, 3), vote(3, 3)] }],
};
const RECORD = { format: 'ostler-elections-1', as_of_ms: 1, voters: [1, 2, 3], servers: [{ id: 2, name: 'server 2', state: 'silent', reason: null, knows_since_ms: 37_800_000 }], elections: [ELECTION] };

test('a record is read, and a damaged one is refused with the place', () => {
  assert.equal(readRecord(JSON.stringify(RECORD)).elections[0].winner, 3);
  assert.throws(() => readRecord('no'), /not JSON/);
  assert.throws(() => readRecord('{"format": "other"}'), /format/);
  const damaged = /** @type {[string, (record: any) => void][]} */ ([
    ['elections[0].moments[1].at_ms', (record) => (record.elections[0].moments[1].at_ms = null)],
    ['elections[0].ballots[0].votes[0].zxid', (record) => (record.elections[0].ballots[0].votes[0].zxid = '10')],
    ['elections[0].lanes', (record) => (record.elections[0].lanes = 'x')],
    ['elections[0].phases[0].for_ms', (record) => (record.elections[0].phases[0].for_ms = 'x')],
    ['elections[0].ballots[0].votes[0].epoch', (record) => (record.elections[0].ballots[0].votes[0].epoch = 'x')],
    ['voters[0]', (record) => (record.voters[0] = '1')],
  ]);
  for (const [place, damage] of damaged) {
    const record = structuredClone(RECORD);
    damage(record);
    assert.throws(() => readRecord(JSON.stringify(record)), { message: `${place} is missing, or is not as it must be.` });
  }
});

test('the epoch is compared first, then the zxid, then the id', () => {
  const [epoch, late, small] = [{ epoch: 2n, zxid: 1n, id: 1n }, { epoch: 1n, zxid: 9n, id: 1n }, { epoch: 1n, zxid: 9n, id: 3n }];
  assert.deepEqual(decide(epoch, late), { by: 'epoch', wins: true });
  assert.deepEqual(decide({ ...late, zxid: 8n }, late), { by: 'zxid', wins: false });
  assert.deepEqual(decide(small, late), { by: 'id', wins: true });
  assert.equal(candidateOf(ELECTION, 3)?.zxid, 0x10000000an);
  assert.equal(candidateOf(ELECTION, 2), null);
});

test('a ballot box is that of its moment, also if several have one time', () => {
  assert.deepEqual([...boxesAt(ELECTION, 0)], []);
  assert.deepEqual(boxesAt(ELECTION, 1).get(1), { votes: [vote(1, 1)], isNew: true });
  assert.equal(boxesAt(ELECTION, 2).get(1)?.votes.length, 2);
  assert.deepEqual(boxesAt(ELECTION, 4).get(1)?.isNew, false);
});

test('an election opens at the moment that decided; one under way at the last', () => {
  assert.equal(firstStep(ELECTION), 2);
  assert.equal(firstStep({ ...ELECTION, under_way: true }), 4);
  assert.equal(firstStep({ ...ELECTION, moments: [] }), 0);
  assert.equal(whyUnknown(RECORD, 2), 'It knows nothing before 10:30:00.000.');
});

test('moments of one millisecond are seen apart, in order, within the picture', () => {
  const { places, boundary, before } = scaleOf(ELECTION, 100, 500);
  for (let at = 1; at < places.length; at += 1) assert.ok(places[at] - places[at - 1] >= 17, `${places}`);
  assert.ok(places[0] >= 100 && places[4] <= 600);
  assert.equal(boundary(1, 10, 'elect'), places[0]);
  assert.equal(boundary(1, 10, 'discover'), places[3]);
  assert.ok(before(0) === 100);
  const many = { ...ELECTION, moments: Array.from({ length: 1000 }, (_, at) => moment(at, 1, 'receive')) };
  assert.ok(scaleOf(many, 100, 500).places.every((place) => place >= 100 && place <= 600));
});
