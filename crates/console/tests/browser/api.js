// The API of one server, asked without a browser.

import { createHash } from 'node:crypto';

/** The header of somebody with a password. @param {{user: string, password: string}} who */
export const digest = ({ user, password }) => `digest ${user}:${password}`;

/** The id that ACLs name. @param {{user: string, password: string}} who */
export const digestId = ({ user, password }) => `${user}:${createHash('sha1').update(`${user}:${password}`).digest('base64')}`;

export class Api {
  /** @param {string} base @param {string} [authorization] */
  constructor(base, authorization) {
    Object.assign(this, { base, authorization });
  }

  /** @param {{user: string, password: string}} who */
  as(who) {
    return new Api(this.base, digest(who));
  }

  /** @param {string} path @param {Record<string, string>} [query] */
  get(path, query) {
    return this.#ask(path + (query ? `?${new URLSearchParams(query)}` : ''), {});
  }

  /** @param {string} path @param {unknown} body */
  post(path, body) {
    return this.#ask(path, { method: 'POST', body: JSON.stringify(body) });
  }

  /** The status and the text, whatever they are. @param {string} path @param {RequestInit} [init] */
  async raw(path, init = {}) {
    const headers = { 'Content-Type': 'application/json', ...(this.authorization && { Authorization: this.authorization }), ...init.headers };
    const response = await fetch(`${this.base}/api/v1${path}`, { signal: AbortSignal.timeout(20_000), ...init, headers });
    return { status: response.status, text: await response.text() };
  }

  async #ask(path, init) {
    const { status, text } = await this.raw(path, init);
    if (status !== 200) throw Object.assign(new Error(`${init.method ?? 'GET'} ${path}: ${status} ${text.slice(0, 300)}`), { status });
    return JSON.parse(text);
  }

  /** The text of a znode's data, or null. @param {string} path */
  async text(path) {
    const { status, text } = await this.raw(`/tree/data?${new URLSearchParams({ path })}`);
    return status === 200 ? Buffer.from(JSON.parse(text).data, 'base64').toString() : null;
  }

  /** @param {string} path @param {string} text @param {Record<string, unknown>} [more] */
  create(path, text, more) {
    return this.post('/tree/create', { path, data: Buffer.from(text).toString('base64'), mode: 'persistent', ttl_ms: null, parents: true, ...more });
  }

  /** @param {string} path @param {string} text @param {number} [version] */
  set(path, text, version = -1) {
    return this.post('/tree/set', { path, data: Buffer.from(text).toString('base64'), version });
  }

  /** Whether a znode exists. @param {string} path */
  async exists(path) {
    const { status, text } = await this.raw(`/tree/node?${new URLSearchParams({ path })}`);
    if (status === 200) return true;
    if (JSON.parse(text).code === 'NONODE') return false;
    throw new Error(`${path}: ${status} ${text}`);
  }
}
