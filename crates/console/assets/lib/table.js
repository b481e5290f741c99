// Tables: sort, filter, copy, keys, and more rows when they are wanted.

import { html, useId, useMemo, useRef, useState } from './html.js';
import { url } from './api.js';
import { useKeys } from './keys.js';
import { useQuery } from './route.js';
import { Empty } from './states.js';
import { Copy, count, escaped, Text } from './words.js';

/**
 * A column. `value` gives what is sorted, filtered and copied (by default the row's entry `key`), `render` what is shown (by default the
 * value as text). `align: 'end'` is for numbers. `sort: false`: it does not sort. `title` explains the head.
 * @typedef {{key: string, label: any, value?: (row: any) => any, render?: (row: any) => any, align?: 'end', sort?: false, title?: string, wide?: boolean}} Column
 */

/** @param {Column} column @param {any} row */
const valueOf = (column, row) => (column.value ? column.value(row) : row[column.key]);

/** @param {any} a @param {any} b nulls come last, zxids and ids by their number */
function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (isHex(a) && isHex(b)) return BigInt(a) < BigInt(b) ? -1 : 1;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/** @param {any} text */
const isHex = (text) => typeof text === 'string' && /^0x[0-9a-f]+$/i.test(text);

/**
 * The rows in the order of a column. While they are held (the pointer or the focus is on them) known rows keep their places.
 * @param {any[]} rows
 * @param {Column | undefined} column
 * @param {boolean} isDown
 * @param {(row: any) => string | number} rowKey
 * @param {boolean} isHeld
 */
function useOrder(rows, column, isDown, rowKey, isHeld) {
  const before = useRef({ by: '', places: /** @type {Map<string | number, number>} */ (new Map()) });
  const by = `${column?.key} ${isDown}`;
  const ordered = useMemo(() => {
    if (!column) return rows;
    const sorted = rows.map((row) => ({ row, value: valueOf(column, row) })).sort((a, b) => (isDown ? compare(b.value, a.value) : compare(a.value, b.value)));
    const all = sorted.map(({ row }) => row);
    const { places } = before.current;
    if (!isHeld || before.current.by !== by) return all;
    const place = (/** @type {any} */ row) => places.get(rowKey(row)) ?? Infinity;
    return all.map((row, at) => ({ row, at })).sort((a, b) => place(a.row) - place(b.row) || a.at - b.at).map(({ row }) => row);
  }, [rows, by, isHeld]);
  before.current = { by, places: new Map(ordered.map((row, at) => [rowKey(row), at])) };
  return ordered;
}

/**
 * @param {{
 *   name: string, columns: Column[], rows: any[], rowKey?: (row: any) => string | number, sort?: string, filter?: boolean, json?: string,
 *   more?: (() => unknown) | null, total?: number | null, truncated?: boolean, onOpen?: (row: any) => void, selected?: string | number | null,
 *   onSort?: (key: string, isDown: boolean) => void, rowClass?: (row: any) => string, empty?: any, caption: string, tools?: any, compact?: boolean,
 * }} props
 * `name`: short; sort and filter are in the URL as `NAME.sort` and `NAME.filter`. `sort`: `key` or `-key`. `json`: the path of the API, for
 * "as JSON". `more`: loads the next page. `onSort`: the server sorts. `onOpen`: Enter, or a click on a row. `compact`: no tools above.
 */
