// Ten consoles: each holds its stream of events, and asks what its page asks, as often as the page does. Beside them somebody searches.

import { Api } from '../../crates/console/tests/browser/api.js';
import { ADMIN } from './machine.js';

/** The topics and the questions of the pages, each with its time in ms. */
const PAGES = [
  ['ensemble', []], ['ensemble,elections', []], ['ensemble', [['/sessions', 5000]]], ['ensemble', [['/recipes', 5000]]],
  ['ensemble', [['/watches', 10_000]]], ['ensemble', [['/slow', 5000], ['/hot', 5000], ['/pauses', 10_000]]], ['ensemble', [['/metrics', 10_000]]],
  ['ensemble', [['/disk', 10_000]]], ['ensemble', [['/clients', 10_000]]], ['ensemble', [['/tree/node?path=/wide', 10_000], ['/tree/children?path=/wide', 10_000]]],
];

const api = new Api(process.argv[2]).as(ADMIN);

/** @param {string} topics */
async function stream(topics) {
  const response = await fetch(`${api.base}/api/v1/events?topics=${topics}`, { headers: { Authorization: api.authorization } });
  if (response.status !== 200) throw new Error(`/events: ${response.status} ${await response.text()}`);
  for await (const _ of response.body);
}

/** @param {string} path @param {number} every */
async function ask(path, every) {
  for (;;) {
    await api.get(path);
    await new Promise((done) => setTimeout(done, every));
  }
}

async function search() {
  for (let cursor = null; ; ) {
    const query = new URLSearchParams({ value: 'nobody-wrote-this', ...(cursor && { cursor }) });
    const { status, text } = await api.raw(`/tree/search?${query}`);
    if (status === 200) cursor = JSON.parse(text).next;
    else if (status !== 503) throw new Error(`/tree/search: ${status} ${text}`);
  }
}

for (const [topics, questions] of PAGES) {
  void stream(topics);
  for (const [path, every] of questions) void ask(path, every);
}
void search();
setTimeout(() => console.log('open'), 1000);
