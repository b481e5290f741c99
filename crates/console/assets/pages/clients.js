// Clients: programs that would suffer from a change, as far as their requests show.

import { html, loadStyle } from '../lib/html.js';
import { useGet } from '../lib/live.js';
import { link } from '../lib/route.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Text, bytes, count, duration, plural } from '../lib/words.js';
import { Address, Name, Share } from './names.js';

loadStyle('./pages.css', import.meta.url);

const ADDRESS = { key: 'address', label: 'Client', render: (/** @type {any} */ row) => html`<${Address} of=${row.address} />` };
/** @param {string} key @param {string} label @param {(value: any) => any} [render] */
const number = (key, label, render = count) => ({ key, label, align: /** @type {const} */ ('end'), render: (/** @type {any} */ row) => render(row[key]) });

/** Title, entry of the answer, columns, the sentence if there is none, and what would fill it.
 *  @type {[string, string, import('../lib/table.js').Column[], string, string][]} */
const LISTS = [
  ['Refused requests', 'refused', [{ key: 'code', label: 'Operation' }, ADDRESS, number('count', 'Times')], 'No request was refused.', 'Operations that this server does not know or does not allow are counted here.'],
  ['Packets near the limit', 'near_limit', [ADDRESS, number('bytes', 'Largest', bytes)], 'No packet came near to jute.maxbuffer.', 'Clients whose packets will soon be too large are named here.'],
  ['Timeouts cut by the server', 'short_timeouts', [ADDRESS, number('asked_ms', 'Asked for', duration), number('got_ms', 'Got', duration)], 'Each client has the timeout that it asked for.', 'Others lie beyond minSessionTimeout or maxSessionTimeout.'],
  ['Identities by digest only', 'digest_only', [{ key: 'id', label: 'Identity', render: (row) => html`<${Name} of=${row.id} />` }, ADDRESS], 'No client proves its identity by digest alone.', 'These could have a certificate (x509) instead of a password.'],
];

export default function Clients() {
  const clients = useGet('/clients', { every: 10_000 });
  return html`<h1>Clients</h1><${Loaded} of=${clients} rows=${8}>${(/** @type {any} */ data) => {
    const { plaintext, tls, kinds } = data;
    return html`<div class="stack"><${Silent} servers=${data.servers} />
      <${Note} level="info" sentence="The kinds are guesses: a client does not say what it is, so it is judged by its handshake and its requests." />
      ${kinds.length > 0 ? html`<div class="cards">${kinds.map((/** @type {any} */ kind) => html`<section class="card kind" key=${kind.kind}>
          <header><h2><${Text} of=${kind.kind} /></h2><span class="badge">guess</span><b>${plural(kind.count, 'client')}</b></header><p><${Text} of=${kind.sentence} /></p>
          <p><small>For example ${kind.examples.map((/** @type {string} */ one, /** @type {number} */ at) => html`${at > 0 && ', '}<a key=${one} href=${link('sessions', { address: one })}><${Name} of=${one} /></a>`)}</small></p></section>`)}</div>`
        : html`<section class="panel"><${Empty} title="No client is connected to the servers that answered."><p>Each client that connects is put into a kind by what it sends.</p></></section>`}
      ${plaintext + tls > 0 && html`<section class="panel"><h2>TLS</h2><${Share} part=${tls} whole=${plaintext + tls} label=${`${tls} of ${plaintext + tls} by TLS`}>
        ${count(tls)} by TLS, ${plural(plaintext, 'connection')} in plain text</></section>`}
      <div class="halves">${LISTS.map(([title, key, columns, none, fill]) => html`<section class="panel" key=${key}><h2>${title}</h2>
        <${Table} name=${key} caption=${title} rows=${data[key]} columns=${columns} rowKey=${(/** @type {any} */ row) => `${row.address} ${row.code ?? row.id ?? ''}`} filter=${false} compact=${data[key].length === 0} json="/clients"
          empty=${html`<${Empty} title=${none}><p>${fill}</p></>`} /></section>`)}</div></div>`;
  }}</>`;
}
