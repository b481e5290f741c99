// "Why not server 2?": two candidates, compared by the rule.

import { html, Fragment } from '../../lib/html.js';
import { Term } from '../../lib/terms.js';
import { zxid } from '../../lib/words.js';

/** @typedef {import('./record.js').Election} Election */
/** @typedef {{epoch: bigint, zxid: bigint, id: bigint}} Candidate */

/** The newest that a record has of a candidate: its own vote for itself, or else another's for it. @param {Election} election @param {number} id @returns {Candidate | null} */
export function candidateOf(election, id) {
  const votes = election.ballots.flatMap((box) => box.votes).filter((vote) => vote.candidate === id);
  const vote = votes.findLast((one) => one.voter === id) ?? votes.at(-1);
  return vote ? { epoch: BigInt(vote.epoch), zxid: BigInt(vote.zxid), id: BigInt(id) } : null;
}

/** The first part by which two candidates differ, and whether the first wins. @param {Candidate} a @param {Candidate} b */
export function decide(a, b) {
  const by = /** @type {('epoch' | 'zxid' | 'id')[]} */ (['epoch', 'zxid', 'id']).find((part) => a[part] !== b[part]) ?? 'id';
  return { by, wins: a[by] > b[by] };
}

const RULES = { epoch: 'The later epoch wins.', zxid: 'The epochs are the same, so the later zxid wins.', id: 'Epoch and zxid are the same, so the larger server id wins.' };

/** @param {{election: Election, other: number, why: string | null}} props `why`: why the other has no record */
export function Comparison({ election, other, why }) {
  const { winner } = election;
  if (winner === null) return null;
  const [first, second] = [candidateOf(election, winner), candidateOf(election, other)];
  if (!first || !second) {
    const missing = first ? other : winner;
    return html`<p>No vote for server ${missing} is in these records, so there is nothing to compare. ${why && missing === other ? `Server ${other}: ${why}` : 'It took no part, or it voted for another at once.'}</p>`;
  }
  const { by, wins } = decide(first, second);
  return html`<div class="scroll"><table class="versus"><caption class="unseen">Server ${winner} and server ${other} by the rule</caption>
    <thead><tr><th scope="col">Compared in this order</th><th scope="col">Server ${winner}</th><th scope="col">Server ${other}</th><th scope="col">Result</th></tr></thead>
    <tbody><${Step} name="1. epoch" term="epoch" a=${String(first.epoch)} b=${String(second.epoch)} state=${by === 'epoch' ? wins : null} />
      <${Step} name="2. zxid" term="zxid" a=${zxid(`0x${first.zxid.toString(16)}`)} b=${zxid(`0x${second.zxid.toString(16)}`)} state=${by === 'zxid' ? wins : by === 'epoch' ? undefined : null} />
      <${Step} name="3. server id" term="candidate" a=${String(winner)} b=${String(other)} state=${by === 'id' ? wins : undefined} /></tbody></table></div>
    <p><u class="rule">${RULES[by]}</u> ${wins ? `So server ${winner} is better than server ${other}.` : html`<${Late} election=${election} other=${other} />`}</p>`;
}

/** @param {{name: string, term: string, a: string, b: string, state: boolean | null | undefined}} props null: the same; undefined: not asked for */
function Step({ name, term, a, b, state }) {
  const word = state === undefined ? 'not asked for' : state === null ? 'the same' : 'decides';
  return html`<tr class=${state === undefined ? 'void' : typeof state === 'boolean' ? 'changed' : ''}><th scope="row"><${Term} of=${term}>${name}</></th>
    <td class=${state === true ? 'better' : ''}><code>${a}</code></td><td class=${state === false ? 'better' : ''}><code>${b}</code></td><td>${word}</td></tr>`;
}

/** A better vote that did not win. @param {{election: Election, other: number}} props */
function Late({ election, other }) {
  const reason = election.kind === 'joined'
    ? `a quorum had a leader already, so there was nothing to elect. A server that comes back follows the leader, whatever its log has.`
    : `a quorum agreed without its vote: the vote came too late, or too few servers heard it.`;
  return html`<${Fragment}>By the rule server ${other} is better. But ${reason}</>`;
}
