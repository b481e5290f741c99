// Unpacks compressed data, with a limit.

import { isReadable, Reader, utf8 } from './bytes.js';

/** More is not unpacked: a small value may unpack to very much. */
export const MOST = 16 << 20;

/** @param {Uint8Array} bytes @param {...number} start */
export const starts = (bytes, ...start) => start.every((byte, at) => bytes[at] === byte);

/** Bytes that grow up to the limit. */
class Output {
  constructor() {
    this.bytes = new Uint8Array(4096);
    this.length = 0;
  }

  /** @param {number} more */
  room(more) {
    const needed = this.length + more;
    if (needed > MOST) throw new TooMuch();
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.min(MOST, Math.max(needed, 2 * this.bytes.length)));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }

  /** @param {Uint8Array} bytes */
  push(bytes) {
    this.room(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Copies what was written before; the parts may overlap. @param {number} back @param {number} count @param {number} [first] */
  again(back, count, first = 0) {
    if (back < 1 || back > this.length - first) throw new RangeError('a copy from before the start');
    this.room(count);
    for (let n = 0; n < count; n++, this.length++) this.bytes[this.length] = this.bytes[this.length - back];
  }

  done() {
    return this.bytes.slice(0, this.length);
  }
}

export class TooMuch extends Error {
  constructor() {
    super(`It unpacks to more than ${MOST >> 20} MiB. Download it to look inside.`);
  }
}

/** By the browser's own decompression. @param {'gzip' | 'deflate'} format @returns {(bytes: Uint8Array) => Promise<Uint8Array>} */
const stream = format => async bytes => {
  const output = new Output();
  const unpacked = new Response(/** @type {BodyInit} */ (bytes)).body?.pipeThrough(new DecompressionStream(format)).getReader();
  for (let part = await unpacked?.read(); part && !part.done; part = await unpacked?.read()) {
    try {
      output.push(part.value);
    } catch (error) {
      unpacked?.cancel();
      throw error;
    }
  }
  return output.done();
};

/** A block of LZ4. @param {Uint8Array} block @param {Output} output */
function lz4Into(block, output) {
  const input = new Reader(block);
  /** @param {number} count */
  const longer = count => {
    if (count < 15) return count;
    for (let byte = 255; byte === 255; count += byte) byte = input.u8();
    return count;
  };
  for (;;) {
    const token = input.u8();
    output.push(input.take(longer(token >> 4)));
    if (!input.left) return;
    const back = input.u8() | (input.u8() << 8);
    output.again(back, longer(token & 15) + 4);
  }
}

/** @param {Uint8Array} bytes */
function lz4Block(bytes) {
  const output = new Output();
  lz4Into(bytes, output);
  return output.done();
}

/** A block with its size before it, as Python's lz4 writes it. @param {Uint8Array} bytes */
function lz4Sized(bytes) {
  const size = new Reader(bytes).u32le();
  const block = lz4Block(bytes.subarray(4));
  if (block.length !== size) throw new RangeError('another size than announced');
  return block;
}

/** @param {Uint8Array} bytes */
function lz4Frame(bytes) {
  const input = new Reader(bytes);
  const output = new Output();
  while (input.left) {
    if (input.u32le() !== 0x184d2204) throw new RangeError('no frame of LZ4');
    const flags = input.u8();
    input.take(1 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0) + 1);
    for (let size = input.u32le(); size !== 0; size = input.u32le()) {
      const block = input.take(size & 0x7fffffff);
      if (size & 0x80000000) output.push(block);
      else lz4Into(block, output);
      if (flags & 16) input.take(4);
    }
    if (flags & 4) input.take(4);
  }
  return output.done();
}

/** The stream of lz4-java. @param {Uint8Array} bytes */
function lz4Java(bytes) {
  const input = new Reader(bytes);
  const output = new Output();
  while (input.left) {
    if (!starts(input.take(8), 0x4c, 0x5a, 0x34, 0x42)) throw new RangeError('no block of lz4-java');
    const method = input.u8() & 0xf0;
    const length = input.u32le();
    input.take(8);
    const block = input.take(length);
    if (method === 0x10) output.push(block);
    else if (block.length) lz4Into(block, output);
  }
  return output.done();
}

