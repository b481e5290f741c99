// Lays out JSON and XML. Nothing is parsed into numbers: they stay as they are written.

/** Whether the whole text is a JSON object or array. @param {string | null} text @returns {text is string} */
export function isJson(text) {
  if (text === null || !/^\s*[[{]/.test(text)) return false;
  return jsonError(text) === null;
}

/** Why a text is no JSON; `null` if it is. @param {string} text */
export function jsonError(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof RangeError ? 'It is nested too deep.' : String(/** @type {Error} */ (error).message);
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

/** JSON with a line for each member. @param {string} text valid JSON */
export function layOutJson(text) {
  let depth = 0;
  let out = '';
  let opened = '';
  const line = () => `\n${'  '.repeat(Math.min(depth, 100))}`;
  for (const [token] of text.matchAll(TOKEN)) {
    const closes = token === ']' || token === '}';
    if (closes) depth--;
    if (opened) out += closes ? '' : line();
    else if (closes) out += line();
    opened = token === '[' || token === '{' ? token : '';
    out += token;
    if (opened) depth++;
    else if (token === ',') out += line();
    else if (token === ':') out += ' ';
  }
  return out;
}

const XML = /<!--[^]*?-->|<!\[CDATA\[[^]*?\]\]>|<\?[^]*?\?>|<![^>]*>|<\/[^>]+>|<[A-Za-z_:](?:"[^"]*"|'[^']*'|[^"'>])*>|[^<]+|</g;

/** XML with a line for each element; `null` if the text is none. @param {string | null} text */
export function layOutXml(text) {
  if (text === null || !/^\s*<[A-Za-z_:?!]/.test(text)) return null;
  const open = [];
  const lines = [];
  let elements = 0;
  /** The start tag of the last line, if only text came after it. */
  let leaf = '';
  for (const [part] of text.matchAll(XML)) {
    if (part === '<') return null;
    const name = /^<\/?([^\s/>]+)/.exec(part)?.[1];
    if (part.startsWith('</')) {
      if (open.pop() !== name) return null;
      if (leaf) lines[lines.length - 1] += part;
      else lines.push('  '.repeat(open.length) + part);
      leaf = '';
    } else if (part[0] !== '<') {
      if (!part.trim()) continue;
      if (!open.length) return null;
      if (leaf) lines[lines.length - 1] += part.trim();
      else lines.push('  '.repeat(open.length) + part.trim());
    } else {
      lines.push('  '.repeat(open.length) + part);
      leaf = '';
      if (/^<[?!]/.test(part)) continue;
      elements++;
      if (part.endsWith('/>')) continue;
      leaf = part;
      open.push(name);
      if (open.length > 200) return null;
    }
  }
  return elements && !open.length ? lines.join('\n') : null;
}
