// Disk: whether it will fill up, the snapshots and logs, how long a restart would take.

import { html, loadStyle, useState } from '../lib/html.js';
import { url, useMe } from '../lib/api.js';
import { useGet } from '../lib/live.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { Text, Time, Zxid, bytes, duration } from '../lib/words.js';
import { ActDialog } from './act.js';
import { Name, Share, useIsOperator } from './names.js';

loadStyle('./pages.css', import.meta.url);

/** @typedef {{path: string, free_bytes: number, total_bytes: number}} Place */
/** @typedef {{server: number, data: Place, log: Place, snapshots: any[], logs: any[], last_snapshot: {zxid: string, at_ms: number, took_ms: number, bytes: number} | null,
 *   grows_bytes_per_hour: number | null, full_in_ms: number | null, restart_ms: number | null, purge: {keep: number, removes: string[], bytes: number}, findings: any[]}} ServerDisk */

export default function Disk() {
  const disk = useGet('/disk', { every: 10_000 });
  return html`<h1>Disk</h1><${Loaded} of=${disk} rows=${8}>${(/** @type {any} */ data) => html`<div class="stack"><${Silent} servers=${data.servers} />
    ${data.disks.map((/** @type {ServerDisk} */ one) => html`<${OfServer} key=${one.server} disk=${one} reload=${disk.reload} />`)}
    ${data.disks.length === 0 && html`<${Empty} title="No server answered with its disk."><p>Each server shows its own folder here, through its admin port.</p></>`}</div>`}</>`;
}

/** @param {{disk: ServerDisk, reload: () => void}} props */
function OfServer({ disk, reload }) {
  const { server, last_snapshot: last, findings, data, log } = disk;
  const full = disk.full_in_ms !== null && `in ${duration(disk.full_in_ms)}`;
  return html`<section class="panel" aria-labelledby=${`disk-${server}`}><header><h2 id=${`disk-${server}`}>Server ${server}</h2><${Acts} disk=${disk} reload=${reload} /></header>
    ${findings.length > 0 && html`<div class="notes">${findings.map((one) => html`<${Note} key=${one.sentence} ...${one} />`)}</div>`}
    <div class="disk">
      <dl class="facts">
        <dt>Snapshots in</dt><dd><${Space} of=${data} /></dd>
        ${log.path !== data.path && html`<dt>Logs in</dt><dd><${Space} of=${log} /></dd>`}
        <dt>It grows by</dt><dd>${disk.grows_bytes_per_hour === null ? 'not known yet' : `${bytes(disk.grows_bytes_per_hour)} per hour`}</dd>
        <dt>It is full</dt><dd>${full || 'not in sight'}</dd></dl>
      <dl class="facts">
        <dt>Last <${Term} of="snapshot">snapshot</></dt><dd>${last ? html`<${Time} ms=${last.at_ms} />` : html`<span class="badge warning">none since the start</span>`}</dd>
        ${last && html`<dt>It took</dt><dd>${duration(last.took_ms)}, ${bytes(last.bytes)}</dd><dt>As of</dt><dd><${Zxid} of=${last.zxid} /></dd>`}
        <dt>A restart takes</dt><dd>${disk.restart_ms === null ? 'not known' : `about ${duration(disk.restart_ms)}`}</dd></dl></div>
    <details><summary>${disk.snapshots.length} snapshots and ${disk.logs.length} logs, ${bytes(sum(disk.snapshots) + sum(disk.logs))}</summary>
      <div class="files">
        <div><h3>Snapshots</h3><${Table} name=${`snapshots${server}`} caption=${`snapshots of server ${server}`} rows=${disk.snapshots} columns=${SNAPSHOTS} filter=${false} json="/disk"
          empty=${html`<${Empty} title="No snapshot yet."><p>One is taken after snapCount transactions.</p></>`} /></div>
        <div><h3><${Term} of="transaction log">Transaction logs</></h3><${Table} name=${`logs${server}`} caption=${`logs of server ${server}`} rows=${disk.logs} columns=${LOGS} filter=${false} json="/disk"
          empty=${html`<${Empty} title="No log yet."><p>The first write begins one.</p></>`} /></div></div></details>
  </section>`;
}

