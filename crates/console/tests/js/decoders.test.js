// The decoders of data, with bytes that real programs have written (real/make.py).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { gzipSync, deflateSync } from 'node:zlib';
import { fromBase64, fromUtf8, hexDump, lineEnds, toBase64, utf8 } from '../../assets/tree/decoders/bytes.js';
import { decode } from '../../assets/tree/decoders/decode.js';
import { javaItems, typeName } from '../../assets/tree/decoders/java.js';
import { isJson, layOutJson, layOutXml } from '../../assets/tree/decoders/layout.js';
import { protobufItems } from '../../assets/tree/decoders/protobuf.js';

/** @typedef {import('../../assets/tree/types').Item} Item */

/** @type {Record<string, string>} */
const REAL = JSON.parse(readFileSync(new URL('real/real.json', import.meta.url), 'utf8'));
const real = (/** @type {string} */ name) => /** @type {Uint8Array} */ (fromBase64(REAL[name]));
const bytesOf = (/** @type {string} */ text) => new TextEncoder().encode(text);

/** A tree of items as text, two spaces for each level. @param {Item[]} items @param {string} [indent] @returns {string} */
const drawn = (items, indent = '') =>
  items.map(({ label, value, children }) => `${indent}${label}${value === undefined ? '' : `: ${value}`}\n${children ? drawn(children, `${indent}  `) : ''}`).join('');

/** @param {string} name @param {string} format @param {Uint8Array} [plain] */
async function unpacksTo(name, format, plain = real('plain')) {
  const decoded = await decode('/x', real(name));
  assert.deepEqual(decoded.layers.map(layer => layer.format), [format], name);
  assert.deepEqual(Buffer.from(decoded.bytes), Buffer.from(plain), name);
  assert.equal(decoded.views[0], 'json', name);
}

test('what real programs have packed is recognised and unpacked', async () => {
  await unpacksTo('gzip', 'gzip');
  await unpacksTo('zlib', 'zlib');
  await unpacksTo('lz4_frame', 'LZ4 frame');
  await unpacksTo('lz4_block', 'LZ4 block');
  await unpacksTo('lz4_block_sized', 'LZ4 block with size');
  await unpacksTo('lz4_java_stream', 'LZ4 of lz4-java');
  await unpacksTo('snappy_raw', 'Snappy raw');
  await unpacksTo('snappy_java_raw', 'Snappy raw');
  await unpacksTo('snappy_framed', 'Snappy framed');
  await unpacksTo('snappy_java_stream', 'Snappy of snappy-java');
  const linked = await decode('/x', real('lz4_frame_linked'));
  assert.equal(linked.layers[0].format, 'LZ4 frame');
  assert.deepEqual(Buffer.from(linked.bytes), Buffer.concat(Array(200).fill(real('plain'))));
});

test('layers are unpacked one after another, four at most', async () => {
  assert.deepEqual((await decode('/x', real('gzip_of_gzip'))).layers.map(layer => layer.format), ['gzip', 'gzip']);
  let packed = bytesOf('{"a":1}');
  for (let n = 0; n < 6; n++) packed = gzipSync(packed);
  assert.equal((await decode('/x', packed)).layers.length, 4);
});

test('data that unpack to more than 16 MiB stay packed, and a sentence says so', async () => {
  for (const bomb of [gzipSync(Buffer.alloc(17 << 20)), deflateSync(Buffer.alloc(17 << 20))]) {
    const decoded = await decode('/x', bomb);
    assert.equal(decoded.layers.length, 0);
    assert.match(decoded.stopped ?? '', /more than 16 MiB/);
  }
  assert.equal((await decode('/x', gzipSync(Buffer.alloc(15 << 20)))).layers.length, 1);
  // A block of LZ4 that repeats one byte: 255 more bytes of output for each byte of input.
  const lz4 = new Uint8Array(4 + 7 + 3 + 80_000).fill(255);
  lz4.set([4, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73, 0, 0, 1, 0, 0x1f, 0x41, 1, 0]);
  lz4[lz4.length - 1] = 0;
  new DataView(lz4.buffer).setUint32(7, lz4.length - 11, true);
  assert.match((await decode('/x', lz4)).stopped ?? '', /more than 16 MiB/);
});

test('packed data that are damaged or cut are shown as they are', async () => {
  for (const name of ['gzip', 'zlib', 'lz4_frame', 'lz4_java_stream', 'snappy_framed', 'snappy_java_stream', 'snappy_raw', 'lz4_block']) {
    const whole = real(name);
    for (const length of [8, whole.length >> 1, whole.length - 3]) {
      const decoded = await decode('/x', whole.slice(0, length));
      assert.ok(decoded.views.includes('hex'), `${name} ${length}`);
    }
    for (let at = 0; at < whole.length; at += 5) {
      const damaged = whole.slice();
      damaged[at] ^= 0x55;
      await decode('/x', damaged);
    }
  }
});

