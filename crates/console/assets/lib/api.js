// Questions to the server that the pages come from.

import { useEffect, useState } from './html.js';
import { go, route } from './route.js';

/** An answer that is no success. `code` is `NETWORK` if there was no answer. */
export class ApiError extends Error {
  /** @param {{code: string, sentence: string, path?: string, status: number, [more: string]: any}} parts */
  constructor(parts) {
    super(parts.sentence);
    this.code = parts.code;
    this.sentence = parts.sentence;
    this.path = parts.path;
    this.status = parts.status;
    /** The whole answer, for what only some errors have, like `theirs`. @type {any} */
    this.answer = parts;
  }
}

/** @typedef {{ids: {scheme: string, id: string}[], name: string | null, super: boolean, viewer: boolean, operator: boolean, read_only: boolean,
 *   token: string, needs_sign_in: boolean, server: {id: number | null, standalone: boolean, version: string, command_url: string}}} Me */

/** `refusal`: why the server did not tell who one is. @type {{me: Me | null, refusal: ApiError | null, listeners: Set<() => void>}} */
const known = { me: null, refusal: null, listeners: new Set() };

/** The address of a path of the API, for links: `href=${url('/tree/data?path=/a&download=1')}`. @param {string} path */
export const url = (path) => new URL(`../api/v1${path}`, document.baseURI).pathname + new URL(`http://x${path}`).search;

/** Entries as `?a=1&b=2`; those that are null or empty are left out. @param {Record<string, unknown>} entries */
export function search(entries) {
  const given = Object.entries(entries).filter(([, value]) => value !== null && value !== undefined && value !== '');
  return given.length ? `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}` : '';
}

/**
 * @param {string} path below `/api/v1`
 * @param {{signal?: AbortSignal, quiet?: boolean}} [how] `quiet`: a 401 does not open the page to sign in
 * @returns {Promise<any>}
 */
export const get = (path, how = {}) => ask(path, {}, how);

/**
 * @param {string} path
 * @param {unknown} [body]
 * @param {{signal?: AbortSignal, quiet?: boolean}} [how]
 * @returns {Promise<any>}
 */
export async function post(path, body = {}, how = {}) {
  const send = () => {
    const headers = { 'Content-Type': 'application/json', 'X-Ostler-Token': known.me?.token ?? '' };
    return ask(path, { method: 'POST', headers, body: JSON.stringify(body) }, how);
  };
  if (!known.me) await loadMe();
  try {
    return await send();
  } catch (error) {
    // A server that was restarted has new tokens.
    if (!(error instanceof ApiError) || error.code !== 'OTHER_SITE') throw error;
    await loadMe();
    return send();
  }
}

/**
 * @param {string} path
 * @param {RequestInit} init
 * @param {{signal?: AbortSignal, quiet?: boolean}} how
 */
async function ask(path, init, { signal, quiet }) {
  let response;
  try {
    response = await fetch(url(path), { ...init, signal, credentials: 'same-origin' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError({ code: 'NETWORK', sentence: 'This server does not answer. Is it running?', status: 0 });
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  if (response.ok && init.method) return {};
  if (response.status === 401 && !quiet) askToSignIn();
  const unknown = `The server answered ${response.status} ${response.statusText}, without a reason.`;
  throw new ApiError({ code: 'UNKNOWN', sentence: unknown, ...answer, status: response.status });
}

function askToSignIn() {
  if (route().page !== 'sign-in') go({ back: location.hash }, { page: 'sign-in' });
}

/** Asks for the signed-in identities anew. @returns {Promise<Me>} */
export async function loadMe() {
  try {
    known.me = await get('/me', { quiet: true });
    known.refusal = null;
  } catch (error) {
    known.refusal = error instanceof ApiError && error.status > 0 ? error : null;
    throw error;
  } finally {
    known.listeners.forEach((listener) => listener());
  }
  return /** @type {Me} */ (known.me);
}

/** The signed-in identities and their rights, or null before the first answer. @returns {Me | null} */
export const useMe = () => useKnown(() => known.me);
/** The refusal of the last question who one is, or null. @returns {ApiError | null} */
export const useRefusal = () => useKnown(() => known.refusal);

/** @template T @param {() => T} read @returns {T} */
function useKnown(read) {
  const [value, set] = useState(read);
  useEffect(() => {
    const listen = () => set(read);
    known.listeners.add(listen);
    listen();
    return () => void known.listeners.delete(listen);
  }, []);
  return value;
}
