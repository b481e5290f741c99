// Search over paths and values, on the server.

import { get, search as query_ } from '../lib/api.js';
import { html, useEffect, useRef, useState } from '../lib/html.js';
import { ErrorBox } from '../lib/states.js';
import { ago, bytes, count, plural, Text } from '../lib/words.js';

/** @import {Found, FoundPage} from './types' */

/** So many are shown before one asks for more. */
const ENOUGH = 500;
const FIELDS = /** @type {[string, string, string][]} */ ([['name', 'Path like', '*/lock-*'], ['value', 'Value has', 'text'], ['owner', 'Owner', '0x1000…'], ['larger_than', 'Larger than (bytes)', '65536']]);
const AGES = /** @type {[string, string][]} */ ([['', 'at any time'], ['600000', 'in the last 10 min'], ['3600000', 'in the last hour'], ['86400000', 'in the last day'], ['604800000', 'in the last week']]);

/** @param {{query: Record<string, string>, go: import('../lib/route.js').Go, path: string, open: (path: string) => void}} props */
export function Search({ query, go, path, open }) {
  const [state, set] = useState(/** @type {{items: Found[], last: FoundPage | null, error: any, isBusy: boolean}} */ ({ items: [], last: null, error: null, isBusy: false }));
  const stop = useRef(/** @type {AbortController | null} */ (null));
  const wanted = Object.fromEntries([...FIELDS.map(([name]) => name), 'under', 'age'].map((name) => [name, query[`s.${name}`] ?? '']));
  const run = async (/** @type {string | null} */ start, /** @type {Found[]} */ found) => {
    stop.current?.abort();
    const own = (stop.current = new AbortController());
    const { age, ...rest } = wanted;
    let [cursor, items] = [start, found];
    const changed_since_ms = age && Date.now() - Number(age);
    set({ items, last: null, error: null, isBusy: true });
    try {
      for (;;) {
        /** @type {FoundPage} */
        const last = await get(`/tree/search${query_({ ...rest, changed_since_ms, cursor })}`, { signal: own.signal, quiet: true });
        items = [...items, ...last.items];
        cursor = last.next;
        const isOver = last.done || !cursor;
        set({ items, last, error: null, isBusy: !isOver && items.length - found.length < ENOUGH });
        if (isOver || items.length - found.length >= ENOUGH) return;
      }
    } catch (error) {
      if (stop.current === own) set((before) => ({ ...before, error: own.signal.aborted ? null : error, isBusy: false }));
    }
  };
  useEffect(() => () => stop.current?.abort(), []);
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    void run(null, []);
  };
  const field = (/** @type {string} */ name, /** @type {any} */ value) => go({ [`s.${name}`]: value || null }, { replace: true });
  const { items, last, error, isBusy } = state;
  const isAny = FIELDS.some(([name]) => wanted[name]) || wanted.age;
  return html`<form class="tree-search" role="search" onSubmit=${submit}>
    <div class="fields">${FIELDS.map(([name, label, example], at) => html`<label key=${name}>${label}<input data-search=${at === 0 || undefined} type=${name === 'larger_than' ? 'number' : 'text'} min="0" placeholder=${example} spellcheck="false" value=${wanted[name]} onInput=${(/** @type {any} */ event) => field(name, event.target.value)} /></label>`)}
      <label>Changed<select value=${wanted.age} onChange=${(/** @type {any} */ event) => field('age', event.target.value)}>${AGES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select></label>
      <label>Below<select value=${wanted.under} onChange=${(/** @type {any} */ event) => field('under', event.target.value)}>${[...new Set(['', path === '/' ? '' : path, wanted.under])].map((under) => html`<option key=${under} value=${under}>${under || '/'}</option>`)}</select></label></div>
    <div class="row">${isBusy ? html`<button type="button" class="danger" onClick=${() => stop.current?.abort()}>Cancel</button>` : html`<button class="primary" disabled=${!isAny}>Find</button>`}
      ${isBusy && html`<progress aria-label="Searched" max=${last?.of ?? 1} value=${last?.of ? last.looked_at : undefined} />`}
      <small role="status">${last ? html`${plural(items.length, 'match', 'matches')}; looked at ${count(last.looked_at)}${last.of ? ` of ${count(last.of)}` : ''}${!isBusy && !last.done ? ', stopped' : ''}` : isBusy ? 'Searching …' : 'In names, * stands for any part, ? for one letter.'}</small>
      ${!isBusy && last?.next && html`<button type="button" onClick=${() => run(last.next, items)}>Go on</button>`}</div>
    ${error && html`<${ErrorBox} error=${error} retry=${() => run(null, [])} />`}
    ${items.length > 0 && html`<ul class="found" aria-label="Matches">${items.map((one) => html`<li key=${one.path}><button type="button" class="plain" onClick=${() => open(one.path)}><code><${Text} of=${one.path} /></code><small>${bytes(one.data_length)}, ${ago(one.mtime_ms)}${one.match === 'value' ? ', by its value' : ''}</small></button></li>`)}</ul>`}
  </form>`;
}