export function Table(props) {
  const { name, columns, rows, rowKey = (row) => row.id ?? row.path ?? row.name, onOpen, selected, more } = props;
  const [sort, setSort] = useQuery(`${name}.sort`, props.sort ?? '');
  const [filter, setFilter] = useQuery(`${name}.filter`, '');
  const [isHeld, hold] = useState(false);
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const id = useId();
  const isDown = sort.startsWith('-');
  const column = columns.find(({ key }) => key === sort.replace(/^-/, ''));
  const wanted = filter.toLowerCase();
  const matching = useMemo(
    () => (wanted ? rows.filter((row) => columns.some((one) => escaped(valueOf(one, row)).toLowerCase().includes(wanted))) : rows),
    [rows, wanted],
  );
  const shown = useOrder(matching, props.onSort ? undefined : column, isDown, rowKey, isHeld);
  const setOrder = (/** @type {string} */ key) => {
    const next = sort === key ? `-${key}` : key;
    setSort(next);
    props.onSort?.(key, next.startsWith('-'));
  };
  useRowKeys(body, props.caption, onOpen && ((at) => onOpen(shown[at])));
  const tsv = () => [columns.map(({ key }) => key), ...shown.map((row) => columns.map((one) => escaped(valueOf(one, row))))].map((cells) => cells.join('\t')).join('\n');
  return html`<div class="table">
    ${!props.compact && html`<div class="toolbar">
      ${props.filter !== false && html`<label class="search"><span class="unseen">Filter ${props.caption}</span>
        <input type="search" data-search placeholder="Filter" value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} /></label>`}
      <small role="status">${rowsInWords(props, shown.length)}</small>
      ${props.tools}
      <span class="end"><${Copy} text=${tsv} what="the rows as TSV" word="Copy" />${props.json && html`<a href=${url(props.json)} target="_blank" rel="noopener">as JSON</a>`}</span>
    </div>`}
    <div class="scroll" tabindex="0" role="group" aria-labelledby=${id}>
      <table onMouseEnter=${() => hold(true)} onMouseLeave=${() => hold(false)}>
        <caption class="unseen" id=${id}>${props.caption}</caption>
        <thead><tr>${columns.map((one) => html`<${Head} key=${one.key} column=${one} sort=${sort} onSort=${setOrder} />`)}</tr></thead>
        <tbody ref=${body}>${shown.map((row) => html`<${Row} key=${rowKey(row)} row=${row} columns=${columns} onOpen=${onOpen}
          isSelected=${selected !== undefined && selected !== null && rowKey(row) === selected} class=${props.rowClass?.(row)} />`)}</tbody>
      </table>
    </div>
    ${shown.length === 0 && (wanted ? html`<${Empty} title="No row matches the filter."><button type="button" onClick=${() => setFilter('')}>Show all rows</button></>` : props.empty)}
    ${more && html`<button type="button" class="more" onClick=${more}>Load more</button>`}
    ${props.truncated && !more && html`<p><small>There are more rows than can be shown. Filter first.</small></p>`}
  </div>`;
}

/** @param {any} props @param {number} shown */
function rowsInWords({ rows, total, more }, shown) {
  const all = total ?? rows.length;
  const known = total === null || total === undefined ? (more ? `${count(rows.length)} loaded, there are more` : `${count(all)} ${all === 1 ? 'row' : 'rows'}`) : `${count(rows.length)} of ${count(total)}`;
  return shown === rows.length ? known : `${count(shown)} match, ${known}`;
}

/** @param {{column: Column, sort: string, onSort: (key: string) => void}} props */
function Head({ column, sort, onSort }) {
  const direction = sort === column.key ? 'ascending' : sort === `-${column.key}` ? 'descending' : undefined;
  const label = html`${column.label}${direction && html`<span aria-hidden="true">${direction === 'ascending' ? ' ↑' : ' ↓'}</span>`}`;
  return html`<th scope="col" class=${column.align ?? ''} aria-sort=${direction} title=${column.title}>
    ${column.sort === false ? label : html`<button type="button" class="head" onClick=${() => onSort(column.key)}>${label}</button>`}</th>`;
}

/** @param {{row: any, columns: Column[], onOpen?: (row: any) => void, isSelected: boolean, class?: string}} props */
function Row({ row, columns, onOpen, isSelected, class: own = '' }) {
  const open = (/** @type {any} */ event) => {
    if (!event.target.closest('button, a, input') && !String(getSelection())) onOpen?.(row);
  };
  return html`<tr class="${own} ${onOpen ? 'opens' : ''}" tabindex=${onOpen ? 0 : undefined} aria-selected=${onOpen ? isSelected : undefined} onClick=${open}>
    ${columns.map((one) => html`<td key=${one.key} class="${one.align ?? ''} ${one.wide ? 'wide' : ''}">${one.render ? one.render(row) : shownValue(valueOf(one, row))}</td>`)}</tr>`;
}

/** @param {any} value */
const shownValue = (value) => (value === null || value === undefined ? '–' : typeof value === 'number' ? count(value) : html`<${Text} of=${value} />`);

/**
 * `j` and `k` move the focus from row to row, Enter opens.
 * @param {{current: HTMLElement | null}} body
 * @param {string} caption
 * @param {((at: number) => void) | undefined} open
 */
function useRowKeys(body, caption, open) {
  const rows = () => [...(body.current?.children ?? [])].map((row) => /** @type {HTMLElement} */ (row));
  const at = () => rows().findIndex((row) => row.contains(document.activeElement));
  const move = (/** @type {number} */ step) => {
    const all = rows();
    // Rows in a closed part of the page cannot have the focus.
    if (!all[0]?.offsetParent) return false;
    const row = all[Math.min(Math.max(at() + step, 0), all.length - 1)];
    if (row.tabIndex < 0) row.tabIndex = -1;
    row.focus();
    row.scrollIntoView({ block: 'nearest' });
  };
  useKeys(`Rows of ${caption}`, {
    j: () => move(1),
    k: () => move(-1),
    ...(open && { Enter: () => (at() < 0 ? false : open(at())) }),
  });
}
