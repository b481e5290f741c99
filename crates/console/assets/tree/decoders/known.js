// The forms in which known programs write their znodes. A form is recognised by its shape and by the end of its path.

import { isReadable, toHex, utf8 } from './bytes.js';
import { isJson } from './layout.js';
import { fieldAt, protobufItems } from './protobuf.js';

/** @import {Item, Known} from '../types' */
/** @typedef {Record<string, any>} Json */
/** @typedef {{form: string, at?: RegExp, has: string[], says: (json: Json) => string, facts?: (json: Json) => [string, unknown][]}} Form */

const time = (/** @type {unknown} */ ms) => {
  const date = new Date(Number(ms));
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
};

/** @type {Form[]} */
const FORMS = [
  {
    form: 'Curator service instance',
    has: ['name', 'id', 'registrationTimeUTC', 'serviceType'],
    says: json => `An instance of the service ${json.name}, written by Curator's service discovery.`,
    facts: json => [
      ['service', json.name],
      ['id', json.id],
      ['address', json.address],
      ['port', json.port],
      ['TLS port', json.sslPort],
      ['kind', json.serviceType],
      ['registered', time(json.registrationTimeUTC)],
      ['payload', json.payload],
      ['enabled', json.enabled],
    ],
  },
  {
    form: 'Helix ZNRecord',
    has: ['id', 'simpleFields', 'listFields', 'mapFields'],
    says: json => `A record of Helix with the id ${json.id}.`,
    facts: json => ['simpleFields', 'listFields', 'mapFields'].flatMap(part => Object.entries(json[part] ?? {})),
  },
  {
    form: 'Kafka broker',
    at: /\/brokers\/ids\/\d+$/,
    has: ['version'],
    says: json => `A Kafka broker that is alive, at ${json.host ?? 'no'}:${json.port ?? 'address'}.`,
    facts: json => [
      ['endpoints', json.endpoints],
      ['rack', json.rack],
      ['started', time(json.timestamp)],
      ['JMX port', json.jmx_port],
    ],
  },
  {
    form: 'Kafka controller',
    at: /\/controller$/,
    has: ['brokerid'],
    says: json => `Broker ${json.brokerid} is Kafka's controller since ${time(json.timestamp)}.`,
  },
  {
    form: 'Kafka partition state',
    at: /\/partitions\/\d+\/state$/,
    has: ['leader', 'isr'],
    says: json => `Broker ${json.leader} leads this partition; in sync are ${json.isr}.`,
    facts: json => [
      ['leader epoch', json.leader_epoch],
      ['controller epoch', json.controller_epoch],
    ],
  },
  {
    form: 'Kafka topic',
    at: /\/brokers\/topics\/[^/]+$/,
    has: ['partitions'],
    says: json => `A Kafka topic with ${Object.keys(json.partitions).length} partitions. Each has its brokers, the preferred leader first.`,
    facts: json => Object.entries(json.partitions).slice(0, 200).map(([name, brokers]) => [`partition ${name}`, brokers]),
  },
  { form: 'Kafka cluster id', at: /\/cluster\/id$/, has: ['id'], says: json => `The id of the Kafka cluster is ${json.id}.` },
  {
    form: 'Kafka configuration',
    at: /\/config\/(topics|clients|users|brokers)\/[^/]+$/,
    has: ['config'],
    says: () => 'Settings that Kafka overrides here.',
    facts: json => Object.entries(json.config),
  },
  {
    form: 'Solr leader of a shard',
    has: ['core', 'node_name', 'base_url'],
    says: json => `The Solr core ${json.core} on ${json.node_name} leads this shard.`,
  },
  {
    form: 'Solr overseer',
    at: /\/overseer_elect\/leader$/,
    has: ['id'],
    says: json => `Solr's overseer is ${String(json.id).replace(/^\d+-/, '')}.`,
  },
  {
    form: 'Solr collection',
    at: /\/collections\/[^/]+$/,
    has: ['configName'],
    says: json => `A Solr collection with the configuration ${json.configName}.`,
  },
  {
    form: 'Solr cluster state',
    at: /\/(cluster)?state\.json$/,
    has: [],
    says: json => `The state of the Solr collections ${Object.keys(json).join(', ')}.`,
    facts: json =>
      Object.entries(json).flatMap(([collection, { shards = {} }]) =>
        Object.entries(shards).flatMap(([shard, { replicas = {} }]) =>
          Object.entries(replicas).map(([name, replica]) => {
            const { core, node_name: node, state, leader } = /** @type {Json} */ (replica);
            return /** @type {[string, string]} */ ([`${collection} ${shard} ${name}`, `${core} on ${node}, ${state}${leader ? ', leader' : ''}`]);
          }),
        ),
      ),
  },
];

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
  const form = FORMS.find(({ at, has }) => (at || has.length) && (!at || at.test(path)) && has.every(key => key in json));
  if (!form) return null;
  try {
    /** @type {[string, unknown][]} */
    const made = form.facts?.(json) ?? [];
    const facts = made.filter(([, value]) => value !== undefined && value !== null);
    const written = facts.map(([label, value]) => ({ label, value: typeof value === 'string' ? value : JSON.stringify(value) }));
    return { form: form.form, sentence: form.says(json), facts: written };
  } catch {
    // It only looked like the form: a member has another type.
    return null;
  }
}