/** @param {{bytes: number}[]} files */
const sum = (files) => files.reduce((all, file) => all + file.bytes, 0);

/** @param {{of: Place}} props */
function Space({ of }) {
  const used = of.total_bytes - of.free_bytes;
  const part = of.free_bytes / of.total_bytes;
  const words = `${bytes(of.free_bytes)} of ${bytes(of.total_bytes)} free`;
  return html`<code><${Name} of=${of.path} /></code><br /><${Share} part=${used} whole=${of.total_bytes} level=${part < 0.1 ? 'critical' : part < 0.2 ? 'warning' : 'ok'} label=${words}>${words}</>`;
}

/** @type {import('../lib/table.js').Column[]} */
const SNAPSHOTS = [
  { key: 'name', label: 'File', render: (row) => html`<code><${Name} of=${row.name} /></code>` },
  { key: 'zxid', label: 'As of', render: (row) => html`<${Zxid} of=${row.zxid} />` },
  { key: 'bytes', label: 'Size', align: 'end', render: (row) => bytes(row.bytes) },
  { key: 'age', label: 'Age', align: 'end', value: (row) => row.age_ms, render: (row) => duration(row.age_ms) },
];
/** @type {import('../lib/table.js').Column[]} */
const LOGS = [
  { key: 'name', label: 'File', render: (row) => html`<code><${Name} of=${row.name} /></code>` },
  { key: 'from', label: 'From', value: (row) => row.from_zxid, render: (row) => html`<${Zxid} of=${row.from_zxid} />` },
  { key: 'to', label: 'To', value: (row) => row.to_zxid, render: (row) => (row.to_zxid ? html`<${Zxid} of=${row.to_zxid} />` : 'in use') },
  { key: 'bytes', label: 'Size', align: 'end', render: (row) => bytes(row.bytes) },
];

/** The acts, which the server of this page does on its own disk. @param {{disk: ServerDisk, reload: () => void}} props */
function Acts({ disk, reload }) {
  const me = useMe();
  const isOperator = useIsOperator();
  const [open, set] = useState('');
  if (!isOperator || !me) return null;
  if (me.server.id !== disk.server) return html`<span class="end"><small>To act on this disk, open the console of server ${disk.server}.</small></span>`;
  const { removes, bytes: freed, keep } = disk.purge;
  const common = { onDone: reload, onClose: () => set('') };
  return html`<span class="end row"><button type="button" onClick=${() => set('snapshot')}>Snapshot now …</button>
      <button type="button" onClick=${() => set('purge')}>Purge …</button>
      ${me.super && html`<a class="button" href=${url('/disk/snapshot')} download>Download a snapshot</a>`}</span>
    ${open === 'snapshot' && html`<${ActDialog} ...${common} title="Snapshot now" label="Take a snapshot" path="/disk/snapshot" said=${(/** @type {any} */ answer) => answer.sentence ?? 'The snapshot is on disk.'}>
      <p>Server ${disk.server} writes its whole tree into a new file${disk.last_snapshot && html`. The last took ${duration(disk.last_snapshot.took_ms)} and ${bytes(disk.last_snapshot.bytes)}`}. Clients are served meanwhile.</p></>`}
    ${open === 'purge' && (removes.length === 0
      ? html`<${ActDialog} ...${common} title="Purge" label="Purge" path="/disk/purge" nothing><p>There is nothing to remove: no more than ${keep} snapshots are kept, and each log is needed.</p></>`
      : html`<${ActDialog} ...${common} title="Purge" label=${`Remove ${removes.length} files`} isDangerous path="/disk/purge" body=${{ keep, plan: removes }} said=${(/** @type {any} */ answer) => answer.sentence ?? 'The files are removed.'}>
        <p>The last ${keep} snapshots stay, and each log that a restart from them needs. These ${removes.length} files go, which frees ${bytes(freed)}:</p>
        <ul class="paths">${removes.map((name) => html`<li key=${name}><code><${Text} of=${name} /></code></li>`)}</ul>
        <p>The history of znodes in these logs can no longer be shown.</p></>`)}`;
}
