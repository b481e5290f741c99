// The ways to show data.

import { html, useEffect, useState } from '../lib/html.js';
import { Loading, Note } from '../lib/states.js';
import { bytes as size, count, Text } from '../lib/words.js';
import { hexDump, isReadable, toBase64, utf8 } from './decoders/bytes.js';
import { decode } from './decoders/decode.js';
import { javaItems } from './decoders/java.js';
import { layOutJson, layOutXml } from './decoders/layout.js';
import { protobufItems } from './decoders/protobuf.js';
import { FORMATS } from './decoders/unpack.js';
import { Button, Choice, typed } from './parts.js';

/** @import {Decoded, Item} from './types' */

/** The most letters that are drawn. */
const MOST_DRAWN = 262_144;

const VIEWS = /** @type {Record<string, string>} */ ({ known: 'Meaning', text: 'Text', json: 'JSON', xml: 'XML', java: 'Java object', protobuf: 'Protobuf', hex: 'Hex', base64: 'Base64' });

/** @param {{path: string, bytes: Uint8Array, isWhole: boolean, query: Record<string, string>, set: (patch: Record<string, unknown>) => void}} props */
export function Views({ path, bytes, isWhole, query, set }) {
  const [decoded, show] = useState(/** @type {Decoded | null} */ (null));
  const how = query.unpack === 'none' || query.unpack in FORMATS ? query.unpack : 'auto';
  useEffect(() => {
    let isOver = false;
    // The first part of a large value is shown as it is: to guess and lay out takes time.
    const views = isReadable(new TextDecoder().decode(bytes)) ? ['text', 'hex'] : ['hex', 'text'];
    if (isWhole) void decode(path, bytes, how).then((decoded) => !isOver && show(decoded));
    else show({ bytes, layers: [], known: null, stopped: null, views });
    return () => void (isOver = true);
  }, [bytes, how]);
  if (!decoded) return html`<${Loading} />`;
  const { views, layers, stopped } = decoded;
  const view = views.includes(query.view) ? query.view : views[0];
  return html`<div class="stack">
    <div class="toolbar"><${Choice} label="View" names=${views.map((name) => [name, VIEWS[name]])} is=${view} set=${(/** @type {string} */ view) => set({ view })} />
      ${isWhole && html`<label class="end"><span class="muted">Unpack</span> <select value=${how} onChange=${typed((unpack) => set({ unpack: unpack === 'auto' ? null : unpack, view: null }))}>
        <option value="auto">if it looks packed</option><option value="none">never</option>${Object.keys(FORMATS).map((name) => html`<option key=${name}>${name}</option>`)}</select></label>`}</div>
    ${layers.length > 0 && html`<p class="muted">Unpacked: ${layers.map(({ format, from, to }) => `${format}, ${size(from)} to ${size(to)}`).join('; then ')}.</p>`}
    ${stopped && html`<${Note} level="warning" sentence=${stopped} />`}
    <${View} view=${view} decoded=${decoded} />
  </div>`;
}

/** @param {{view: string, decoded: Decoded}} props */
function View({ view, decoded: { bytes, known } }) {
  const text = utf8(bytes);
  switch (view) {
    case 'known':
      return html`<p><strong>${known?.form}</strong>. <${Text} of=${known?.sentence} /></p><${Items} items=${known?.facts ?? []} />`;
    case 'java':
      return html`<${Items} items=${javaItems(bytes)} />`;
    case 'protobuf':
      return html`<p class="muted">Without the schema the names of fields are not known: each has its number and wire type.</p><${Items} items=${protobufItems(bytes) ?? []} />`;
    case 'json':
      return html`<${Shown} text=${layOutJson(text ?? '')} />`;
    case 'xml':
      return html`<${Shown} text=${layOutXml(text) ?? ''} />`;
    case 'hex':
      return html`<${Shown} text=${hexDump(bytes.subarray(0, MOST_DRAWN / 4))} />`;
    case 'base64':
      return html`<${Shown} text=${toBase64(bytes).replace(/.{76}/g, '$&\n')} />`;
    default:
      return html`${text === null && html`<${Note} level="info" sentence="These bytes are not UTF-8: what is no text shows as �. The text view does not save them." />`}<${Shown} text=${text ?? new TextDecoder().decode(bytes)} />`;
  }
}

/** A text, cut if it is long. @param {{text: string}} props */
const Shown = ({ text }) => html`<pre tabindex="0" role="region" aria-label="Value">${text.slice(0, MOST_DRAWN)}</pre>${text.length >= MOST_DRAWN && html`<small>The view is cut here. Download the data to see all.</small>`}`;

/** @param {{items: Item[], depth?: number}} props */
function Items({ items, depth = 0 }) {
  const [shown, show] = useState(200);
  return html`<ul class="items ${depth ? '' : 'first'}">${items.slice(0, shown).map((item, at) => html`<${Branch} key=${at} item=${item} depth=${depth} />`)}
    ${items.length > shown && html`<li><${Button} on=${() => show(shown * 5)}>More: ${count(items.length - shown)} left</></li>`}</ul>`;
}

/** @param {{item: Item, depth: number}} props */
function Branch({ item: { label, value = '', children }, depth }) {
  const [isOpen, toggle] = useState(depth < 3);
  const line = html`<b><${Text} of=${label} /></b> <code><${Text} of=${value.length > 4096 ? `${value.slice(0, 4096)} …` : value} /></code>`;
  if (!children?.length) return html`<li>${line}</li>`;
  return html`<li><details open=${isOpen} onToggle=${(/** @type {any} */ event) => toggle(event.target.open)}><summary>${line}</summary>${isOpen && html`<${Items} items=${children} depth=${depth + 1} />`}</details></li>`;
}