/** @param {Uint8Array} block @param {Output} output */
function snappyInto(block, output) {
  const input = new Reader(block);
  const first = output.length;
  const size = Number(input.varint());
  if (size > MOST) throw new TooMuch();
  while (input.left) {
    const tag = input.u8();
    let count = (tag >> 2) + 1;
    if ((tag & 3) === 0) {
      if (count > 60) count = 1 + Number(little(input, count - 60));
      output.push(input.take(count));
    } else if ((tag & 3) === 1) {
      output.again(((tag >> 5) << 8) | input.u8(), ((tag >> 2) & 7) + 4, first);
    } else {
      output.again(little(input, (tag & 3) === 2 ? 2 : 4), count, first);
    }
  }
  if (output.length - first !== size) throw new RangeError('another size than announced');
}

/** @param {Reader} input @param {number} count */
const little = (input, count) => input.take(count).reduceRight((value, byte) => value * 256 + byte, 0);

/** @param {Uint8Array} bytes */
function snappyRaw(bytes) {
  const output = new Output();
  snappyInto(bytes, output);
  return output.done();
}

/** @param {Uint8Array} bytes */
function snappyFramed(bytes) {
  const input = new Reader(bytes);
  const output = new Output();
  while (input.left) {
    const kind = input.u8();
    const chunk = input.take(little(input, 3));
    if (kind === 0) snappyInto(chunk.subarray(4), output);
    else if (kind === 1) output.push(chunk.subarray(4));
    else if (kind < 0x80) throw new RangeError('an unknown chunk');
  }
  return output.done();
}

/** The stream of snappy-java. @param {Uint8Array} bytes */
function snappyJava(bytes) {
  const input = new Reader(bytes.subarray(16));
  const output = new Output();
  while (input.left) snappyInto(input.take(input.i32()), output);
  return output.done();
}

/**
 * The formats, the surest first. `is`: by the first bytes. Without a sign at the start, the result has to be readable.
 * @type {Record<string, {is?: (bytes: Uint8Array) => boolean, unpack: (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>}>}
 */
export const FORMATS = {
  gzip: { is: bytes => starts(bytes, 0x1f, 0x8b, 8), unpack: stream('gzip') },
  'LZ4 frame': { is: bytes => starts(bytes, 4, 0x22, 0x4d, 0x18), unpack: lz4Frame },
  'LZ4 of lz4-java': { is: bytes => starts(bytes, 0x4c, 0x5a, 0x34, 0x42, 0x6c, 0x6f, 0x63, 0x6b), unpack: lz4Java },
  'Snappy framed': { is: bytes => starts(bytes, 0xff, 6, 0, 0, 0x73, 0x4e, 0x61), unpack: snappyFramed },
  'Snappy of snappy-java': { is: bytes => starts(bytes, 0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0), unpack: snappyJava },
  zlib: { is: bytes => (bytes[0] & 15) === 8 && ((bytes[0] << 8) | bytes[1]) % 31 === 0, unpack: stream('deflate') },
  'Snappy raw': { unpack: snappyRaw },
  'LZ4 block with size': { unpack: lz4Sized },
  'LZ4 block': { unpack: lz4Block },
};

/**
 * Unpacks one layer, if the bytes look packed.
 * @param {Uint8Array} bytes
 * @returns {Promise<{format: string, bytes: Uint8Array} | null>}
 */
export async function unpackOnce(bytes) {
  if (bytes.length < 8 || isReadable(utf8(bytes))) return null;
  for (const [format, { is, unpack }] of Object.entries(FORMATS)) {
    if (is && !is(bytes)) continue;
    try {
      const unpacked = await unpack(bytes);
      if (is || (unpacked.length > 8 && isReadable(utf8(unpacked)))) return { format, bytes: unpacked };
    } catch (error) {
      if (is && error instanceof TooMuch) throw error;
    }
  }
  return null;
}
