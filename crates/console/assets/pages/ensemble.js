// Ensemble: is it healthy, who leads, would it survive one more loss, who lags, and which link is bad?

import { html, useId } from '../lib/html.js';
import { useEvents } from '../lib/live.js';
import { RoleMark, roleInWords } from '../lib/role.js';
import { link } from '../lib/route.js';
import { Empty, Loaded, Note } from '../lib/states.js';
import { Term } from '../lib/terms.js';
import { Ago, bytes, Copy, count, Duration, duration, escaped, plural, Text, useNow, utc, zxid } from '../lib/words.js';
import { useWidth } from '../lib/width.js';
import { url } from '../lib/api.js';

export default function Ensemble() {
  const answer = useEvents('ensemble');
  return html`<div class="page-head"><h1>Ensemble</h1><span class="end"><a href=${url('/ensemble')} target="_blank" rel="noopener">as JSON</a></span></div>
    <${Loaded} of=${answer} rows=${8}>${(/** @type {any} */ data) => html`<div class="stack">
      <${Verdict} data=${data} />
      <ul class="cards servers" aria-label="Servers">${data.servers.map((/** @type {any} */ server) => html`<li key=${server.id} class="card server ${server.zxid === null ? 'absent' : ''}"><${Card} server=${server} data=${data} /></li>`)}</ul>
      <div class="pair"><${Links} data=${data} /><${Leaders} data=${data} /></div>
    </div>`}</>`;
}

const SHAPES = /** @type {Record<string, string>} */ ({
  ok: 'M12 1a11 11 0 100 22 11 11 0 000-22zM6.5 12l4 4 7-8', warning: 'M12 2L23 22H1zM12 9v6M12 18v1', critical: 'M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9zM8 8l8 8M16 8l-8 8',
});

/** @param {{data: any}} props */
function Verdict({ data }) {
  const { verdict, leader, quorum, findings, servers } = data;
  return html`<section class="panel verdict ${verdict.level}" aria-label="Verdict">
    <svg viewBox="0 0 24 24" class="sign" aria-hidden="true"><path d=${SHAPES[verdict.level] ?? SHAPES.warning} /></svg>
    <div><p class="sentence" role="status"><${Text} of=${verdict.sentence} /></p>
      ${verdict.way_out && html`<p><${Text} of=${verdict.way_out} /></p>`}
      <p class="facts-line">
        ${leader ? html`<span><${Term} of="leader">Leader</>: ${leader.id === null ? 'this server' : `server ${leader.id}`}, <${Term} of="epoch">epoch</> ${leader.epoch}, since <${Ago} ms=${leader.since_ms} /></span>` : !isAlone(servers[0]) && html`<span>There is no <${Term} of="leader" />.</span>`}
        ${quorum.voters > 1 && html`<span class="row-tight"><${Seats} quorum=${quorum} /> ${quorum.present} of ${quorum.voters} voters present, <${Term} of="quorum" /> is ${quorum.needed}</span>`}
        ${servers.length > 1 && html`<a href=${link('elections')}>${leader ? 'Why does it lead?' : 'See the election'}</a>`}
      </p></div>
    ${findings.length > 0 && html`<div class="notes">${findings.map((/** @type {any} */ finding, /** @type {number} */ at) => html`<${Note} key=${at} ...${finding} />`)}</div>`}
  </section>`;
}

/** A square for each voter: filled if it is present; a line after those that are needed. @param {{quorum: any}} props */
function Seats({ quorum: { voters, needed, present } }) {
  if (voters < 2 || voters > 15) return null;
  return html`<svg class="seats" viewBox="0 0 ${voters * 14} 14" width=${voters * 14} height="14" aria-hidden="true">
    ${Array.from({ length: voters }, (_, at) => html`<rect key=${at} x=${at * 14 + 2} y="2" width="9" height="10" rx="2" class=${at < present ? 'full' : ''} />`)}
    <line x1=${needed * 14 - .5} x2=${needed * 14 - .5} y1="0" y2="14" /></svg>`;
}

/** Whether it is a server without an ensemble: it has no vote, no epoch and nothing to lag behind. @param {any} [server] */
const isAlone = (server) => server?.role === 'standalone';

