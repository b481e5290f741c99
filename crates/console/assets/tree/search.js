// Search over paths and values, on the server.

import { get, search as asQuery } from '../lib/api.js';
import { html, useEffect, useRef, useState } from '../lib/html.js';
import { ErrorBox } from '../lib/states.js';
import { ago, bytes, count, plural, Text } from '../lib/words.js';
import { Button, typed } from './parts.js';

/** @import {Found, FoundPage} from './types' */

/** This number is shown before one asks for more. */
const ENOUGH = 500;
const FIELDS = Object.entries({ name: ['Name or path', '/app/**/lock-*'], value: ['Value has', 'text'], owner: ['Owner', '0x1000…'], larger_than: ['Larger than (bytes)', '65536'] });
const AGES = Object.entries({ '': 'at any time', 600000: 'in the last 10 min', 3600000: 'in the last hour', 86400000: 'in the last day', 604800000: 'in the last week' });

/** @param {{query: Record<string, string>, set: (patch: Record<string, unknown>) => void, path: string, open: (path: string) => void}} props */
export function Search({ query, set, path, open }) {
  const [state, show] = useState(/** @type {{items: Found[], last: FoundPage | null, error: any, isBusy: boolean}} */ ({ items: [], last: null, error: null, isBusy: false }));
  const stop = useRef(/** @type {AbortController | null} */ (null));
  const wanted = Object.fromEntries([...FIELDS.map(([name]) => name), 'under', 'age'].map((name) => [name, query[`s.${name}`] ?? '']));
  useEffect(() => () => stop.current?.abort(), []);
  const run = async (/** @type {string | null} */ start, /** @type {Found[]} */ found) => {
    stop.current?.abort();
    const own = (stop.current = new AbortController());
    const { age, ...rest } = wanted;
    const changed_since_ms = age && Date.now() - Number(age);
    let [cursor, items, isBusy] = [start, found, true];
    show({ items, last: null, error: null, isBusy });
    try {
      while (isBusy) {
        /** @type {FoundPage} */
        const last = await get(`/tree/search${asQuery({ ...rest, changed_since_ms, cursor })}`, { signal: own.signal, quiet: true });
        items = [...items, ...last.items];
        cursor = last.next;
        isBusy = !last.done && !!cursor && items.length - found.length < ENOUGH;
        show({ items, last, error: null, isBusy });
      }
    } catch (error) {
      if (stop.current === own) show((before) => ({ ...before, error: own.signal.aborted ? null : error, isBusy: false }));
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void run(null, []);
  };
  const field = (/** @type {string} */ name) => typed((value) => set({ [`s.${name}`]: value || null }));
  const { items, last, error, isBusy } = state;
  const options = (/** @type {string[][]} */ of) => of.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`);
  const tops = [...new Set(['', path, wanted.under])].filter((top) => top !== '/').map((top) => [top, top || '/']);
  return html`<form class="tree-search" role="search" onSubmit=${submit}>
    <div class="fields">${FIELDS.map(([name, [label, example]]) => html`<label key=${name}>${label}<input data-search=${name === 'name' || undefined} inputmode=${name === 'larger_than' ? 'numeric' : undefined} placeholder=${example} spellcheck=${false} value=${wanted[name]} onInput=${field(name)} /></label>`)}
      <label>Changed<select value=${wanted.age} onChange=${field('age')}>${options(AGES)}</select></label><label>Below<select value=${wanted.under} onChange=${field('under')}>${options(tops)}</select></label></div>
    <div class="row">${isBusy ? html`<${Button} class="danger" on=${() => stop.current?.abort()}>Cancel</><progress aria-label="Searched" max=${last?.of ?? 1} value=${last?.of ? last.looked_at : undefined} />` : html`<button class="primary" disabled=${Object.entries(wanted).every(([name, value]) => name === 'under' || !value)}>Find</button>`}
      <small role="status">${last ? `${plural(items.length, 'match', 'matches')}; looked at ${count(last.looked_at)}${last.of ? ` of ${count(last.of)}` : ''}${isBusy || last.done ? '' : ', stopped'}` : isBusy ? 'Searching …' : 'In names * is any letters, ? is one; /**/ is any znodes between. Without them: a part of the name.'}</small>
      ${!isBusy && last?.next && html`<${Button} on=${() => run(last.next, items)}>Go on</>`}</div>
    ${error && html`<${ErrorBox} error=${error} retry=${() => run(null, [])} />`}
    ${items.length > 0 && html`<ul class="found" aria-label="Matches">${items.map(({ path, data_length, mtime_ms, match }) => html`<li key=${path}><${Button} class="plain" on=${() => open(path)}><code><${Text} of=${path} /></code><small>${bytes(data_length)}, ${ago(mtime_ms)}${match === 'value' && ', by its value'}</small></></li>`)}</ul>`}
  </form>`;
}
