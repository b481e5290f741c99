// Disk: whether it will fill up, the snapshots and logs, how long a restart would take.

import {
  Act, bytes, duration, empty, facts, html, loaded, Name, Note, number, paths, plural, share, table, Term, Text, Time, url, useGet,
  useIsOperator, useMe, useState, Zxid,
} from './parts.js';

export default function Disk() {
  const disk = useGet('/disk', { every: 10_000 });
  return html`<h1>Disk</h1>${loaded(disk, ({ disks }) => disks.length > 0
    ? disks.map((/** @type {ServerDisk} */ one) => html`<section class="panel" key=${one.server}><header><h2>Server ${one.server}</h2><${Acts} disk=${one} done=${disk.reload} /></header>${server(one)}</section>`)
    : empty('No server answered with its disk.', 'Each server tells its own through its admin port.'))}`;
}

/** @param {ServerDisk} disk */
function server({ server, last_snapshot: last, data, log, snapshots, logs, ...disk }) {
  const all = [...snapshots, ...logs].reduce((sum, file) => sum + file.bytes, 0);
  return html`${disk.findings.map((one) => html`<${Note} key=${one.sentence} ...${one} />`)}
    <div class="halves">
      ${facts([['Snapshots in', space(data)], log.path !== data.path && ['Logs in', space(log)],
        ['They grow by', disk.grows_bytes_per_hour === null ? 'not known yet' : `${bytes(disk.grows_bytes_per_hour)} per hour`], ['Full', disk.full_in_ms === null ? 'not in sight' : `in ${duration(disk.full_in_ms)}`]])}
      ${facts([[html`Last <${Term} of="snapshot">snapshot</>`, last ? html`<${Time} ms=${last.at_ms} />` : 'none since the start'], last && ['Size', bytes(last.bytes)], last && last.took_ms !== null && ['It took', duration(last.took_ms)],
        last && ['As of', html`<${Zxid} of=${last.zxid} />`], ['A restart takes', disk.restart_ms === null ? 'not known' : `about ${duration(disk.restart_ms)}`]])}</div>
    <details><summary>${plural(snapshots.length, 'snapshot')} and ${plural(logs.length, 'log')}, ${bytes(all)}</summary><div class="halves">
      <section><h3>Snapshots</h3>${files(`snapshots${server}`, snapshots, SNAPSHOTS, 'No snapshot yet.', 'One is taken after snapCount transactions.')}</section>
      <section><h3><${Term} of="transaction log">Transaction logs</></h3>${files(`logs${server}`, logs, LOGS, 'No log yet.', 'The first write begins one.')}</section></div></details>`;
}

/** @param {string} name @param {any[]} rows @param {Column[]} columns @param {string} none @param {string} fill */
const files = (name, rows, columns, none, fill) => table(name, columns, { name, rows, key: (row) => row.name, filter: false, json: '/disk', empty: empty(none, fill) });

/** @param {Place} of */
function space({ path, free_bytes, total_bytes }) {
  const free = free_bytes / total_bytes;
  return html`<code><${Name} of=${path} /></code>${share(1 - free, `${bytes(free_bytes)} of ${bytes(total_bytes)} free`, free < 0.05 ? 'critical' : free < 0.1 ? 'warning' : '')}`;
}

/** @param {string} key @param {string} label @returns {Column} */
const zxid = (key, label) => ({ key, label, render: (row) => (row[key] ? html`<${Zxid} of=${row[key]} />` : 'in use') });
/** @type {Column} */
const FILE = { key: 'name', label: 'File', render: (row) => html`<code><${Name} of=${row.name} /></code>` };
const SIZE = number('bytes', 'Size', bytes);
const SNAPSHOTS = [FILE, zxid('zxid', 'As of'), SIZE, number('age_ms', 'Age', duration)];
const LOGS = [FILE, zxid('from_zxid', 'From'), zxid('to_zxid', 'To'), SIZE];

/** A server acts on its own disk only. @param {{disk: ServerDisk, done: () => void}} props */
function Acts({ disk, done }) {
  const me = useMe();
  const isOperator = useIsOperator();
  const [open, set] = useState('');
  if (!isOperator || !me) return null;
  if (!me.server.standalone && me.server.id !== disk.server) return html`<small class="end">To act on this disk, open the console of server ${disk.server}.</small>`;
  const { removes, bytes: freed, keep } = disk.purge;
  const close = () => set('');
  return html`<span class="end row"><button type="button" onClick=${() => set('snapshot')}>Snapshot now …</button>
      ${removes.length > 0 ? html`<button type="button" onClick=${() => set('purge')}>Purge …</button>` : html`<small>Nothing to purge</small>`}
      ${me.super && html`<a class="button" href=${url('/disk/snapshot')} download>Download snapshot</a>`}</span>
    ${open === 'snapshot' && html`<${Act} title="Snapshot now" label="Take a snapshot" path="/disk/snapshot" said="The snapshot is on disk." later="The server still writes the snapshot. It appears in the list when it is on disk." done=${done} close=${close}>
      <p>Server ${disk.server} writes its whole tree into a new file and serves its clients meanwhile.${disk.last_snapshot && disk.last_snapshot.took_ms !== null && ` The last took ${duration(disk.last_snapshot.took_ms)} and ${bytes(disk.last_snapshot.bytes)}.`}</p></>`}
    ${open === 'purge' && html`<${Act} title="Purge" label=${`Remove ${plural(removes.length, 'file')}`} level="danger" path="/disk/purge" body=${{ keep, plan: removes }} said="The files are removed." later="The server still removes the files. They leave the list one by one." done=${done} close=${close}>
      <p>The last ${keep} snapshots stay, and the logs that a restart from them needs. These files go, which frees ${bytes(freed)}:</p>
      ${paths(removes, (name) => html`<code><${Text} of=${name} /></code>`)}<p>The changes in these logs can no longer be shown as history.</p></>`}`;
}
