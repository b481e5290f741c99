// The whole state of a page is in the hash of the URL: `#/tree?path=/a&view=hex`.

import { useEffect, useState } from './html.js';

/** @typedef {Record<string, string>} Query */
/** @typedef {{page: string, query: Query}} Route */
/** @typedef {{query: Query, go: Go}} PageProps */
/** @typedef {(patch: Record<string, unknown>, how?: {page?: string, replace?: boolean}) => void} Go */

/** @returns {Route} */
export function route() {
  const [page, search] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { page: page || 'ensemble', query: Object.fromEntries(new URLSearchParams(search ?? '')) };
}

/**
 * The address of a page, for `href`.
 * @param {string} page
 * @param {Record<string, unknown>} [query] entries that are null, false or empty are left out
 */
export function link(page, query = {}) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '' && value !== false) params.set(key, String(value));
  }
  // Slashes of paths stay readable.
  const search = params.toString().replaceAll('%2F', '/').replaceAll('%3A', ':');
  return `#/${page}${search && `?${search}`}`;
}

/**
 * Changes the URL. The entries of `patch` are set, those that are null are removed. With another `page` the query starts empty.
 * @type {Go}
 */
export function go(patch, { page, replace = false } = {}) {
  const now = route();
  const target = page ?? now.page;
  const hash = link(target, target === now.page && !page ? { ...now.query, ...patch } : patch);
  if (hash === location.hash) return;
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

/** The route, anew at each change. @returns {Route} */
export function useRoute() {
  const [now, set] = useState(route);
  useEffect(() => {
    const listen = () => set(route());
    addEventListener('hashchange', listen);
    return () => removeEventListener('hashchange', listen);
  }, []);
  return now;
}

/**
 * One value of the query as a state: `const [filter, setFilter] = useQuery('filter', '')`. It replaces the entry of the history.
 * @param {string} key
 * @param {string} standard not written to the URL
 * @returns {[string, (value: string) => void]}
 */
export function useQuery(key, standard) {
  const { query } = useRoute();
  return [query[key] ?? standard, (value) => go({ [key]: value === standard ? null : value }, { replace: true })];
}
