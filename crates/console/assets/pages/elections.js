// Elections: why was there one, how long without a leader, who voted for whom, and why did each change its mind?

import { html, loadStyle, useEffect, useRef, useState } from '../lib/html.js';
import { useMe } from '../lib/api.js';
import { useKeys } from '../lib/keys.js';
import { useEvents } from '../lib/live.js';
import { go as goTo, link } from '../lib/route.js';
import { Empty, ErrorBox, Loaded, Note, Silent } from '../lib/states.js';
import { Ago, Copy, duration, Text, Time } from '../lib/words.js';
import { Detail } from './elections/detail.js';
import { download, openRecord } from './elections/record.js';

loadStyle('./elections/elections.css', import.meta.url);

/** @typedef {import('./elections/record.js').Election} Election */
/** @typedef {import('./elections/record.js').Elections} Elections */

/** @param {import('../lib/route.js').PageProps} props */
export default function ElectionsPage({ query, go }) {
  const [saved, setSaved] = useState(/** @type {{name: string, record: Elections} | null} */ (null));
  const [error, setError] = useState(/** @type {string | null} */ (null));
  const live = useEvents('elections', '/elections?last=16', { off: saved !== null });
  const open = async (/** @type {File | undefined} */ file) => {
    if (!file) return;
    try {
      setSaved({ name: file.name, record: await openRecord(file) });
      setError(null);
      go({ n: null, at: null, why: null }, { replace: true });
    } catch (failure) {
      setError(`${file.name} cannot be opened: ${/** @type {Error} */ (failure).message}`);
    }
  };
  const close = () => {
    setSaved(null);
    go({ n: null, at: null, why: null }, { replace: true });
  };
  const isOver = useDrop(open);
  const record = saved?.record ?? live.data;
  return html`<div class="page-head"><h1>Elections</h1><span class="end">
      <${OpenButton} onFile=${open} /><button type="button" disabled=${!record} onClick=${() => download(record)}>Download</button></span></div>
    ${isOver && html`<div class="drop" aria-hidden="true"><p>Drop the record to open it</p></div>`}
    ${error && html`<${ErrorBox} error=${{ sentence: error, code: 'FILE' }} />`}
    ${saved ? html`<div class="note info"><p class="row"><span><strong>A saved record:</strong> <${Text} of=${saved.name} />, as of <${Time} ms=${saved.record.as_of_ms} /></span><button type="button" onClick=${close}>Back to this ensemble</button></p></div>
      <${Browser} record=${saved.record} query=${query} go=${go} />`
      : html`<${Loaded} of=${live} rows=${8}>${(/** @type {Elections} */ record) => html`<${Browser} record=${record} query=${query} go=${go} />`}</>`}`;
}

/** Files dropped anywhere on the page. @param {(file: File | undefined) => unknown} open */
function useDrop(open) {
  const [isOver, set] = useState(false);
  const latest = useRef(open);
  latest.current = open;
  useEffect(() => {
    const hasFile = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files');
    const over = (/** @type {DragEvent} */ event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      set(true);
    };
    const leave = (/** @type {DragEvent} */ event) => !event.relatedTarget && set(false);
    const drop = (/** @type {DragEvent} */ event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      set(false);
      void latest.current(event.dataTransfer?.files[0]);
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, []);
  return isOver;
}

/** @param {{onFile: (file: File | undefined) => unknown}} props */
function OpenButton({ onFile }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const change = () => {
    void onFile(input.current?.files?.[0]);
    if (input.current) input.current.value = '';
  };
  return html`<button type="button" title="Or drop the file anywhere on this page" onClick=${() => input.current?.click()}>Open a record …</button>
    <input type="file" accept="application/json,.json" hidden ref=${input} onChange=${change} aria-label="A record of elections" />`;
}

/** @param {{record: Elections, query: import('../lib/route.js').Query, go: import('../lib/route.js').Go}} props */
function Browser({ record, query, go }) {
  const { elections } = record;
  if (elections.length === 0) return html`<div class="panel"><${None} record=${record} /></div>`;
  const shown = elections.find(({ number }) => String(number) === query.n) ?? elections[0];
  const at = elections.indexOf(shown);
  // In the table of moments j and k go from row to row.
  const show = (/** @type {number} */ place) => !document.activeElement?.closest('.table') && elections[place] && goTo({ n: place === 0 ? null : elections[place].number }, { page: 'elections', replace: true });
  useKeys('Older and newer elections', { j: () => show(at + 1), k: () => show(at - 1) });
  const hasNotes = record.servers.some(({ state }) => state !== 'answered') || !!record.remarks?.length;
  return html`<div class="stack">${hasNotes && html`<div class="notes"><${Silent} servers=${record.servers} />${(record.remarks ?? []).map((remark) => html`<${Note} key=${remark} level="info" sentence=${remark} />`)}</div>`}
    <div class="split">
      <nav class="panel elections" aria-label="Elections"><h2>The last ${elections.length}</h2>
        <ol>${elections.map((election, place) => html`<li key=${election.number}><${Entry} election=${election} isShown=${election === shown} isNewest=${place === 0} /></li>`)}</ol></nav>
      <${Detail} key=${shown.number} record=${record} election=${shown} query=${query} go=${go} />
    </div></div>`;
}

/** @param {{election: Election, isShown: boolean, isNewest: boolean}} props */
function Entry({ election, isShown, isNewest }) {
  const { number, winner, epoch, kind, cause, began_ms, total_for_ms, under_way } = election;
  const what = under_way ? 'No leader yet' : kind === 'joined' ? `Follows server ${winner}, epoch ${epoch}` : `Server ${winner} leads epoch ${epoch}`;
  return html`<a href=${link('elections', { n: isNewest ? null : number })} aria-current=${isShown ? 'true' : undefined}>
    <strong>${what}</strong><span><${Text} of=${cause} /></span>
    <small>${under_way ? html`<span class="badge warning">under way</span>` : html`<b>${duration(total_for_ms)}</b>${kind === 'joined' ? ', there was a leader' : ''}`} · <${Ago} ms=${began_ms} /></small></a>`;
}

/** @param {{record: Elections}} props */
function None({ record }) {
  const me = useMe();
  if (me?.server.standalone || record.voters.length === 1) {
    return html`<${Empty} title="Nobody to elect: this is a standalone server."><p>Three servers on this machine, with elections to look at, are started by</p><p class="id"><code>ostler ensemble</code><${Copy} text="ostler ensemble" /></p></>`;
  }
  return html`<${Empty} title="No election is known."><p>Each server keeps its last 16 searches for a leader in memory. <${Silent} servers=${record.servers} /></p></>`;
}
