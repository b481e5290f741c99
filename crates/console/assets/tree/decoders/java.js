// Reads what Java's ObjectOutputStream writes, as names and values. No class is looked up, nothing is instantiated.

import { Reader, toHex } from './bytes.js';

/** @import {Item} from '../types' */
/** @typedef {{type: string, name: string}} Field */
/** @typedef {{name: string, flags: number, fields: Field[], parent: Class | null}} Class */
/** @typedef {{item: Item, class?: Class, text?: string}} Value */

const DEEPEST = 100;
const MOST_ITEMS = 20_000;

/** @param {Uint8Array} bytes */
export const isJava = bytes => bytes[0] === 0xac && bytes[1] === 0xed && bytes[2] === 0 && bytes[3] === 5;

/** The objects of a stream. What cannot be read ends the list with a note. @param {Uint8Array} bytes @returns {Item[]} */
export function javaItems(bytes) {
  const items = [];
  try {
    const stream = new JavaStream(bytes);
    while (stream.input.left) items.push(stream.content('', 0).item);
  } catch (error) {
    items.push({ label: 'not read further', value: String(/** @type {Error} */ (error).message) });
  }
  return items;
}

/** Java's own UTF-8, in which each half of a surrogate pair stands alone. @param {Uint8Array} bytes */
function modifiedUtf8(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte < 0x80) text += String.fromCharCode(byte);
    else if (byte < 0xe0) text += String.fromCharCode(((byte & 31) << 6) | (bytes[++at] & 63));
    else text += String.fromCharCode(((byte & 15) << 12) | ((bytes[++at] & 63) << 6) | (bytes[++at] & 63));
  }
  return text;
}

/** The names of Java's plain types, and how each is read. @type {Record<string, [string, (input: Reader) => unknown]>} */
const PLAIN = {
  B: ['byte', (input) => input.view.getInt8(input.skip(1))],
  C: ['char', (input) => JSON.stringify(String.fromCharCode(input.u16()))],
  D: ['double', (input) => input.view.getFloat64(input.skip(8))],
  F: ['float', (input) => input.view.getFloat32(input.skip(4))],
  I: ['int', (input) => input.i32()],
  J: ['long', (input) => input.i64()],
  S: ['short', (input) => input.view.getInt16(input.skip(2))],
  Z: ['boolean', (input) => input.u8() !== 0],
};

/** `[Ljava.lang.String;` as `java.lang.String[]`. @param {string} name @returns {string} */
export function typeName(name) {
  if (name[0] === '[') return `${typeName(name.slice(1))}[]`;
  return name[0] === 'L' && name.endsWith(';') ? name.slice(1, -1).replaceAll('/', '.') : (PLAIN[name]?.[0] ?? name);
}

