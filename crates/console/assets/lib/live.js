// Data that stay fresh: by server-sent events, and by asking again.

import { useEffect, useMemo, useRef, useState } from './html.js';
import { ApiError, get, url } from './api.js';

const BEAT_MAX = 7000;
const POLL = 5000;
const REDRAW = 500;

/** @typedef {{state: 'loading' | 'ok' | 'error' | 'stale', data: any, error: ApiError | null, at: number | null, reload: () => void}} Answer
 *  `stale`: there are data, and the last question failed or waits. `at`: when the data came, in ms since 1970. */
/** @typedef {{data: any, error: ApiError | null, at: number | null, fallback: string, quiet: boolean, listeners: Set<() => void>}} Topic */

/** `refusal`: why the server sends no events.
 *  @type {{state: 'connecting' | 'live' | 'stale' | 'lost', polls: boolean, paused: boolean, zxid: string | null, clock: number, refusal: string | null}} */
const connection = { state: 'connecting', polls: false, paused: false, zxid: null, clock: 0, refusal: null };
/** @type {Map<string, Topic>} */
const topics = new Map();
/** @type {Set<() => void>} */
const watchers = new Set();
/** @type {EventSource | null} */
let source = null;
let heard = 0;
let opened = 0;
let polled = 0;
let ticker = 0;
/** @type {Set<() => void>} */
const due = new Set();
let redrawn = 0;
let timer = 0;

/** The server's clock now, in ms since 1970. */
export const serverNow = () => Date.now() + connection.clock;

/** Redraws at most twice a second, all parts of the page at once. @param {Iterable<() => void>} listeners */
function redraw(listeners) {
  for (const listener of listeners) due.add(listener);
  if (timer || connection.paused) return;
  timer = setTimeout(() => {
    timer = 0;
    redrawn = Date.now();
    const all = [...due];
    due.clear();
    all.forEach((listener) => listener());
  }, Math.max(0, redrawn + REDRAW - Date.now()));
}

/** @param {Partial<typeof connection>} change */
function change(change) {
  const isOther = change.state !== undefined && change.state !== connection.state;
  Object.assign(connection, change);
  redraw(watchers);
  if (isOther) topics.forEach((topic) => redraw(topic.listeners));
}

/** @param {string} name @param {any} data */
function deliver(name, data) {
  const topic = topics.get(name);
  if (!topic) return;
  Object.assign(topic, { data, error: null, at: Date.now() });
  redraw(topic.listeners);
}

function open() {
  source?.close();
  opened = Date.now();
  heard ||= opened;
  const names = [...topics.keys()];
  const from = `/events?topics=${names.join(',')}`;
  const own = new EventSource(url(from));
  source = own;
  own.addEventListener('error', () => {
    heard = 0;
    tick();
    if (own === source && own.readyState === EventSource.CLOSED) void readRefusal(from);
  });
  source.addEventListener('beat', (event) => {
    const beat = JSON.parse(event.data);
    hear();
    change({ zxid: beat.zxid, clock: beat.now_ms - Date.now() });
  });
  for (const name of names) {
    source.addEventListener(name, (event) => {
      hear();
      deliver(name, JSON.parse(event.data));
    });
  }
}

function hear() {
  heard = Date.now();
  if (connection.state !== 'live' || connection.polls || connection.refusal) change({ state: 'live', polls: false, refusal: null });
}

/** The browser does not tell a page why a stream was refused, so the page asks once more. @param {string} path */
async function readRefusal(path) {
  const stop = new AbortController();
  try {
    const response = await fetch(url(path), { signal: stop.signal, credentials: 'same-origin' });
    const refusal = response.status === 429 ? (await response.json()).sentence : null;
    if (refusal !== connection.refusal) change({ refusal });
  } catch {
    // The answers to the other questions say why.
  }
  stop.abort();
}

function tick() {
  const now = Date.now();
  const isSilent = now - heard > BEAT_MAX;
  if (isSilent && connection.state === 'live' && !connection.polls) change({ state: 'stale' });
  if (now - opened > POLL && source?.readyState === EventSource.CLOSED) open();
  // A proxy may hold the first events back.
  const isLate = now - opened > 1500 && [...topics.values()].some((topic) => topic.data === undefined);
  if (!(isSilent || isLate) || now - polled < POLL || connection.paused) return;
  polled = now;
  topics.forEach((topic, name) => void poll(name, topic));
}

/** @param {string} name @param {Topic} topic */
async function poll(name, topic) {
  try {
    deliver(name, await get(topic.fallback, { quiet: topic.quiet }));
    change({ state: 'live', polls: true });
  } catch (error) {
    topic.error = /** @type {ApiError} */ (error);
    redraw(topic.listeners);
    change({ state: topic.error.code === 'NETWORK' ? 'lost' : 'live', polls: true });
  }
}

/** Opens the stream anew when the pages on the screen want other topics. */
function reopenSoon() {
  queueMicrotask(() => {
    clearInterval(ticker);
    if (topics.size === 0) {
      source?.close();
      source = null;
      return;
    }
    ticker = setInterval(tick, 1000);
    open();
  });
}

