// Clients: programs that would suffer from a change, as far as their requests show.

import { bytes, COLUMN, count, duration, empty, html, loaded, Name, Note, number, plural, share, table, Text, useGet } from './parts.js';
import { link } from '../lib/route.js';

/** Title, entry of the answer, columns, the sentence if there is none, and what would fill it.
 *  @type {[string, string, Column[], string, string][]} */
const LISTS = [
  ['Refused requests', 'refused', [{ key: 'code', label: 'Operation' }, COLUMN.address, number('count', 'Times')], 'No request was refused.', 'Operations that a server does not know or allow are counted here.'],
  ['Packets near the limit', 'near_limit', [COLUMN.address, number('bytes', 'Largest', bytes)], 'No packet came near to jute.maxbuffer.', 'Clients whose packets will soon be too large are named here.'],
  ['Timeouts cut by the server', 'short_timeouts', [COLUMN.address, number('asked_ms', 'Asked for', duration), number('got_ms', 'Got', duration)], 'Each client has the timeout that it asked for.', 'Longer ones than maxSessionTimeout would be cut.'],
  ['Identities by digest only', 'digest_only', [{ key: 'id', label: 'Identity', render: (row) => html`<${Name} of=${row.id} />` }, COLUMN.address], 'No client has an identity by digest alone.', 'Those named here could have a certificate (x509) instead of a password.'],
];

/** @param {{kind: string, sentence: string, count: number, examples: string[]}} kind */
const card = (kind) => html`<section class="card stack" key=${kind.kind}><header class="row"><h2><${Text} of=${kind.kind.replaceAll('_', ' ')} /></h2><b>${plural(kind.count, 'client')}</b></header>
  <p><${Text} of=${kind.sentence} /></p><p><small>For example ${kind.examples.map((one, at) => html`${at > 0 && ', '}<a key=${one} href=${link('sessions', { address: one })}><${Name} of=${one} /></a>`)}</small></p></section>`;

export default function Clients() {
  const clients = useGet('/clients', { every: 10_000 });
  return html`<h1>Clients</h1>${loaded(clients, ({ plaintext, tls, kinds, ...lists }) => html`
    <${Note} level="info" sentence="The kinds are guesses: a client does not say what it is, so it is judged by its handshake and its requests." />
    ${kinds.length > 0 ? html`<div class="cards">${kinds.map(card)}</div>` : empty('No client is connected to the servers that answered.', 'One that connects is put into a kind by what it sends.')}
    ${plaintext + tls > 0 && html`<section class="panel"><h2>TLS</h2>${share(tls / (plaintext + tls), `${count(tls)} by TLS, ${plural(plaintext, 'connection')} in plain text`)}</section>`}
    <div class="halves">${LISTS.map(([title, key, columns, none, fill]) => html`<section class="panel" key=${key}><h2>${title}</h2>
      ${table(title.toLowerCase(), columns, { name: key, rows: lists[key], key: (row) => `${row.address} ${row.code ?? row.id}`, filter: false, json: '/clients', empty: empty(none, fill) })}</section>`)}</div>`)}`;
}
