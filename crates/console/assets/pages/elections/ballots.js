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
    <h3>Box of server ${server}</h3>
    ${known ? html`<${Box} box=${boxes.get(server)} voters=${voters} />` : html`<p class="muted"><${Text} of=${why(server)} /></p><${Heard} of=${server} boxes=${boxes} />`}
  </li>`)}</ul>`;
}

/** @param {{box: {votes: Vote[], isNew: boolean} | undefined, voters: number[]}} props */
function Box({ box, voters }) {
  if (!box) return html`<p class="muted">Empty: it has no vote yet.</p>`;
  return html`<table class="box"><thead><tr><th scope="col">Voter</th><th scope="col">for</th><th scope="col"><${Term} of="epoch">Epoch</></th><th scope="col"><${Term} of="zxid" /></th><th scope="col"><${Term} of="round">Round</></th></tr></thead>
    <tbody>${box.votes.map((vote) => {
      const isNew = box.isNew && vote.changed;
      return html`<tr key=${vote.voter} class="${isNew ? 'changed' : ''} ${vote.counts ? '' : 'void'}"><th scope="row">${vote.voter}</th><td><b>${vote.candidate}</b>${isNew && html` <span class="badge accent">new</span>`}${!vote.counts && html` <span class="badge" title="This server does not count the vote.">not counted</span>`}</td>
        <td>${vote.epoch}</td><td><code title=${zxid(vote.zxid)}>${vote.zxid}</code></td><td>${vote.round}</td></tr>`;
    })}</tbody></table><${Tally} votes=${box.votes} voters=${voters} />`;
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
