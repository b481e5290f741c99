// What the logs tell about a path.

import { get, post, search } from '../lib/api.js';
import { Dialog } from '../lib/dialog.js';
import { html, useEffect, useState } from '../lib/html.js';
import { usePages } from '../lib/live.js';
import { link } from '../lib/route.js';
import { Empty, ErrorBox, Loaded, Loading } from '../lib/states.js';
import { bytes as size, Text, Time, Zxid } from '../lib/words.js';
import { Create, useAct } from './acts.js';
import { Difference } from './conflict.js';
import { fromBase64 } from './decoders/bytes.js';
import { nameOf, parentOf } from './rows.js';

/** @import {Change, ChangePage, Znode} from './types' */

const KINDS = { create: 'created', set: 'data set', delete: 'deleted', set_acl: 'ACL set' };

/** @param {{path: string, node: Znode | null, mayWrite: boolean, reload: () => void, open?: (path: string) => void}} props */
export function History({ path, node, mayWrite, reload, open = () => {} }) {
  const list = usePages(`/tree/history${search({ path })}`, { quiet: true });
  const [shown, show] = useState('');
  const [back, putBack] = useState(/** @type {Change | null} */ (null));
  return html`<${Loaded} of=${list}>${(/** @type {ChangePage} */ data) => html`<div class="stack">
    ${data.items.length === 0 && html`<${Empty} title="The logs that are still on disk tell nothing about this path." />`}
    <ol class="history">${data.items.map((change, at) => {
      const before = data.items.slice(at + 1).find((one) => one.data !== null);
      return html`<li key=${change.zxid}><div class="row"><strong>${KINDS[change.kind] ?? change.kind}</strong><${Time} ms=${change.time_ms} />
        ${change.version !== null && html`<span>version ${change.version}</span>`}${change.length !== null && html`<span>${size(change.length)}</span>`}
        <span>session <a href=${link('sessions', { id: change.session })}>${change.session}</a></span><${Zxid} of=${change.zxid} />
        ${change.data !== null && html`<button type="button" aria-expanded=${shown === change.zxid} onClick=${() => show(shown === change.zxid ? '' : change.zxid)}>${before ? 'What changed' : 'Value'}</button>
          ${mayWrite && (!node || (node.rights.write && change.version !== node.stat.version)) && html`<button type="button" onClick=${() => putBack(change)}>Put this value back</button>`}`}</div>
        ${shown === change.zxid && html`<${Difference} before=${bytesOf(before)} after=${bytesOf(change)} label="What changed with ${change.zxid}" />`}</li>`;
    })}</ol>
    ${list.more && html`<button type="button" onClick=${list.more}>Older</button>`}
    ${(data.sentence || data.back_to_zxid) && html`<p class="muted">${data.sentence ? html`<${Text} of=${data.sentence} />` : `Back to ${data.back_to_zxid}; older logs are purged.`}</p>`}
    ${back && (node ? html`<${PutBack} node=${node} change=${back} close=${() => putBack(null)} reload=${() => { reload(); list.reload(); }} />`
      : html`<${Create} path=${parentOf(path)} name=${nameOf(path)} data=${bytesOf(back)} open=${open} changed=${reload} close=${() => putBack(null)} />`)}
  </div>`}</>`;
}

/** @param {Change | undefined} change */
const bytesOf = (change) => fromBase64(change?.data ?? '') ?? new Uint8Array();

/** Sets an earlier value anew. @param {{node: Znode, change: Change, close: () => void, reload: () => void}} props */
function PutBack({ node, change, close, reload }) {
  const [now, set] = useState(/** @type {{data: string, version: number} | null} */ (null));
  const [error, isBusy, run] = useAct();
  const look = run(async () => set(await get(`/tree/data${search({ path: node.path, length: 16 << 20 })}`, { quiet: true })));
  useEffect(() => look(), []);
  const save = run(async () => {
    await post('/tree/set', { path: node.path, data: change.data, version: now?.version });
    close();
    reload();
  });
  return html`<${Dialog} title="Put an earlier value back" onClose=${close} wide><div class="stack">
    <p>It is an ordinary set over version ${now?.version}: the version grows, and watches are triggered. This would change:</p>
    ${now ? html`<${Difference} before=${fromBase64(now.data) ?? new Uint8Array()} after=${bytesOf(change)} label="What would change" />` : !error && html`<${Loading} />`}
    ${error && html`<${ErrorBox} error=${error} retry=${error.code === 'BADVERSION' ? look : undefined} />`}
    <div class="row"><button type="button" class="primary" disabled=${isBusy || !now} onClick=${save}>Put it back</button><button type="button" onClick=${close}>Cancel</button></div></div></>`;
}
