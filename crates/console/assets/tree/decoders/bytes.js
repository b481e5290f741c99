// Bytes as text, as base64 and as hex.

/** The text of bytes; `null` if they are not UTF-8. @param {Uint8Array} bytes @returns {string | null} */
export function utf8(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** The bytes of a text; `null` if a half of a surrogate pair is in it. @param {string} text @returns {Uint8Array | null} */
export function fromUtf8(text) {
  const bytes = new TextEncoder().encode(text);
  return utf8(bytes) === text ? bytes : null;
}

/** @param {string} text @returns {Uint8Array | null} */
export function fromBase64(text) {
  try {
    return Uint8Array.from(atob(text.replace(/\s+/g, '')), char => char.charCodeAt(0));
  } catch {
    return null;
  }
}

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8190) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8190));
  }
  return btoa(text);
}

/** @param {Uint8Array} bytes */
export function toHex(bytes) {
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}

/** Lines of offset, 16 bytes and their letters. @param {Uint8Array} bytes @param {number} [from] the offset of the first byte */
export function hexDump(bytes, from = 0) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16);
    const hex = Array.from(row, (byte, n) => (n === 8 ? ' ' : '') + byte.toString(16).padStart(2, '0')).join(' ');
    const letters = Array.from(row, byte => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${(from + at).toString(16).padStart(8, '0')}  ${hex.padEnd(48)}  ${letters}`);
  }
  return lines.join('\n');
}

/** @param {Uint8Array} a @param {Uint8Array} b */
export const same = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);

/** Whether a text is one that people read: no control characters but tab and line ends. @param {string | null} text */
export const isReadable = text => text !== null && !/[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(text);

/** The ends of a text's lines: a browser's text field keeps `lf` only. @param {string} text @returns {'lf' | 'crlf' | 'mixed'} */
export function lineEnds(text) {
  if (!text.includes('\r')) return 'lf';
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? 'mixed' : 'crlf';
}

/** Reads numbers one after another. It throws a `RangeError` at the end of the bytes. */
export class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = 0;
  }

  get left() {
    return this.bytes.length - this.at;
  }

  /** @param {number} count */
  take(count) {
    if (count < 0 || count > this.left) throw new RangeError('the bytes end too early');
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  /** @param {number} count */
  skip(count) {
    this.take(count);
    return this.at - count;
  }

  u8() {
    return this.view.getUint8(this.skip(1));
  }

  u16() {
    return this.view.getUint16(this.skip(2));
  }

  i32() {
    return this.view.getInt32(this.skip(4));
  }

  u32le() {
    return this.view.getUint32(this.skip(4), true);
  }

  i64() {
    return this.view.getBigInt64(this.skip(8));
  }

  /** A number in groups of seven bits, the lowest first. */
  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.u8();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw new RangeError('a number of more than ten bytes');
  }
}
