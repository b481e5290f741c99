// The editor of data saves byte for byte, or nothing.

import assert from 'node:assert/strict';
import test from 'node:test';
import { toBase64 } from '../../assets/tree/decoders/bytes.js';
import { bytesOf, textFor } from '../../assets/tree/draft.js';

/** @typedef {import('../../assets/tree/draft.js').How} How */

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
const draft = (/** @type {string} */ base, /** @type {How} */ how, /** @type {string} */ text) => bytesOf({ base: bytes(base), how, text, file: null });

/** What a browser's text field makes of a text. @param {string} text */
const inField = (text) => text.replace(/\r\n?/g, '\n');

test('a value that nobody has changed is saved as it was, in each way to edit it', () => {
  const values = ['', 'a', 'a\nb\n', 'a\r\nb\r\n', '\ufeffwith a mark', 'ä 日本 😀', '{"a": [1, 2]}', '  {"a":1}\r\n'].map(bytes);
  values.push(Uint8Array.from({ length: 300 }, (_, n) => n & 255), Uint8Array.from([0xc3, 0x28]), Uint8Array.from([0]), bytes('mixed\r\nends\n'), bytes('old\rMac'));
  for (const base of values) {
    for (const how of /** @type {How[]} */ (['text', 'json', 'base64'])) {
      const text = textFor(base, how);
      if (text === null) continue;
      const { bytes: saved, problem } = bytesOf({ base, how, text: inField(text), file: null });
      if (how === 'json' && problem) continue;
      assert.deepEqual(saved, base, `${how}: ${JSON.stringify(text)}`);
    }
  }
});

test('bytes that a text field would change are not edited as text', () => {
  for (const base of [Uint8Array.from([0xff]), bytes('a\r\nb\n'), bytes('a\rb'), bytes('a\0b')]) {
    assert.equal(textFor(base, 'text'), null);
    assert.equal(textFor(base, 'json'), null);
    assert.equal(textFor(base, 'base64')?.trim(), toBase64(base));
  }
});

test('line ends stay what they were', () => {
  assert.deepEqual(draft('a\r\nb', 'text', 'a\nb\nc').bytes, bytes('a\r\nb\r\nc'));
  assert.deepEqual(draft('a\nb', 'text', 'a\nb\nc').bytes, bytes('a\nb\nc'));
});

test('what cannot be saved is refused with a reason', () => {
  assert.match(draft('', 'json', '{"a":').problem ?? '', /^This is not JSON: /);
  assert.match(draft('', 'base64', 'a b!').problem ?? '', /not base64/);
  assert.match(draft('', 'text', 'half \ud83d').problem ?? '', /half a character/);
  assert.match(draft('', 'file', '').problem ?? '', /Choose a file/);
  assert.deepEqual(draft('', 'json', '{"a": 12345678901234567890}').bytes, bytes('{"a": 12345678901234567890}'));
});
