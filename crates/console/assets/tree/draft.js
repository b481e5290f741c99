// A text that somebody writes, as bytes. A way to edit that would change bytes that are not seen is refused.

import { fromBase64, fromUtf8, lineEnds, toBase64, utf8 } from './decoders/bytes.js';
import { jsonError } from './decoders/layout.js';

/** @typedef {'text' | 'json' | 'base64' | 'file'} How */
/** @import {Seen} from './types' */
/** @typedef {{base: Uint8Array, seen: Seen, how: How, text: string, file: Uint8Array | null}} Draft */

/** What a change says of the znode that somebody saw. @param {Seen} znode @returns {Seen} */
export const seenOf = ({ version, czxid, mzxid }) => ({ version, czxid, mzxid });

/** The bytes that a draft would save, or why it cannot. @param {Omit<Draft, 'seen'>} draft @returns {{bytes?: Uint8Array, problem?: string}} */
export function bytesOf({ base, how, text, file }) {
  if (how === 'file') return file ? { bytes: file } : { problem: 'Choose a file.' };
  if (how === 'base64') {
    const bytes = fromBase64(text);
    return bytes ? { bytes } : { problem: 'This is not base64.' };
  }
  const error = how === 'json' && jsonError(text);
  if (error) return { problem: `This is not JSON: ${error}` };
  // A text field has line feeds only.
  const isCrlf = lineEnds(utf8(base) ?? '') === 'crlf';
  const bytes = fromUtf8(isCrlf ? text.replaceAll('\n', '\r\n') : text);
  return bytes ? { bytes } : { problem: 'This text cannot be written as UTF-8: it has half a character in it.' };
}

/** The text of bytes in a way to edit them; `null` if they would not come back as they are. @param {Uint8Array} bytes @param {How} how */
export function textFor(bytes, how) {
  if (how === 'base64') return toBase64(bytes).replace(/.{76}/g, '$&\n');
  if (how === 'file') return '';
  const text = utf8(bytes);
  return text === null || lineEnds(text) === 'mixed' || text.includes('\0') ? null : text.replaceAll('\r\n', '\n');
}