/** @param {{server: any, data: any}} props */
function Card({ server, data }) {
  const { id, role, kind, version } = server;
  const isMember = !isAlone(server);
  return html`<header><${RoleMark} role=${role} /><h2>${isMember && id !== null ? `Server ${id}` : 'This server'} <small>${role ? roleInWords(role) : 'does not answer'}${isMember && !server.is_voter ? ', has no vote' : ''}</small></h2>
      ${version && html`<span class="badge ${kind === 'java' ? 'accent' : ''}">${kind === 'java' ? 'Java' : kind === 'ostler' ? 'Ostler' : 'unknown'} <${Text} of=${version} /></span>`}
      <p class="mono"><${Text} of=${!isMember || server.name === `server ${id}` ? server.address ?? server.name : server.name} /></p></header>
    ${server.reason && html`<p class="reason"><${Text} of=${server.reason} /></p>`}
    ${server.zxid !== null && html`<dl class="facts">
      ${isMember && html`<dt><${Term} of="epoch">Epoch</></dt><dd>${server.epoch ?? '–'}</dd>`}
      <dt>Last <${Term} of="zxid" /></dt><dd class="row-tight"><code>${zxid(server.zxid)}</code><${Copy} text=${server.zxid} what="the zxid" /></dd>
      ${isMember && html`<dt><${Term} of="lag">Lag</></dt><dd><${Lag} lag=${server.lag} leads=${role === 'leading'} /></dd>`}
      <dt>Clients</dt><dd>${count(server.clients)}${server.sessions === null ? '' : html` <small>of ${plural(server.sessions, 'session')}</small>`}</dd>
      <dt>Znodes</dt><dd>${count(server.znodes)}</dd>
      <dt>Up for</dt><dd><${Duration} ms=${server.uptime_ms} /></dd>
      <dt>Disk</dt><dd><${Disk} disk=${server.disk} /></dd>
      ${hasDigest(server, data.servers) && html`<dt><${Term} of="digest">Digest</></dt><dd><${Equal} mark=${digestOf(server, data.servers)} /></dd>`}
      ${isMember && html`<dt>Configuration</dt><dd><${Equal} mark=${configOf(server, data.servers)} /></dd>`}
      ${Math.abs(server.clock_off_ms ?? 0) > 500 && html`<dt>Clock</dt><dd class="warn">${duration(Math.abs(server.clock_off_ms))} ${server.clock_off_ms > 0 ? 'ahead' : 'behind'}</dd>`}
    </dl>`}`;
}

/** @param {{lag: any, leads: boolean}} props */
function Lag({ lag, leads }) {
  if (leads) return html`<span class="muted">none, it leads</span>`;
  if (!lag) return '–';
  const ms = lag.ms === null ? '' : `, ${duration(lag.ms)}`;
  return lag.txns === 0 ? html`none<small>${ms}</small>` : html`<span class=${lag.txns > 100 ? 'warn' : ''}>${plural(lag.txns, 'transaction')}${ms}</span>`;
}

/** @param {{disk: any}} props */
function Disk({ disk }) {
  if (!disk) return '–';
  const used = 1 - disk.free_bytes / disk.total_bytes;
  const level = used > .95 ? 'critical' : used > .9 ? 'warning' : '';
  return html`<span class="meter ${level}" aria-hidden="true"><span style=${{ width: `${Math.round(used * 100)}%` }} /></span><span class=${level && 'warn'}>${bytes(disk.free_bytes)} free</span> <small>of ${bytes(disk.total_bytes)}</small>`;
}

/** @param {{mark: {same: boolean | null, text: string}}} props */
const Equal = ({ mark: { same, text } }) => (same === null ? html`<span class="muted">${text}</span>` : html`<span class=${same ? '' : 'warn'}>${same ? '=' : '≠'} ${text}</span>`);

/** Whether there is something to compare: four-letter words tell no digest. @param {any} server @param {any[]} servers */
const hasDigest = ({ kind, state, reason, digest }, servers) => servers.length > 1 && (digest || (kind === 'ostler' && state === 'answered' && !reason));

/** Whether a server's digest is that of most others at the same zxid. @param {any} server @param {any[]} servers */
function digestOf(server, servers) {
  if (!server.digest) return { same: null, text: 'none yet' };
  const others = servers.filter((one) => one.id !== server.id && one.digest?.zxid === server.digest.zxid);
  if (others.length === 0) return { same: null, text: 'no other at the same zxid' };
  const equal = others.filter((one) => one.digest.value === server.digest.value).length;
  return equal * 2 >= others.length ? { same: true, text: 'equal' } : { same: false, text: `differs from ${others.length - equal} of ${others.length}` };
}

/** @param {any} server @param {any[]} servers */
function configOf(server, servers) {
  if (!server.config_version) return { same: null, text: '–' };
  const newest = servers.map((one) => one.config_version).filter(Boolean).reduce((a, b) => (BigInt(a) > BigInt(b) ? a : b));
  const version = `version ${BigInt(server.config_version).toString(16)}`;
  return { same: newest === server.config_version, text: newest === server.config_version ? version : `${version}, the newest is ${BigInt(newest).toString(16)}` };
}

