// Makes a picture small: a PNG of true colours becomes one with a palette of 256 colours.

import zlib from 'node:zlib';

const COLOURS = 256;
/** As many are the most frequent ones; the others are those that none of these is like. */
const FREQUENT = 192;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** @param {Buffer} png of 8 bits for each of three or four channels, not interlaced */
export function withPalette(png) {
  const { width, height, pixels } = read(png);
  const counts = new Map();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = choose(counts);
  const places = new Map(palette.map((colour, at) => [colour, at]));
  for (const colour of counts.keys()) if (!places.has(colour)) places.set(colour, nearest(palette, colour));
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = places.get(pixels[y * width + x]);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap(parts));
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('PLTE', colours), chunk('IDAT', zlib.deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

/** @param {number} colour */
const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];

/** @param {Map<number, number>} counts of each colour */
function choose(counts) {
  const all = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  const palette = all.slice(0, FREQUENT);
  const far = new Map(all.slice(FREQUENT).map((colour) => [colour, Math.min(...palette.map((one) => distance(one, colour)))]));
  while (palette.length < COLOURS && far.size > 0) {
    const [next] = [...far].reduce((best, one) => (one[1] > best[1] ? one : best));
    palette.push(next);
    far.delete(next);
    for (const [colour, before] of far) far.set(colour, Math.min(before, distance(next, colour)));
  }
  return palette;
}

/** @param {number} one @param {number} other */
function distance(one, other) {
  const [red, green, blue] = parts(one);
  const [r, g, b] = parts(other);
  return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
}

/** @param {number[]} palette @param {number} colour */
function nearest(palette, colour) {
  const distances = palette.map((one) => distance(one, colour));
  return distances.indexOf(Math.min(...distances));
}

/** @param {Buffer} png */
function read(png) {
  const [width, height, channels] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3];
  const packed = [];
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') packed.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const bytes = unfiltered(zlib.inflateSync(Buffer.concat(packed)), width * channels, channels);
  const pixels = new Uint32Array(width * height);
  for (let at = 0; at < pixels.length; at++) pixels[at] = (bytes[at * channels] << 16) | (bytes[at * channels + 1] << 8) | bytes[at * channels + 2];
  return { width, height, pixels };
}

/** The rows without the filters of PNG. @param {Buffer} rows each with the number of its filter before it @param {number} length of a row @param {number} channels */
function unfiltered(rows, length, channels) {
  const count = rows.length / (length + 1);
  const out = Buffer.alloc(count * length);
  for (let y = 0; y < count; y++) {
    const filter = rows[y * (length + 1)];
    for (let x = 0; x < length; x++) {
      const left = x < channels ? 0 : out[y * length + x - channels];
      const above = y === 0 ? 0 : out[(y - 1) * length + x];
      const corner = y === 0 || x < channels ? 0 : out[(y - 1) * length + x - channels];
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      out[y * length + x] = rows[y * (length + 1) + 1 + x] + guess;
    }
  }
  return out;
}

/** @param {number} left @param {number} above @param {number} corner */
function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [a, b, c] = [left, above, corner].map((one) => Math.abs(guess - one));
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** @param {string} kind @param {Buffer} data */
function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

/** The check sum of a chunk. @param {Buffer} bytes */
function crc(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
