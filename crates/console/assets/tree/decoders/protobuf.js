// Reads protobuf without its schema: numbers of fields, wire types, and a guess at what is inside.

import { isReadable, Reader, toHex, utf8 } from './bytes.js';

/** @import {Item} from '../types' */

const DEEPEST = 32;

/** The fields of a message; `null` if the bytes are none. @param {Uint8Array} bytes @param {number} [depth] @returns {Item[] | null} */
export function protobufItems(bytes, depth = 0) {
  const input = new Reader(bytes);
  const items = [];
  try {
    while (input.left) items.push(field(input, depth));
  } catch {
    return null;
  }
  return items.length ? items : null;
}

/** @param {Reader} input @param {number} depth @returns {Item} */
function field(input, depth) {
  const tag = input.varint();
  const number = Number(tag >> 3n);
  if (number < 1 || number > 0x1fffffff || depth > DEEPEST) throw new RangeError('no field');
  const { view } = input;
  switch (Number(tag & 7n)) {
    case 0: {
      const value = input.varint();
      return { label: `${number} varint`, value: `${value}${otherSigned(value)}` };
    }
    case 1: {
      const at = input.skip(8);
      return { label: `${number} 64-bit`, value: `${view.getBigUint64(at, true)}, as double ${view.getFloat64(at, true)}` };
    }
    case 2:
      return inside(number, input.take(Number(input.varint())), depth);
    case 3: {
      const children = [];
      while (input.bytes[input.at] !== undefined) {
        const at = input.at;
        if (input.varint() === ((BigInt(number) << 3n) | 4n)) return { label: `${number} group`, children };
        input.at = at;
        children.push(field(input, depth + 1));
      }
      throw new RangeError('a group without an end');
    }
    case 5: {
      const at = input.skip(4);
      return { label: `${number} 32-bit`, value: `${view.getUint32(at, true)}, as float ${view.getFloat32(at, true)}` };
    }
    default:
      throw new RangeError('an unknown wire type');
  }
}

/** What a varint is as a number with a sign. @param {bigint} value */
function otherSigned(value) {
  if (value >> 63n) return `, with sign ${BigInt.asIntN(64, value)}`;
  return value & 1n ? `, as sint -${(value >> 1n) + 1n}` : '';
}

/** A text, a message, or bytes. @param {number} number @param {Uint8Array} bytes @param {number} depth @returns {Item} */
function inside(number, bytes, depth) {
  const text = utf8(bytes);
  if (isReadable(text)) return { label: `${number} text`, value: JSON.stringify(text) };
  const children = protobufItems(bytes, depth + 1);
  if (children) return { label: `${number} message`, children };
  return { label: `${number} bytes`, value: `${bytes.length}: ${toHex(bytes.subarray(0, 512))}` };
}

/** The first field of a number, by its path through messages. @param {Item[] | undefined} items @param {...number} path @returns {string | undefined} */
export function fieldAt(items, ...path) {
  const [number, ...rest] = path;
  const item = items?.find(item => item.label.startsWith(`${number} `));
  if (rest.length) return fieldAt(item?.children, ...rest);
  const value = item?.value?.split(', ')[0];
  return value?.startsWith('"') ? JSON.parse(item?.value ?? '""') : value;
}
