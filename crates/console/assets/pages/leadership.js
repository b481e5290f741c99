// Leadership: which session leads or holds a lock, which waits, and how a group can be handed over.

import { html, loadStyle, useState } from '../lib/html.js';
import { search } from '../lib/api.js';
import { useGet, usePages } from '../lib/live.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { Ago, Id, Text, Time, count, duration, plural } from '../lib/words.js';
import { ActDialog } from './act.js';
import { Address, Asked, Name, Path, Paths, Session, useIsOperator } from './names.js';

loadStyle('./pages.css', import.meta.url);

const KINDS = ['latch', 'selector', 'mutex', 'read_write', 'semaphore', 'election', 'write_lock'];
/** Names by which groups are recognised. */
const PATTERNS = [
  ['Curator LeaderLatch', '_c_UUID-latch-N'], ['Curator LeaderSelector, mutex', '_c_UUID-lock-N'], ['Curator read-write lock', '_c_UUID-__READ__N, _c_UUID-__WRIT__N'],
  ['Curator semaphore', 'leases/_c_UUID-lease-N'], ['kazoo Lock, Election', 'UUID__lock__N'], ['kazoo Semaphore', 'UUID'], ['ZooKeeper WriteLock', 'x-SESSION-N'],
];

/** @param {import('../lib/route.js').PageProps} props */
export default function Leadership({ query, go }) {
  return html`<h1>Leadership</h1>${query.path ? html`<${Group} key=${query.path} path=${query.path} go=${go} />` : html`<${Groups} query=${query} go=${go} />`}`;
}

/** Paths that somebody has pinned in this browser. */
function usePins() {
  const [pins, set] = useState(() => {
    try {
      return /** @type {string[]} */ (JSON.parse(localStorage.getItem('ostler.pins') ?? '[]'));
    } catch {
      return [];
    }
  });
  const toggle = (/** @type {string} */ path) => {
    const next = pins.includes(path) ? pins.filter((pin) => pin !== path) : [...pins, path];
    localStorage.setItem('ostler.pins', JSON.stringify(next));
    set(next);
  };
  return /** @type {[string[], (path: string) => void]} */ ([pins, toggle]);
}

/** @type {import('../lib/table.js').Column[]} */
const COLUMNS = [
  { key: 'path', label: 'Group', render: (row) => html`<${Path} of=${row.path} /><br /><small>${kind(row)}</small>` },
  { key: 'holder', label: 'Holder', value: (row) => row.holder && `${row.holder.id} ${row.holder.address} ${row.holder.session}`,
    render: (row) => (row.holder ? html`${row.holder.id && html`<b><${Name} of=${row.holder.id} /></b><br />`}<small><${Name} of=${row.holder.address} /></small>` : 'nobody') },
  { key: 'session', label: 'Session', value: (row) => row.holder?.session, render: (row) => html`<${Session} of=${row.holder?.session} />` },
  { key: 'since', label: 'Since', value: (row) => row.holder?.since_ms, render: (row) => html`<${Ago} ms=${row.holder?.since_ms} />` },
  { key: 'token', label: 'Token', value: (row) => row.holder?.token, title: 'The fencing token: the czxid of the holder’s znode', render: (row) => html`<${Id} of=${row.holder?.token} />` },
  { key: 'waiting', label: 'Wait', align: 'end', title: 'Contenders that wait' },
  { key: 'handovers', label: 'Changes', align: 'end', title: 'Changes of the holder in the last hour', value: (row) => row.handovers_last_hour },
  { key: 'alarms', label: 'Alarms', wide: true, value: (row) => row.alarms.map((/** @type {any} */ one) => one.sentence).join(' '), render: (row) => html`<${Alarms} of=${row.alarms} />` },
];

/** @param {any} group */
const kind = ({ kind, made_by, confidence }) => `${kind.replaceAll('_', ' ')} of ${made_by}, ${confidence} confidence`;

/** @param {{of: {kind: string, sentence: string}[]}} props */
const Alarms = ({ of }) => html`${of.map(({ sentence }) => html`<div key=${sentence}><span class="badge warning">alarm</span> <${Text} of=${sentence} /></div>`)}`;

/** @param {import('../lib/route.js').PageProps} props */
function Groups({ query, go }) {
  const asked = `/recipes${search({ under: query.under, kind: query.kind, alarm: query.alarm })}`;
  const groups = usePages(asked, { every: 5000, keep: true });
  const [pins] = usePins();
  const set = (/** @type {string} */ key) => (/** @type {string} */ value) => go({ [key]: value });
  const tools = html`<${Asked} label="Below" value=${query.under ?? ''} placeholder="/locks" onSet=${set('under')} />
    <${Asked} label="Kind" value=${query.kind ?? ''} list=${KINDS} onSet=${set('kind')} />
    <label><input type="checkbox" checked=${!!query.alarm} onChange=${() => go({ alarm: query.alarm ? null : 'true' })} /> alarms only</label>
    <${Asked} label="Look at" value="" placeholder="the path of a group" onSet=${set('path')} />`;
  const isFiltered = query.under || query.kind || query.alarm;
  const empty = html`<${Empty} title=${isFiltered ? 'No recognised group fits.' : 'No group of leaders or locks is recognised.'}>
    <p>Groups are recognised by the ephemeral znodes that programs create now. These names are known, and those of Ostler’s own recipes:</p>
    <ul>${PATTERNS.map(([made, name]) => html`<li key=${made}>${made}: <code>${name}</code></li>`)}</ul>
    <p>A group with other names can be looked at by its path, and pinned: write the path into “Look at”.</p></>`;
  return html`${pins.length > 0 && html`<nav class="row pins" aria-label="Pinned groups"><small>Pinned:</small>${pins.map((path) => html`<button type="button" key=${path} onClick=${() => go({ path })}><${Name} of=${path} /></button>`)}</nav>`}
    <${Loaded} of=${groups} rows=${8}>${(/** @type {any} */ data) => html`<${Silent} servers=${data.servers} />
      <${Table} name="groups" caption="groups of leaders and locks" rows=${data.items} columns=${COLUMNS} json=${asked} more=${groups.more} truncated=${data.truncated} tools=${tools} empty=${empty}
        onOpen=${(/** @type {any} */ { path }) => go({ path })} />`}</>`;
}