/** The matrix of links. @param {{data: any}} props */
function Links({ data }) {
  const id = useId();
  const ids = data.servers.map((/** @type {any} */ server) => server.id);
  const found = new Map(data.links.map((/** @type {any} */ one) => [`${one.from} ${one.to}`, one]));
  return html`<section class="panel" aria-labelledby=${id}><header><h2 id=${id}>Links</h2>
      <small><b>E</b> <${Term} of="election port" />, <b>Q</b> <${Term} of="quorum port" />: ● up for, or its round trip; ✕ down for</small></header>
    ${data.links.length === 0 ? html`<${Empty} title="There are no links."><p>${ids.length < 2 ? 'A standalone server has no others to connect to.' : 'No server tells of its links.'}</p></>` : html`
    <div class="scroll" tabindex="0" role="group" aria-labelledby=${id}><table class="matrix"><caption class="unseen">Links from each server to each other server</caption>
      <thead><tr><th scope="col">from \\ to</th>${ids.map((/** @type {number} */ to) => html`<th scope="col" key=${to}><${Server} id=${to} /></th>`)}</tr></thead>
      <tbody>${ids.map((/** @type {number} */ from) => html`<tr key=${from}><th scope="row"><${Server} id=${from} /></th>${ids.map((/** @type {number} */ to) => {
        const one = found.get(`${from} ${to}`);
        return html`<td key=${to}>${from === to ? html`<span class="muted">itself</span>` : one ? html`<${Port} name="E" port=${one.election} />${one.quorum && html`<${Port} name="Q" port=${one.quorum} />`}` : html`<span class="muted">not told</span>`}</td>`;
      })}</tr>`)}</tbody></table></div>`}
  </section>`;
}

/** @param {{id: number}} props */
const Server = ({ id }) => html`<span class="word">Server </span>${id}`;

/** @param {{name: string, port: any}} props */
function Port({ name, port }) {
  const now = useNow();
  const age = port.since_ms === null ? '' : duration(now - port.since_ms);
  const trip = port.round_trip_ms === null || port.round_trip_ms === undefined ? '' : duration(port.round_trip_ms);
  const title = `${name === 'E' ? 'Election port' : 'Quorum port'} ${port.up ? 'up' : 'down'}${age && ` for ${age}`}${port.error ? `; last error: ${escaped(port.error)}` : ''}`;
  return html`<span class="port ${port.up ? 'up' : 'down'}" title=${title}><b aria-hidden="true">${name}</b><span class="unseen">${title}</span><span aria-hidden="true">${port.up ? '●' : '✕'} ${(port.up && trip) || age || 'not known'}</span></span>`;
}

const DAY = 86_400_000;

/** The leaders of the last 24 hours as a strip, and as a table. @param {{data: any}} props */
function Leaders({ data }) {
  const id = useId();
  const [box, width] = useWidth(600);
  const to = data.as_of_ms;
  const from = to - DAY;
  const x = (/** @type {number} */ ms) => ((Math.max(ms, from) - from) / DAY) * width;
  const seen = data.epochs.filter((/** @type {any} */ one) => (one.to_ms ?? to) >= from);
  const hours = Array.from({ length: 5 }, (_, at) => from + (at * DAY) / 4);
  return html`<section class="panel" aria-labelledby=${id}><header><h2 id=${id}>Leaders of the last 24 hours</h2><small>gaps: nobody led</small></header>
    ${seen.length === 0 ? html`<${Empty} title="No leader is known."><p>Each server keeps its last 16 elections in memory.</p></>` : html`<div ref=${box}>
      <svg class="strip" width=${width} height="58" viewBox="0 0 ${width} 58" role="img" aria-label=${`${plural(seen.length, 'epoch')} in 24 hours; the table below has them`}>
        <rect class="gap" x="0" y="1" width=${width} height="34" />
        ${seen.map((/** @type {any} */ one) => {
          const left = x(one.from_ms);
          const wide = Math.max(2, x(one.to_ms ?? to) - left);
          return html`<g key=${one.epoch} class="s${Math.max(0, (one.leader ?? 1) - 1) % 6}"><title>${`Server ${one.leader}, epoch ${one.epoch}: ${utc(one.from_ms)} to ${one.to_ms === null ? 'now' : utc(one.to_ms)}`}</title><rect class="lead" x=${left} y="1" width=${wide} height="34" />
            ${wide > 84 ? html`<text x=${left + wide / 2} y="22" text-anchor="middle">server ${one.leader} · epoch ${one.epoch}</text>` : wide > 14 && html`<text x=${left + wide / 2} y="22" text-anchor="middle">${one.leader}</text>`}</g>`;
        })}
        ${hours.map((time, at) => html`<text class="tick" key=${time} x=${x(time)} y="52" text-anchor=${at === 0 ? 'start' : at === 4 ? 'end' : 'middle'}>${at === 4 ? 'now' : `${24 - at * 6} h ago`}</text>`)}
      </svg></div>
      <details open><summary>As a table</summary><div class="scroll" tabindex="0" role="group" aria-label="Leaders as a table"><table><thead><tr><th scope="col">Leader</th><th scope="col">Epoch</th><th scope="col">From (UTC)</th><th scope="col">To</th><th scope="col" class="end">For</th></tr></thead>
        <tbody>${[...seen].reverse().map((one) => html`<tr key=${one.epoch}><td>${one.leader === null ? 'this server' : `Server ${one.leader}`}</td><td>${one.epoch}</td><td>${utc(one.from_ms).slice(5, 19)}</td><td>${one.to_ms === null ? 'now' : utc(one.to_ms).slice(5, 19)}</td><td class="end">${duration((one.to_ms ?? to) - one.from_ms)}</td></tr>`)}</tbody></table></div></details>`}
  </section>`;
}
