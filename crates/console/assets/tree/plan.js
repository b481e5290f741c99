// A change of many znodes: what it would touch, the confirmation, and the progress.

import { post, search } from '../lib/api.js';
import { html, useState } from '../lib/html.js';
import { useGet } from '../lib/live.js';
import { ErrorBox, Loaded, Note } from '../lib/states.js';
import { bytes as size, count, Id, plural, Text } from '../lib/words.js';
import { Button, typed, useAct } from './parts.js';
import { nameOf } from './rows.js';

/** @import {Plan, Run} from './types' */

/** @param {{path: string, kind: 'delete' | 'set-acl', verb: string, close: () => void, finish: () => void, start: (plan: string, confirm: string) => Promise<{run: string}>}} props */
export function Planned({ path, kind, verb, close, finish, start }) {
  const answer = useGet(`/tree/plan${search({ path, kind })}`, { quiet: true });
  const [written, write] = useState('');
  const [id, setId] = useState('');
  const [error, isBusy, run] = useAct();
  const last = nameOf(path);
  if (id) return html`<${Progress} id=${id} close=${finish} />`;
  return html`<${Loaded} of=${answer}>${(/** @type {Plan} */ plan) => html`<form class="stack" onSubmit=${run(async () => setId((await start(plan.id, written)).run))}>
    <dl class="facts"><dt>Znodes</dt><dd><strong>${count(plan.znodes)}</strong>, with ${size(plan.bytes)}</dd>
      <dt>Ephemerals</dt><dd>${count(plan.ephemerals)}${plan.owners.slice(0, 20).map(({ session, count: own, address }, at) => html`${at ? ',' : ' of'} <span class="owner">${session}${address && html` at <${Text} of=${address} />`} (${own})</span>`)}${plan.owners.length > 20 && ' and others'}</dd>
      ${plan.watches !== null && html`<dt>Watches</dt><dd>${count(plan.watches)} at this server</dd>`}
      <dt>Counted</dt><dd>as of ${plan.as_of_zxid}; the plan is good for ${Math.round(plan.expires_in_ms / 1000)} s</dd></dl>
    ${plan.locks.length > 0 && html`<${Note} level="warning" sentence="There are locks or leader elections in it:"><${Paths} of=${plan.locks} /></>`}
    ${plan.refused.length > 0 && html`<${Note} level="critical" sentence="Your identity is refused at:" way_out="The work would stop at the first of them."><${Paths} of=${plan.refused} /></>`}
    <label class="field"><span>Type the last part of the path, <${Text} of=${last} />, to confirm</span><input required autofocus autocomplete="off" spellcheck=${false} value=${written} onInput=${typed(write)} /></label>
    ${error && html`<${ErrorBox} error=${error} retry=${error.code === 'PLAN' ? answer.reload : undefined} />`}
    <div class="row"><button class="danger" disabled=${written !== last || isBusy}>${verb} ${plural(plan.znodes, 'znode')}</button><${Button} on=${close}>Cancel</></div></form>`}</>`;
}

/** @param {{of: string[]}} props */
const Paths = ({ of }) => html`<ul class="paths">${of.slice(0, 100).map((path) => html`<li key=${path}><${Id} of=${path} /></li>`)}${of.length > 100 && html`<li>and ${count(of.length - 100)} more</li>`}</ul>`;

/** @param {{id: string, close: () => void}} props */
export function Progress({ id, close }) {
  const [isOver, end] = useState(false);
  const answer = useGet(`/tree/runs${search({ id })}`, { every: isOver ? undefined : 400, quiet: true });
  const [error, , act] = useAct();
  return html`<${Loaded} of=${answer}>${(/** @type {Run} */ { done, of, state, sentence, left }) => {
    if (state !== 'running' && !isOver) end(true);
    return html`<div class="stack"><label class="field"><span>${count(done)} of ${count(of)}</span><progress max=${of || 1} value=${done} /></label>
    <p role="status">${state === 'running' ? 'It works, in steps of 100.' : html`<strong>${state === 'done' ? 'Done.' : 'Stopped.'}</strong>`} ${sentence && html`<${Text} of=${sentence} />`}</p>
    ${left.length > 0 && html`<h2>What is left</h2><${Paths} of=${left} />`}
    ${error && html`<${ErrorBox} error=${error} />`}
    <div class="row">${state === 'running' ? html`<${Button} class="danger" on=${act(() => post('/tree/stop-run', { id }))}>Stop</>` : html`<${Button} class="primary" on=${close}>Close</>`}</div></div>`;
  }}</>`;
}