class JavaStream {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.input = new Reader(bytes);
    this.input.take(4);
    /** @type {Value[]} */
    this.handles = [];
    this.count = 0;
  }

  utf() {
    return modifiedUtf8(this.input.take(this.input.u16()));
  }

  /** Gives a value the number by which later ones refer to it. @param {Value} value */
  handle(value) {
    this.handles.push(value);
    return value;
  }

  /** @param {string} label @param {number} depth @returns {Value} */
  content(label, depth) {
    if (depth > DEEPEST || ++this.count > MOST_ITEMS) throw new RangeError('nested too deep, or too many values');
    const { input } = this;
    const tag = input.u8();
    /** @type {Item} */
    const item = { label };
    switch (tag) {
      case 0x70:
        return { item: { label, value: 'null' } };
      case 0x71: {
        const value = this.handles[input.i32() - 0x7e0000];
        if (!value) throw new RangeError('a reference to nothing');
        const again = value.item.children ? { label, value: `the same ${value.item.value}` } : { ...value.item, label };
        return { ...value, item: again };
      }
      case 0x72:
        return this.classOf(label, depth);
      case 0x73:
        return this.object(item, depth);
      case 0x74:
      case 0x7c: {
        const long = tag === 0x7c;
        const text = long ? modifiedUtf8(input.take(Number(input.i64()))) : this.utf();
        return this.handle({ item: { label, value: JSON.stringify(text) }, text });
      }
      case 0x75:
        return this.array(item, depth);
      case 0x76:
        item.value = `class ${this.class(depth)?.name}`;
        return this.handle({ item });
      case 0x77:
      case 0x7a: {
        const data = input.take(tag === 0x77 ? input.u8() : input.i32());
        return { item: { label: 'bytes', value: toHex(data) } };
      }
      case 0x78:
        return { item: { label: 'end' } };
      case 0x79:
        this.handles = [];
        return { item: { label: 'reset' } };
      case 0x7d:
        return this.proxy(depth);
      case 0x7e: {
        const name = this.class(depth)?.name;
        const value = this.handle({ item });
        item.value = `${name}.${this.content('', depth + 1).text}`;
        return value;
      }
      default:
        throw new RangeError(`the byte 0x${tag.toString(16)} begins nothing known`);
    }
  }

  /** Items up to the mark of the end. @param {number} depth */
  annotation(depth) {
    const items = [];
    for (;;) {
      const { item } = this.content('', depth + 1);
      if (item.label === 'end' && !item.value) return items;
      items.push(item);
    }
  }

  /** @param {number} depth @returns {Class | null} */
  class(depth) {
    return this.content('', depth + 1).class ?? null;
  }

  /** @param {string} label @param {number} depth @returns {Value} */
  classOf(label, depth) {
    const { input } = this;
    /** @type {Class} */
    const made = { name: typeName(this.utf()), flags: 0, fields: [], parent: null };
    const id = input.i64();
    const value = this.handle({ item: { label, value: `class ${made.name}, serialVersionUID ${id}` }, class: made });
    made.flags = input.u8();
    for (let left = input.u16(); left > 0; left--) {
      const code = String.fromCharCode(input.u8());
      const name = this.utf();
      made.fields.push({ name, type: 'L['.includes(code) ? (this.content('', depth + 1).text ?? code) : code });
    }
    this.annotation(depth);
    made.parent = this.class(depth);
    return value;
  }

  /** @param {number} depth @returns {Value} */
  proxy(depth) {
    const names = Array.from({ length: Math.min(this.input.i32(), 1000) }, () => this.utf());
    /** @type {Class} */
    const made = { name: `proxy of ${names.join(', ')}`, flags: 2, fields: [], parent: null };
    const value = this.handle({ item: { label: '', value: made.name }, class: made });
    this.annotation(depth);
    made.parent = this.class(depth);
    return value;
  }

  /** @param {Item} item @param {number} depth */
  object(item, depth) {
    const own = this.class(depth);
    if (!own) throw new RangeError('an object without a class');
    item.value = own.name;
    item.children = [];
    const value = this.handle({ item });
    const line = [];
    for (let part = /** @type {Class | null} */ (own); part && line.length < DEEPEST; part = part.parent) line.unshift(part);
    for (const part of line) {
      if (part.flags & 4 && !(part.flags & 8)) throw new RangeError(`${part.name} writes its bytes in its own way`);
      if (part.flags & 2) {
        for (const field of part.fields) item.children.push(this.typed(field.name, field.type, depth));
      }
      if (part.flags & 5) item.children.push(...this.annotation(depth));
    }
    return value;
  }

  /** @param {Item} item @param {number} depth */
  array(item, depth) {
    const type = this.class(depth)?.name ?? 'array';
    const value = this.handle({ item });
    const length = this.input.i32();
    item.value = `${type.slice(0, -2)}[${length}]`;
    if (type === 'byte[]') {
      item.value += ` ${toHex(this.input.take(length))}`;
      return value;
    }
    const code = Object.keys(PLAIN).find((code) => PLAIN[code][0] === type.slice(0, -2)) ?? 'L';
    item.children = [];
    for (let n = 0; n < length; n++) item.children.push(this.typed(String(n), code, depth));
    return value;
  }

  /** The value of a field or of an array's element. @param {string} label @param {string} type @param {number} depth @returns {Item} */
  typed(label, type, depth) {
    if (!PLAIN[type]) return this.content(label, depth + 1).item;
    if (++this.count > MOST_ITEMS) throw new RangeError('too many values');
    return { label, value: String(PLAIN[type][1](this.input)) };
  }
}