test('random bytes are not taken for packed ones', async () => {
  let seed = 1;
  for (let round = 0; round < 3000; round++) {
    const bytes = Uint8Array.from({ length: 8 + (round % 60) }, () => (seed = (seed * 48271) % 0x7fffffff) & 255);
    const { layers } = await decode('/x', bytes);
    assert.deepEqual(layers, [], toBase64(bytes));
  }
});

test('a chosen format is tried, and its failure is said', async () => {
  assert.equal((await decode('/x', real('gzip'), 'none')).layers.length, 0);
  assert.equal((await decode('/x', real('gzip'), 'gzip')).views[0], 'json');
  assert.match((await decode('/x', bytesOf('plain text'), 'gzip')).stopped ?? '', /^Not unpacked: /);
});

test("a Java object's class names, fields and values are read", async () => {
  const decoded = await decode('/x', real('java_object'));
  assert.equal(decoded.views[0], 'java');
  const text = drawn(javaItems(decoded.bytes));
  for (const line of [
    ': Znodes$Job', '  version: 81', '  enabled: true', '  retries: 3', '  grade: "B"', '  port: 2181', '  count: -5', '  share: 0.5',
    '  ratio: 1.25', '  name: "job <img> é"', '  mode: Znodes$Mode.STANDBY', '  slots: int[3]', '    2: 3', '  blob: byte[3] 0001ff',
    '  since: java.util.Date', '  owners: java.util.ArrayList', '    size: 2', '      value: 7', '  self: the same Znodes$Job', '  none: null',
    '  price: java.math.BigDecimal', '    scale: 2',
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line}\nin\n${text}`);
  }
  assert.ok(!text.includes('not read further'), text);
});

test('a stream of Java with several objects, and one that writes its own bytes', () => {
  const items = javaItems(real('java_string_and_list'));
  assert.deepEqual(items[0], { label: '', value: '"hello"' });
  assert.equal(items[2].value, 'Znodes$Opaque');
  assert.deepEqual(items[2].children, [{ label: 'bytes', value: '0000002a' }, { label: '', value: '"inside"' }]);
});

test('a cut or damaged stream of Java ends with a note', () => {
  const whole = real('java_object');
  for (let length = 5; length < whole.length; length += 7) {
    assert.match(drawn(javaItems(whole.slice(0, length))), /not read further/);
  }
  for (let at = 4; at < whole.length; at++) {
    const damaged = whole.slice();
    damaged[at] ^= 0x41;
    javaItems(damaged);
  }
  const deep = Uint8Array.from([0xac, 0xed, 0, 5, ...Array(5000).fill(0x76)]);
  assert.match(drawn(javaItems(deep)), /too deep/);
});

test('names of Java types', () => {
  assert.equal(typeName('[[Ljava.lang.String;'), 'java.lang.String[][]');
  assert.equal(typeName('[J'), 'long[]');
});

test('protobuf is read without its schema', async () => {
  const decoded = await decode('/x', real('protobuf'));
  assert.equal(decoded.views[0], 'protobuf');
  assert.equal(
    drawn(protobufItems(decoded.bytes) ?? []),
    `1 message
  1 text: "rs1.example.org"
  2 varint: 16020
  3 varint: 1700000000000
2 varint: 0
4 64-bit: 4609434218613702656, as double 1.5
5 32-bit: 7, as float 9.80908925027372e-45
6 varint: 5, as sint -3
7 bytes: 3: 00ff80
8 varint: 1, as sint -1
8 varint: 150
8 varint: 3, as sint -2
`,
  );
  assert.equal(protobufItems(Uint8Array.from([0x0a, 5, 1])), null);
  assert.equal(protobufItems(new Uint8Array(20)), null);
  assert.match(drawn(protobufItems(Uint8Array.from([0x0b, 0x10, 7, 0x0c])) ?? []), /^1 group\n {2}2 varint: 7/);
  assert.equal(protobufItems(new Uint8Array(4000).fill(0x0b)), null);
});

test('forms of known programs', async () => {
  const curator = await decode('/services/orders/7c1f', real('curator_instance'));
  assert.equal(curator.views[0], 'known');
  assert.equal(curator.known?.form, 'Curator service instance');
  assert.match(drawn(curator.known?.facts ?? []), /port: 8080\nTLS port: 8443\nkind: DYNAMIC\n/);

  const hbase = await decode('/hbase/meta-region-server', real('hbase'));
  assert.equal(hbase.known?.form, 'HBase');
  assert.match(drawn(hbase.known?.facts ?? []), /^written by: master:16000\nhost: rs1.example.org\nport: 16020\nstart code: 1700000000000\n/);

  /** @type {[string, string, string, RegExp][]} */
  const forms = [
    ['/kafka/brokers/ids/3', '{"version":5,"host":"k3","port":9092,"endpoints":["PLAINTEXT://k3:9092"],"timestamp":"1700000000000"}', 'Kafka broker', /alive since 2023-11-14T22:13:20.000Z, at k3:9092/],
    ['/controller', '{"version":2,"brokerid":1,"timestamp":"1700000000000"}', 'Kafka controller', /Broker 1 .* since 2023-11-14T22/],
    ['/brokers/topics/t/partitions/0/state', '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":4,"isr":[2,3]}', 'Kafka partition state', /Broker 2 leads .* 2,3/],
    ['/brokers/topics/t', '{"version":3,"partitions":{"0":[1,2],"1":[2,3]}}', 'Kafka topic', /2 partitions/],
    ['/collections/c/leaders/shard1/leader', '{"core":"c_r1","node_name":"n:8983_solr","base_url":"http://n:8983/solr"}', 'Solr leader of a shard', /c_r1 on n:8983_solr/],
    ['/collections/c/state.json', '{"c":{"shards":{"s1":{"replicas":{"r1":{"core":"k","node_name":"n","state":"active","leader":"true"}}}}}}', 'Solr cluster state', /collections c/],
    ['/h/IDEALSTATES/x', '{"id":"x","simpleFields":{"REPLICAS":"3"},"listFields":{},"mapFields":{"p0":{"h1":"MASTER"}}}', 'Helix ZNRecord', /the id x/],
  ];
  for (const [path, json, form, sentence] of forms) {
    const decoded = await decode(path, bytesOf(json));
    assert.equal(decoded.known?.form, form, path);
    assert.match(decoded.known?.sentence ?? '', sentence);
  }
  // It only looks like a known form.
  assert.equal((await decode('/brokers/topics/t', bytesOf('{"partitions":null}'))).known, null);
  assert.equal((await decode('/x', bytesOf('[1]'))).known, null);
});

test('JSON is laid out, and its numbers stay as they are written', () => {
  const text = '{"a":12345678901234567890,"b":[],"c":{},"d":["x,{\\"]",1.50e3],"e":null}';
  assert.equal(
    layOutJson(text),
    `{
  "a": 12345678901234567890,
  "b": [],
  "c": {},
  "d": [
    "x,{\\"]",
    1.50e3
  ],
  "e": null
}`,
  );
  assert.equal(layOutJson(layOutJson(text)), layOutJson(text));
  assert.equal(JSON.stringify(JSON.parse(layOutJson(text))), JSON.stringify(JSON.parse(text)));
  assert.ok(!isJson('12') && !isJson('{"a":}') && isJson(' [1]\n'));
  isJson('['.repeat(200_000));
});

test('XML is laid out', () => {
  const text = '<?xml version="1.0"?><a x="1>2"><b>text &lt;</b><c/><!-- <d> --><e><![CDATA[</a>]]></e>tail</a>';
  assert.equal(
    layOutXml(text),
    `<?xml version="1.0"?>
<a x="1>2">
  <b>text &lt;</b>
  <c/>
  <!-- <d> -->
  <e>
    <![CDATA[</a>]]>
  </e>
  tail
</a>`,
  );
  for (const bad of ['<a>', '<a></b>', '<img onerror', 'text <a/>', '<a/>text', '{"a":1}', '< a']) {
    assert.equal(layOutXml(bad), null, bad);
  }
});

test('bytes as text: only what comes back byte for byte', () => {
  assert.equal(utf8(Uint8Array.from([0xff, 0xfe])), null);
  assert.equal(utf8(Uint8Array.from([0xef, 0xbb, 0xbf, 0x41])), '\ufeffA');
  assert.equal(fromUtf8('half \ud800'), null);
  assert.equal(fromBase64('not base64!'), null);
  const all = Uint8Array.from({ length: 20_000 }, (_, n) => n & 255);
  assert.deepEqual(fromBase64(toBase64(all)), all);
  assert.equal(lineEnds('a\nb'), 'lf');
  assert.equal(lineEnds('a\r\nb\r\n'), 'crlf');
  assert.equal(lineEnds('a\r\nb\n'), 'mixed');
  assert.equal(lineEnds('a\rb'), 'mixed');
  assert.equal(hexDump(bytesOf('0123456789abcdefg'), 16).split('\n')[1], `00000020  67${' '.repeat(46)}  g`);
});