/** @param {{path: string, go: import('../lib/route.js').Go}} props */
function Group({ path, go }) {
  const group = useGet(`/recipes/group${search({ path })}`, { every: 5000 });
  const [pins, toggle] = usePins();
  return html`<p class="row"><button type="button" onClick=${() => go({ path: null })}>← All groups</button>
      <button type="button" aria-pressed=${pins.includes(path)} onClick=${() => toggle(path)}>${pins.includes(path) ? 'Unpin' : 'Pin'}</button></p>
    <h2><${Path} of=${path} /></h2>
    <${Loaded} of=${group}>${(/** @type {any} */ data) => html`
      ${data.alarms.map((/** @type {any} */ one) => html`<${Note} key=${one.sentence} level="warning" sentence=${one.sentence} />`)}
      <section class="panel"><h3>Holder</h3>${data.holder ? html`<${Holder} of=${data.holder} />` : html`<p>Nobody holds it.</p>`}
        <dl class="facts"><dt>Changes of the holder</dt><dd>${count(data.handovers_last_hour)} in the last hour</dd>
          <dt>Recognised as</dt><dd>${kind(data)}<br /><small><${Text} of=${data.rule} /></small></dd></dl></section>
      <section class="panel"><h3>Queue</h3><${Table} name="queue" caption="queue" rows=${data.queue} columns=${QUEUE} filter=${false} json=${`/recipes/group${search({ path })}`}
        empty=${html`<${Empty} title="Nobody waits, and nobody holds it." />`} /></section>
      <${HandOver} group=${data} reload=${group.reload} />`}</>`;
}

/** @param {{of: any}} props */
const Holder = ({ of }) => html`<dl class="facts"><dt>Id</dt><dd><${Name} of=${of.id} /></dd><dt>Session</dt><dd><${Session} of=${of.session} /></dd>
  <dt>Client</dt><dd><${Address} of=${of.address} /></dd><dt>Since</dt><dd><${Time} ms=${of.since_ms} /></dd>
  <dt><${Term} of="fencing token">Token</></dt><dd><${Id} of=${of.token} /></dd></dl>`;

/** @type {import('../lib/table.js').Column[]} */
const QUEUE = [
  { key: 'place', label: html`<${Term} of="place in the queue">Place</>`, align: 'end', sort: false },
  { key: 'path', label: 'Znode', render: (row) => html`<${Path} of=${row.path} />` },
  { key: 'id', label: 'Id', render: (row) => html`<${Name} of=${row.id} />` },
  { key: 'session', label: 'Session', render: (row) => (row.session ? html`<${Session} of=${row.session} />` : html`<span class="badge warning">no live session</span>`) },
  { key: 'address', label: 'Client', render: (row) => html`<${Address} of=${row.address} />` },
  { key: 'since', label: 'In the queue since', value: (row) => row.since_ms, render: (row) => html`<${Ago} ms=${row.since_ms} />` },
  { key: 'silent', label: 'Silent for', align: 'end', value: (row) => row.silent_for_ms, render: (row) => duration(row.silent_for_ms) },
];

/** The three ways of a hand-over, with what each can do and what it cannot. @type {Record<string, {label: string, sentence: string, is_dangerous?: boolean}>} */
const WAYS = {
  fence: { label: 'Hand over', sentence: 'The holder’s znode is deleted in a multi that checks that it is still the holder’s. The holder watches its own znode and stops; until it knows, its fencing token is refused where it is checked.' },
  revoke: { label: 'Ask to let go', sentence: 'The revocation value is written into the holder’s znode. The holder decides: a program that does not listen for it keeps the lock.' },
  expire: { label: 'Expire the session', is_dangerous: true, sentence: 'The only safe way here is to end the holder’s whole session. All that it owns is deleted, not only its place here. The holder’s znode alone is never deleted: its program may not notice, and two would lead.' },
};

/** @param {{group: any, reload: () => void}} props */
function HandOver({ group, reload }) {
  const isOperator = useIsOperator();
  const [isOpen, open] = useState(false);
  const { way, sentence, owns } = group.hand_over;
  const act = WAYS[way];
  return html`<section class="panel"><h3>Hand over</h3><p><${Text} of=${sentence} /></p>
    ${act && isOperator && group.holder && html`<button type="button" class=${act.is_dangerous ? 'danger' : ''} onClick=${() => open(true)}>${act.label} …</button>`}
    ${isOpen && act && html`<${ActDialog} title=${act.label} label=${act.label} isDangerous=${act.is_dangerous} path="/recipes/hand-over"
      body=${{ path: group.path, holder: group.holder?.path, way }} onDone=${reload} onClose=${() => open(false)}>
      <p>${act.sentence}</p>
      <${Holder} of=${group.holder} />
      ${way === 'expire' && html`<p>The session owns ${plural(owns.length, 'ephemeral znode')}; all of them go:</p><${Paths} of=${owns} />`}</>`}</section>`;
}
