// The forms in which known programs write their znodes. A form is recognised by its shape and by the end of its path.

import { isReadable, toHex, utf8 } from './bytes.js';
import { isJson } from './layout.js';
import { fieldAt, protobufItems } from './protobuf.js';

/** @import {Item, Known} from '../types' */
/** @typedef {Record<string, any>} Json */
/** Its name, the end of its path if that tells, members it has, a sentence, and what is worth a line.
 *  @typedef {[form: string, at: RegExp | null, has: string[], says: (json: Json) => string, facts?: (json: Json) => [string, unknown][]]} Form */

const time = (/** @type {unknown} */ ms) => (Number(ms) > 0 && Number(ms) < 8e15 ? new Date(Number(ms)).toISOString() : ms);

/** Some members, by other names if they are given. @param {...string} names `member` or `member as name` */
const members = (...names) => (/** @type {Json} */ json) => names.map((name) => /** @type {[string, unknown]} */ ([name.split(' as ').pop() ?? '', json[name.split(' as ')[0]]]));

/** @type {Form[]} */
const FORMS = [
  ['Curator service instance', null, ['name', 'id', 'registrationTimeUTC', 'serviceType'], ({ name, registrationTimeUTC }) => `An instance of the service ${name}, registered by Curator’s service discovery at ${time(registrationTimeUTC)}.`,
    members('id', 'address', 'port', 'sslPort as TLS port', 'serviceType as kind', 'payload', 'enabled')],
  ['Helix ZNRecord', null, ['id', 'simpleFields', 'listFields', 'mapFields'], ({ id }) => `A record of Helix with the id ${id}.`, (json) => ['simpleFields', 'listFields', 'mapFields'].flatMap((part) => Object.entries(json[part]))],
  ['Kafka broker', /\/brokers\/ids\/\d+$/, ['version'], ({ host, port, timestamp }) => `A Kafka broker that is alive since ${time(timestamp)}, at ${host ?? 'no host'}:${port}.`, members('endpoints', 'rack', 'jmx_port as JMX port')],
  ['Kafka controller', /\/controller$/, ['brokerid'], ({ brokerid, timestamp }) => `Broker ${brokerid} is Kafka’s controller since ${time(timestamp)}.`],
  ['Kafka partition state', /\/partitions\/\d+\/state$/, ['leader', 'isr'], ({ leader, isr }) => `Broker ${leader} leads this partition; in sync are ${isr}.`, members('leader_epoch as leader epoch', 'controller_epoch as controller epoch')],
  ['Kafka topic', /\/brokers\/topics\/[^/]+$/, ['partitions'], ({ partitions }) => `A Kafka topic with ${Object.keys(partitions).length} partitions: the brokers of each, the preferred leader first.`, ({ partitions }) => Object.entries(partitions)],
  ['Kafka cluster id', /\/cluster\/id$/, ['id'], ({ id }) => `The id of the Kafka cluster is ${id}.`],
  ['Kafka configuration', /\/config\/(topics|clients|users|brokers)\/[^/]+$/, ['config'], () => 'Settings that Kafka overrides here.', ({ config }) => Object.entries(config)],
  ['Solr leader of a shard', null, ['core', 'node_name', 'base_url'], ({ core, node_name }) => `The Solr core ${core} on ${node_name} leads this shard.`],
  ['Solr overseer', /\/overseer_elect\/leader$/, ['id'], ({ id }) => `Solr’s overseer is ${String(id).replace(/^\d+-/, '')}.`],
  ['Solr collection', /\/collections\/[^/]+$/, ['configName'], ({ configName }) => `A Solr collection with the configuration ${configName}.`],
  ['Solr cluster state', /\/(cluster)?state\.json$/, [], (json) => `The state of the Solr collections ${Object.keys(json).join(', ')}.`, replicas],
];

/** The replicas in a state of Solr. @param {Json} json @returns {[string, string][]} */
function replicas(json) {
  /** @type {[string, Json][]} */
  const shards = Object.entries(json).flatMap(([collection, { shards }]) => Object.entries(shards).map(([shard, of]) => /** @type {[string, Json]} */ ([`${collection} ${shard}`, of.replicas])));
  return shards.flatMap(([shard, of]) => Object.entries(of).map(([name, { core, node_name, state, leader }]) => /** @type {[string, string]} */ ([`${shard} ${name}`, `${core} on ${node_name}, ${state}${leader ? ', leader' : ''}`])));
}

/** HBase's messages by the end of the path: names of fields, and where they are. @type {[RegExp, string, [string, number[]][]][]} */
const HBASE = [
  [/\/(backup-masters\/[^/]+|master)$/, 'master', [['host', [1, 1]], ['port', [1, 2]], ['start code', [1, 3]], ['info port', [3]]]],
  [/\/meta-region-server[^/]*$/, 'server of the meta table', [['host', [1, 1]], ['port', [1, 2]], ['start code', [1, 3]], ['state', [3]]]],
  [/\/rs\/[^/]+$/, 'region server', [['info port', [1]], ['version', [2, 1]]]],
  [/\/hbaseid$/, 'cluster id', [['id', [1]]]],
  [/\/running$/, 'mark that the cluster runs', [['since', [1]]]],
];

/** Data of HBase: an optional name of the writer, then `PBUF` and a message. @param {string} path @param {Uint8Array} bytes @returns {Known | null} */
function hbase(path, bytes) {
  let rest = bytes;
  /** @type {Item[]} */
  const facts = [];
  if (bytes[0] === 0xff && bytes.length > 5) {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    const writer = utf8(bytes.subarray(5, 5 + length));
    if (length > 256 || !isReadable(writer)) return null;
    rest = bytes.subarray(5 + length);
    facts.push({ label: 'written by', value: writer ?? '' });
  }
  if (utf8(rest.subarray(0, 4)) !== 'PBUF') return null;
  const items = protobufItems(rest.subarray(4));
  const [, what, fields] = HBASE.find(([at]) => at.test(path)) ?? [null, 'message', []];
  for (const [label, place] of fields) {
    const value = items && fieldAt(items, ...place);
    if (value) facts.push({ label, value });
  }
  facts.push({ label: 'message', ...(items ? { children: items } : { value: toHex(rest.subarray(4, 516)) }) });
  return { form: 'HBase', sentence: `HBase's ${what}: a protobuf message after PBUF.`, facts };
}

/** @param {string} path @param {Uint8Array} bytes @returns {Known | null} */
export function known(path, bytes) {
  const text = utf8(bytes);
  if (!isJson(text)) return hbase(path, bytes);
  const json = JSON.parse(text);
  const form = FORMS.find(([, at, has]) => (!at || at.test(path)) && has.every((key) => key in json));
  if (!form) return null;
  const [name, , , says, facts] = form;
  try {
    const lines = (facts?.(json) ?? []).filter(([, value]) => value !== undefined && value !== null);
    return { form: name, sentence: says(json), facts: lines.map(([label, value]) => ({ label, value: typeof value === 'string' ? value : JSON.stringify(value) })) };
  } catch {
    // It only looked like the form: a member has another type.
    return null;
  }
}
