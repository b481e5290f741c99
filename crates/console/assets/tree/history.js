// The changes of a path that the logs tell.

import { get, post, search } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { html, useEffect, useState } from '../lib/html.js';
import { usePages } from '../lib/live.js';
import { Empty, ErrorBox, Loaded, Loading } from '../lib/states.js';
import { bytes as size, Text, Time, Zxid } from '../lib/words.js';
import { Create } from './acts.js';
import { Difference } from './conflict.js';
import { fromBase64 } from './decoders/bytes.js';
import { seenOf } from './draft.js';
import { SessionLink } from './node.js';
import { Button, useAct } from './parts.js';
import { wasAt } from './past.js';
import { nameOf, parentOf } from './rows.js';

/** @import {Change, ChangePage, Seen, Znode} from './types' */
/** @import {Panel} from './node.js' */

const KINDS = { create: 'created', set: 'data set', delete: 'deleted', set_acl: 'ACL set' };

/** @param {Change | undefined} change */
const bytesOf = (change) => fromBase64(change?.data ?? '') ?? new Uint8Array();

/** @param {Omit<Panel, 'node'> & {node: Znode | null}} panel */
export function History(panel) {
  const { path, node, mayWrite, reload } = panel;
  const list = usePages(`/tree/history${search({ path })}`, { quiet: true });
  const [shown, show] = useState(-1);
  const [back, putBack] = useState(/** @type {Change | null} */ (null));
  const close = () => putBack(null);
  const line = (/** @type {Change} */ change, /** @type {number} */ at, /** @type {Change | undefined} */ before) => {
    const { kind, zxid, time_ms, version, length, session, data, hidden } = change;
    const isPresent = node?.stat.mzxid === zxid;
    return html`<li key=${at}><div class="row"><strong>${KINDS[kind] ?? kind}</strong><${Time} ms=${time_ms} />${version !== null && html`<span>version ${version}</span>`}${length !== null && html`<span>${size(length)}</span>`}
      <span><${SessionLink} id=${session} /></span><${Zxid} of=${zxid} />${hidden && html`<span class="muted">you may not read the value</span>`}
      ${data !== null && html`<${Button} aria-expanded=${shown === at} on=${() => show(shown === at ? -1 : at)}>${before ? 'What changed' : 'Value'}</>${mayWrite && !isPresent && (!node || node.rights.write) && html`<${Button} on=${() => putBack(change)}>Put this value back</>`}`}</div>
      ${shown === at && html`<${Difference} before=${bytesOf(before)} after=${bytesOf(change)} label="What changed with ${zxid}" />`}</li>`;
  };
  return html`<${Loaded} of=${list}>${(/** @type {ChangePage} */ { items, sentence, back_to_zxid }) => html`<div class="stack">
    ${items.length === 0 && html`<${Empty} title="The logs that are still on disk tell nothing about this path." />`}
    <ol class="history">${items.map((change, at) => line(change, at, items.slice(at + 1).find(({ data }) => data !== null)))}</ol>
    ${list.more && html`<${Button} on=${list.more}>Older</>`}
    <p class="muted"><${Text} of=${sentence ?? (back_to_zxid ? `Back to ${back_to_zxid}; older logs are purged.` : '')} /></p>
    ${back && (node ? html`<${PutBack} node=${node} change=${back} close=${close} reload=${() => { reload(); list.reload(); }} />`
      : html`<${Create} ...${panel} path=${parentOf(path)} name=${nameOf(path)} data=${bytesOf(back)} was=${wasAt(items, items.indexOf(back))} close=${close} open=${reload} />`)}
  </div>`}</>`;
}

/** Sets an earlier value anew. @param {{node: Znode, change: Change, close: () => void, reload: () => void}} props */
function PutBack({ node: { path }, change, close, reload }) {
  const [now, set] = useState(/** @type {(Seen & {data: string}) | null} */ (null));
  const [error, isBusy, run] = useAct();
  const look = run(async () => set(await get(`/tree/data${search({ path, length: 16 << 20 })}`, { quiet: true })));
  useEffect(() => look(), []);
  const save = run(async () => {
    if (now) await post('/tree/set', { path, data: change.data, ...seenOf(now) });
    close();
    reload();
  });
  return html`<${Dialog} title="Put an earlier value back" onClose=${close} wide><div class="stack">
    ${now ? html`<p>It is an ordinary set over version ${now.version}: the version grows, and watches are triggered. This would change:</p><${Difference} before=${fromBase64(now.data)} after=${bytesOf(change)} label="What would change" />` : !error && html`<${Loading} />`}
    ${error && html`<${ErrorBox} error=${error} retry=${error.code === 'BADVERSION' ? look : undefined} />`}
    <div class="row"><${Button} class="primary" disabled=${isBusy || !now} on=${save}>Put it back</><${Button} on=${close}>Cancel</></div></div></>`;
}
