// Ballot boxes: the votes that each server has, at one moment.

import { html, Fragment } from '../../lib/html.js';
import { Term } from '../../lib/terms.js';
import { Text, zxid } from '../../lib/words.js';

/** @typedef {import('./record.js').Election} Election */
/** @typedef {import('./record.js').Vote} Vote */

/**
 * Each server's box after a moment, and whether it has just changed.
 * @param {Election} election
 * @param {number} step
 * @returns {Map<number, {votes: Vote[], isNew: boolean}>}
 */
export function boxesAt(election, step) {
  const now = election.moments[step];
  const boxes = new Map();
  for (const box of election.ballots) {
    const isIn = box.moment === undefined ? now !== undefined && box.at_ms <= now.at_ms : box.moment <= step;
    if (!isIn) continue;
    const isNew = box.moment === undefined ? now.server === box.server && box.at_ms === now.at_ms : box.moment === step;
    boxes.set(box.server, { votes: box.votes, isNew });
  }
  return boxes;
}

/** @param {{election: Election, voters: number[], step: number, why: (server: number) => string}} props */
export function BallotBoxes({ election, voters, step, why }) {
  const boxes = boxesAt(election, step);
  return html`<ul class="cards boxes">${election.lanes.map(({ server, known }) => html`<li key=${server} class="card ${known ? '' : 'absent'}">
    ${known ? html`<${Box} server=${server} box=${boxes.get(server)} voters=${voters} />`
      : html`<h3>Box of server ${server}</h3><p class="muted"><${Text} of=${why(server)} /></p><${Heard} of=${server} boxes=${boxes} />`}
  </li>`)}</ul>`;
}

/** @param {{server: number, box: {votes: Vote[], isNew: boolean} | undefined, voters: number[]}} props */
function Box({ server, box, voters }) {
  if (!box) return html`<h3>Box of server ${server}</h3><p class="muted">Empty: it has no vote yet.</p>`;
  const round = box.votes.find(({ voter }) => voter === server)?.round;
  return html`<h3>Box of server ${server}${round !== undefined && html` <small>· <${Term} of="round" /> ${round}</small>`}</h3>
    <div class="scroll"><table class="box"><thead><tr><th scope="col">Voter → for</th><th scope="col"><${Term} of="epoch">Epoch</></th><th scope="col"><${Term} of="zxid" /></th></tr></thead>
    <tbody>${box.votes.map((vote) => html`<tr key=${vote.voter} class="${box.isNew && vote.changed ? 'changed' : ''} ${vote.counts ? '' : 'void'}">
      <th scope="row">${vote.voter} → ${vote.candidate}${box.isNew && vote.changed && html` <span class="new">new</span>`}${vote.round !== round && html` <small>round ${vote.round}</small>`}${!vote.counts && html` <small>does not count</small>`}</th>
      <td>${vote.epoch}</td><td><code title=${zxid(vote.zxid)}>${vote.zxid}</code></td></tr>`)}</tbody></table></div><${Tally} votes=${box.votes} voters=${voters} />`;
}

/** How many back whom. @param {{votes: Vote[], voters: number[]}} props */
function Tally({ votes, voters }) {
  const backers = new Map();
  for (const { voter, candidate, counts } of votes) {
    if (counts && (voters.length === 0 || voters.includes(voter))) backers.set(candidate, (backers.get(candidate) ?? 0) + 1);
  }
  const most = [...backers].sort((a, b) => b[1] - a[1])[0];
  if (!most || voters.length === 0) return null;
  const [candidate, count] = most;
  const isQuorum = count * 2 > voters.length;
  return html`<p class="tally ${isQuorum ? 'agreed' : ''}">${isQuorum ? '✓ ' : ''}${count} of ${voters.length} back server ${candidate}${isQuorum ? html`: a <${Term} of="quorum" />` : ''}</p>`;
}

/** What others heard of a server that has no record. @param {{of: number, boxes: Map<number, {votes: Vote[]}>}} props */
function Heard({ of, boxes }) {
  const heard = [...boxes].flatMap(([server, { votes }]) => votes.filter(({ voter }) => voter === of).map((vote) => ({ server, vote })));
  if (heard.length === 0) return html`<p>No other server has heard a vote of it.</p>`;
  return html`<dl class="facts">${heard.map(({ server, vote }) => html`<${Fragment} key=${server}><dt>Server ${server} heard</dt><dd>a vote for server ${vote.candidate}, epoch ${vote.epoch}, <code>${vote.zxid}</code></dd></>`)}</dl>`;
}
