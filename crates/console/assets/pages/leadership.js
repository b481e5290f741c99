// Leadership: which session leads or holds a lock, which ones wait, and how a group can be handed over.

import {
  Act, address, Ago, asked, COLUMN, count, duration, empty, EndedByLeader, facts, html, Id, loaded, Name, Note, number, path, paths, plural, search,
  session, table, Term, Text, Time, useGet, useIsOperator, usePages, useState, when,
} from './parts.js';

const KINDS = ['latch', 'selector', 'mutex', 'read_write', 'semaphore', 'election', 'write_lock'];
/** Names by which groups are recognised. */
const PATTERNS = 'Curator and Ostler: _c_UUID-latch-N, _c_UUID-lock-N, _c_UUID-__READ__N, _c_UUID-__WRIT__N, leases/_c_UUID-lease-N. kazoo: HEX__lock__N, HEX__rlock__N, HEX. ZooKeeper: x-SESSION-N, n_N.';

/** @param {PageProps} props */
export default function Leadership({ query, go }) {
  return html`<h1>Leadership</h1>${query.path ? html`<${Group} key=${query.path} of=${query.path} go=${go} />` : html`<${Groups} query=${query} go=${go} />`}`;
}

/** Paths that somebody has pinned in this browser. @returns {[string[], (path: string) => void]} */
function usePins() {
  const [pins, set] = useState(() => /** @type {string[]} */ ((localStorage.getItem('pins') ?? '').split('\n').filter(Boolean)));
  return [pins, (path) => {
    const next = pins.includes(path) ? pins.filter((pin) => pin !== path) : [...pins, path];
    localStorage.setItem('pins', next.join('\n'));
    set(next);
  }];
}

/** @type {Column[]} */
const COLUMNS = [
  { ...COLUMN.path, label: 'Group', render: (row) => html`${path(row.path)}<br /><small>${kind(row)}</small>` },
  { key: 'holder', label: 'Holder', value: (row) => row.holder && `${row.holder.id} ${row.holder.address} ${row.holder.session}`,
    render: ({ holder }) => (holder ? html`${holder.id && html`<b><${Name} of=${holder.id} /></b><br />`}${session(holder.session)}<br /><small><${Name} of=${holder.address} /></small>` : 'nobody') },
  { key: 'since', label: 'Since, token', title: 'The fencing token is the czxid of the holder’s znode.', value: (row) => row.holder?.since_ms, render: ({ holder }) => (holder ? html`<${Ago} ms=${holder.since_ms} /><br /><small><${Id} of=${holder.token} /></small>` : '–') },
  number('waiting', 'Waiting'), number('handovers_last_hour', 'Changes', undefined, 'Changes of the holder in the last hour'),
  { key: 'alarms', label: 'Alarms', wide: true, value: ({ alarms }) => alarms.map((/** @type {Alarm} */ one) => one.sentence).join(' '),
    render: ({ alarms }) => alarms.map((/** @type {Alarm} */ one) => html`<div key=${one.sentence}><span class="badge warning">alarm</span> <${Text} of=${one.sentence} /></div>`) },
];
/** @param {any} group */
const kind = ({ kind, made_by, confidence }) => `${kind.replaceAll('_', ' ')} of ${made_by} (${confidence})`;

/** @param {PageProps} props */
function Groups({ query, go }) {
  const { under, kind, alarm } = query;
  const json = `/recipes${search({ under, kind, alarm })}`;
  const groups = usePages(json, { every: 5000 });
  const [pins] = usePins();
  const fields = html`${asked('Below', under, (under) => go({ under }), '/locks')}
    <label class="asked">Kind<select value=${kind ?? ''} onChange=${(/** @type {any} */ event) => go({ kind: event.target.value })}><option value="">all</option>${KINDS.map((one) => html`<option key=${one} value=${one}>${one.replace('_', ' ')}</option>`)}</select></label>
    <label><input type="checkbox" checked=${!!alarm} onChange=${() => go({ alarm: alarm ? null : 'any' })} /> alarms only</label>
    ${asked('Open', '', (path) => go({ path }), '/group')}`;
  return html`${pins.length > 0 && html`<nav class="row" aria-label="Pinned groups"><small>Pinned:</small>${pins.map((path) => html`<button type="button" key=${path} onClick=${() => go({ path })}><${Name} of=${path} /></button>`)}</nav>`}
    ${loaded(groups, (data) => html`${data.left_out > 0 && html`<p>${plural(data.left_out, 'group')} more may only be seen by others.</p>`}
      ${data.too_deep > 0 && html`<p>${plural(data.too_deep, 'group')} more cannot be shown to anybody: more than 64 znodes stand above the queues, and the right to read each of them would have to be looked up.</p>`}${table('groups of leaders and locks', COLUMNS, {
      name: 'groups', of: groups, key: (row) => row.path, json, fields, open: ({ path }) => go({ path }),
      empty: empty(under || kind || alarm ? 'No recognised group fits.' : 'No group of leaders or locks is recognised.',
        html`Groups are recognised by the names of the ephemeral znodes that programs have now:<br /><small>${PATTERNS}</small><br />Write the path of another group into “Open”; there it can be pinned.`),
    })}`)}`;
}

