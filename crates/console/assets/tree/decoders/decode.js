// Guesses what data are, and says in which ways they can be shown.

import { isReadable, utf8 } from './bytes.js';
import { isJava } from './java.js';
import { known } from './known.js';
import { isJson, layOutXml } from './layout.js';
import { protobufItems } from './protobuf.js';
import { FORMATS, unpackOnce } from './unpack.js';

/** @import {Decoded, Layer} from '../types' */

const MOST_LAYERS = 4;

/**
 * Unpacks data, and guesses their form.
 * @param {string} path
 * @param {Uint8Array} packed
 * @param {'auto' | 'none' | string} how guess the packing, leave it, or the name of a format
 * @returns {Promise<Decoded>}
 */
export async function decode(path, packed, how = 'auto') {
  /** @type {Layer[]} */
  const layers = [];
  let bytes = packed;
  let stopped = null;
  try {
    for (let format = how; layers.length < MOST_LAYERS && format !== 'none'; format = 'auto') {
      const unpacked = format === 'auto' ? await unpackOnce(bytes) : { format, bytes: await FORMATS[format].unpack(bytes) };
      if (!unpacked) break;
      layers.push({ format: unpacked.format, from: bytes.length, to: unpacked.bytes.length });
      bytes = unpacked.bytes;
    }
  } catch (error) {
    stopped = `Not unpacked: ${/** @type {Error} */ (error).message}`;
  }
  const form = known(path, bytes);
  const views = viewsOf(bytes);
  return { bytes, layers, views: form ? ['known', ...views] : views, known: form, stopped };
}

/** The views in which bytes can be shown, the likeliest first. @param {Uint8Array} bytes */
function viewsOf(bytes) {
  const text = utf8(bytes);
  const views = [];
  if (isJava(bytes)) views.push('java');
  if (isJson(text)) views.push('json');
  else if (layOutXml(text)) views.push('xml');
  const readable = isReadable(text);
  if (readable) views.push('text');
  if (bytes.length > 1 && protobufItems(bytes)) views.push('protobuf');
  views.push('hex', 'base64');
  if (!readable) views.push('text');
  return views;
}
