// How numbers, times and texts are written.

import assert from 'node:assert/strict';
import test from 'node:test';
import { ago, bytes, clock, duration, escaped, utc, zxid } from '../../assets/lib/words.js';

test('a zxid has its parts', () => {
  assert.equal(zxid('0x10000000a'), '0x10000000a (1:10)');
  assert.equal(zxid('0xffffffffffffffff'), '0xffffffffffffffff (4294967295:4294967295)');
  assert.equal(zxid(null), '–');
});

test('times have two parts at most', () => {
  const words = /** @type {[number, string][]} */ ([[0, '0 ms'], [0.4, '0.4 ms'], [999, '999 ms'], [1000, '1 s'], [1500, '1.5 s'], [9949, '9.9 s'], [12_000, '12 s'], [250_000, '4 min 10 s'],
    [3_600_000, '1 h'], [183_600_000, '2 d 3 h'], [2_000_000_000, '23 d']]);
  for (const [ms, text] of words) assert.equal(duration(ms), text);
  assert.equal(ago(1000, 13_400), '12 s ago');
  assert.equal(ago(5000, 2000), 'in 3 s');
  assert.equal(clock(0), '00:00:00.000');
  assert.equal(utc(0), '1970-01-01 00:00:00.000 UTC');
});

test('bytes have three digits at most', () => {
  for (const [n, text] of /** @type {[number, string][]} */ ([[0, '0 B'], [999, '999 B'], [1000, '1.0 kB'], [12_345, '12 kB'], [999_900, '1.0 MB'], [71_200_000_000, '71 GB']])) assert.equal(bytes(n), text);
});

test('characters that cannot be seen are written', () => {
  assert.equal(escaped('a\u202eb\u0000\n\u200b'), 'a\\u202eb\\u0000\\u000a\\u200b');
  assert.equal(escaped('half \ud83d of a pair'), 'half \\ud83d of a pair');
  assert.equal(escaped('<b> ü 漢 😀'), '<b> ü 漢 😀');
});