/** @param {{of: string, go: Go}} props */
function Group({ of, go }) {
  const json = `/recipes/group${search({ path: of })}`;
  const group = useGet(json, { every: 5000 });
  const [pins, toggle] = usePins();
  return html`<p class="row"><button type="button" onClick=${() => go({ path: null })}>← All groups</button>
      <button type="button" aria-pressed=${pins.includes(of)} onClick=${() => toggle(of)}>${pins.includes(of) ? 'Pinned' : 'Pin'}</button></p>
    <h2>${path(of)}</h2>
    ${loaded(group, (data) => html`
      ${data.alarms.map((/** @type {Alarm} */ one) => html`<${Note} key=${one.sentence} level="warning" sentence=${one.sentence} />`)}
      <section class="panel"><h3>Holder</h3>${data.holder ? holder(data.holder) : html`<p>${noHolder(data)}</p>`}
        ${facts([['Changes of the holder', `${count(data.handovers_last_hour)} in the last hour`], ['Recognised as', html`${kind(data)}: <${Text} of=${data.rule} />`]])}</section>
      <section class="panel"><h3>Queue</h3>${table('queue', QUEUE, { name: 'queue', rows: data.queue, key: (row) => row.place, filter: false, json, empty: empty(...noQueue(data)) })}
        ${data.queue_left_out > 0 && html`<p>and ${count(data.queue_left_out)} more</p>`}</section>
      <${HandOver} group=${data} done=${group.reload} />`)}`;
}

/** The server looks at the group, and then at each znode of its queue, so that znodes may go in between.
 *  @param {any} group */
const noHolder = ({ alarms }) => (alarms.some((/** @type {Alarm} */ { kind }) => kind === 'no_holder') ? 'Nobody holds it.' : 'The znode of the holder was deleted while the server looked at it. The page asks again every 5 s.');
/** @param {any} group @returns {[string, string]} */
const noQueue = ({ queue_left_out: more }) => [more > 0 ? `The first 1,000 znodes of the queue were deleted while the server looked at them. ${plural(more, 'znode')} more stood behind them.` : 'All znodes of the queue were deleted while the server looked at them.',
  'The page asks again every 5 s. A group without znodes is no longer recognised.'];

/** @param {any} of */
const holder = (of) => facts([['Id', html`<${Name} of=${of.id} />`], ['Session', session(of.session)], ['Client', address(of.address)], ['Since', html`<${Time} ms=${of.since_ms} />`],
  [html`<${Term} of="fencing token">Token</>`, html`<${Id} of=${of.token} />`]]);

/** @type {Column[]} */
const QUEUE = [
  { ...number('place', ''), label: html`<${Term} of="place in the queue">Place</>`, sort: false }, { ...COLUMN.path, label: 'Znode' },
  { key: 'id', label: 'Id', render: (row) => html`<${Name} of=${row.id} />` },
  { ...COLUMN.session, render: (row) => (row.session ? session(row.session) : html`<span class="badge warning">no live session</span>`) }, COLUMN.address,
  when('since_ms', 'In the queue since'), number('silent_for_ms', 'Silent for', duration),
];

/** Ways to hand over: the label of the act, what it does and what it does not. @type {Record<string, [string, string]>} */
const WAYS = {
  fence: ['Hand over', 'The holder’s znode is deleted if it is still the one shown here. The holder watches it and stops; its later writes are refused by its fencing token where that is checked.'],
  revoke: ['Ask to let go', 'The revocation value is written into the holder’s znode. The holder decides: a program that does not listen for it keeps the lock.'],
  expire: ['Expire the session', 'The holder’s whole session ends, with all that it owns. The znode of a foreign holder alone is never deleted: the program may not notice, and two would lead.'],
};

/** @param {{group: any, done: () => void}} props */
function HandOver({ group, done }) {
  const isOperator = useIsOperator();
  const [open, set] = useState('');
  const { way, sentence, owns, owns_left_out } = group.hand_over;
  const ways = isOperator && WAYS[way] ? [...new Set([way, 'expire'])] : [];
  const [label, does] = WAYS[open] ?? [];
  const level = open === 'expire' ? 'danger' : 'primary';
  const body = { path: group.path, holder: group.holder?.path, token: group.holder?.token, way: open };
  return html`<section class="panel"><h3>Hand over</h3><p><${Text} of=${sentence} /></p>
    ${ways.length > 0 && html`<p class="row">${ways.map((one) => html`<button type="button" key=${one} class=${one === 'expire' ? 'danger' : 'primary'} onClick=${() => set(one)}>${WAYS[one][0]} …</button>`)}</p>`}
    ${open && html`<${Act} title=${label} label=${label} level=${level} path="/recipes/hand-over" body=${body} said="It is done." later="The act was begun, and it is not done yet." done=${done} close=${() => set('')}>
      <p>${does}</p>${group.holder && holder(group.holder)}
      ${open === 'expire' && html`<p>The session owns ${plural(owns.length + (owns_left_out ?? 0), 'ephemeral znode')}. All of them are deleted:</p>${paths(owns)}${owns_left_out > 0 && html`<p>and ${owns_left_out} that you may not see.</p>`}<${EndedByLeader} />`}</>`}</section>`;
}
