// Differences of texts.

import assert from 'node:assert/strict';
import test from 'node:test';
import { diff } from '../../assets/tree/diff.js';

/** @param {string} a @param {string} b */
const drawn = (a, b) => diff(a, b).flatMap(({ kind, lines }) => lines.map((line) => kind + line));

/** Both texts come back out of a difference. @param {string} a @param {string} b */
function check(a, b) {
  const runs = diff(a, b);
  const side = (/** @type {string} */ kinds) => runs.filter(({ kind }) => kinds.includes(kind)).flatMap(({ lines }) => lines).join('\n');
  assert.equal(side(' -'), a);
  assert.equal(side(' +'), b);
  for (let at = 1; at < runs.length; at++) assert.notEqual(runs[at].kind, runs[at - 1].kind);
}

test('the lines that differ are found', () => {
  assert.deepEqual(drawn('a\nb\nc', 'a\nx\nc'), [' a', '-b', '+x', ' c']);
  assert.deepEqual(drawn('a\nb\nc\nd', 'b\nc\nnew\nd'), ['-a', ' b', ' c', '+new', ' d']);
  assert.deepEqual(drawn('same', 'same'), [' same']);
  assert.deepEqual(drawn('', 'a'), ['-', '+a']);
});

test('both texts come back, whatever they are', () => {
  let seed = 7;
  const random = (/** @type {number} */ below) => (seed = (seed * 48271) % 0x7fffffff) % below;
  for (let round = 0; round < 400; round++) {
    const text = () => Array.from({ length: random(12) }, () => 'abc'[random(3)]).join('\n');
    check(text(), text());
  }
});

test('very different texts are compared in bounded time', () => {
  const long = (/** @type {string} */ mark) => Array.from({ length: 20_000 }, (_, n) => `${mark}${n}`).join('\n');
  const start = Date.now();
  check(long('a'), long('b'));
  assert.ok(Date.now() - start < 3000);
});