/**
 * A topic of `/events`. Without events for 7 s it asks `fallback` every 5 s.
 * @param {string} name
 * @param {string} [fallback]
 * @param {{quiet?: boolean, off?: boolean}} [how] `quiet`: a 401 does not open the page to sign in; `off`: it does not ask
 * @returns {Answer}
 */
export function useEvents(name, fallback = `/${name}`, { quiet = false, off = false } = {}) {
  const [, set] = useState(0);
  useEffect(() => {
    if (off) return;
    const listener = () => set((n) => n + 1);
    let topic = topics.get(name);
    if (!topic) {
      topic = { data: undefined, error: null, at: null, fallback, quiet, listeners: new Set() };
      topics.set(name, topic);
      reopenSoon();
    }
    topic.listeners.add(listener);
    topic.quiet &&= quiet;
    listener();
    return () => {
      topic.listeners.delete(listener);
      if (topic.listeners.size > 0) return;
      topics.delete(name);
      reopenSoon();
    };
  }, [name, fallback, off]);
  const topic = topics.get(name);
  const reload = () => topic && void poll(name, topic);
  return answer(topic?.data, topic?.error ?? null, topic?.at ?? null, reload, connection.state === 'stale' || connection.state === 'lost');
}

/**
 * @param {any} data
 * @param {ApiError | null} error
 * @param {number | null} at
 * @param {() => void} reload
 * @param {boolean} [isOld]
 * @returns {Answer}
 */
function answer(data, error, at, reload, isOld = false) {
  const old = isOld || error ? 'stale' : 'ok';
  return { state: data === undefined ? (error ? 'error' : 'loading') : old, data, error, at, reload };
}

/** The state of the connection, for the header. */
export function useConnection() {
  const [, set] = useState(0);
  useEffect(() => {
    const listener = () => set((n) => n + 1);
    watchers.add(listener);
    return () => void watchers.delete(listener);
  }, []);
  return connection;
}

/** Stops and goes on with all redraws by themselves. @param {boolean} paused */
export function pause(paused) {
  connection.paused = paused;
  watchers.forEach((watcher) => watcher());
  redraw([]);
}

/** The stream anew, when somebody has signed in or out. */
export function reconnect() {
  topics.forEach((topic, name) => void poll(name, topic));
  reopenSoon();
}

/**
 * The answer of a path of the API; null asks nothing.
 * @param {string | null} path
 * @param {{every?: number, quiet?: boolean, keep?: boolean}} [how] `every`: asks again after so much time, in ms, while the page is
 *   seen; `keep`: while another path is asked for, the old data stay, as `stale`
 * @returns {Answer}
 */
export function useGet(path, { every, quiet, keep } = {}) {
  const [round, again] = useState(0);
  const [box, set] = useState(/** @type {{path: string | null, data: any, error: any, at: number | null}} */ ({ path: null, data: undefined, error: null, at: null }));
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let next = 0;
    const ask = async () => {
      if (document.hidden || connection.paused) return later();
      try {
        const data = await get(path, { signal: stop.signal, quiet });
        set({ path, data, error: null, at: Date.now() });
      } catch (error) {
        if (stop.signal.aborted) return;
        set((before) => (before.path === path ? { ...before, error } : { path, data: undefined, error, at: null }));
      }
      later();
    };
    const later = () => {
      if (!stop.signal.aborted && (every || document.hidden)) next = setTimeout(ask, every ?? 1000);
    };
    void ask();
    return () => {
      clearTimeout(next);
      stop.abort();
    };
  }, [path, every, quiet, round]);
  const reload = () => again((n) => n + 1);
  if (box.path !== path) return answer(keep ? box.data : undefined, null, box.at, reload, true);
  return answer(box.data, box.error, box.at, reload);
}

/**
 * A list that comes in pages: `data` is the first answer with the items of all pages; `more` asks for the next, or is null after the last.
 * @param {string | null} path without cursor and limit
 * @param {{every?: number, quiet?: boolean, keep?: boolean}} [how]
 * @returns {Answer & {more: (() => Promise<void>) | null}}
 */
export function usePages(path, how = {}) {
  const first = useGet(path, how);
  const [tail, setTail] = useState(/** @type {{of: any, items: any[], next: string | null, truncated: boolean}} */ ({ of: null, items: [], next: null, truncated: false }));
  const isBusy = useRef(false);
  const [failure, fail] = useState(/** @type {ApiError | null} */ (null));
  // The pages after the first are kept when the first is asked for again, unless the path is another.
  const isSame = tail.of === path && tail.items.length > 0;
  const data = useMemo(() => {
    if (!first.data || !isSame) return first.data;
    return { ...first.data, items: [...first.data.items, ...tail.items], next: tail.next, truncated: tail.truncated };
  }, [first.data, tail, isSame]);
  const more = async () => {
    if (isBusy.current || path === null) return;
    isBusy.current = true;
    try {
      const page = await get(`${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(data.next)}`);
      setTail((before) => ({ of: path, items: [...(isSame ? before.items : []), ...page.items], next: page.next, truncated: page.truncated }));
      fail(null);
    } catch (error) {
      fail(/** @type {ApiError} */ (error));
    } finally {
      isBusy.current = false;
    }
  };
  const error = first.error ?? failure;
  return { ...first, data, error, state: error && data ? 'stale' : first.state, more: data?.next ? more : null };
}
