// The words of the pages, with definitions that unfold at the word. They are those of docs/elections.md and docs/glossary.md.

import { html, useId, useRef, useState } from './html.js';

/** @type {Record<string, string>} */
export const TERMS = {
  voter: 'A server that takes part in elections. A quorum is more than half of the voters.',
  quorum: 'A set of voters that decides: more than half of them, or by groups and weights. Fewer voters decide nothing.',
  epoch: 'A leader’s time in office, and its number. Each new leader’s epoch is higher than all earlier ones.',
  zxid: 'The number of a transaction. Its upper half is the epoch, its lower half a counter: 0x10000000a is the tenth transaction of epoch 1.',
  candidate: 'The server that a vote names, with its current epoch and the last zxid in its log. The later epoch wins; if the epochs are the same, the later zxid; if these are the same too, the larger server id. So the winner has everything that a quorum has, and nothing that was committed is lost.',
  vote: 'A message with the candidate that a server backs.',
  round: 'The number of an election. Each server counts its own. A server that is behind takes over the later number of the others; votes of an earlier round do not count.',
  search: 'A server’s own search for a leader, from the loss of one to the next.',
  leader: 'The server that proposes. All writes go through it.',
  follower: 'A voter that is connected to a leader.',
  observer: 'A server that follows without a vote.',
  ensemble: 'The servers that keep one tree together, as listed by server.N lines.',
  standalone: 'A server without an ensemble. It is a quorum of one.',
  'election port': 'Where votes come in.',
  'quorum port': 'Where followers and observers connect to the leader.',
  detect: 'From the old leader’s last packet until its loss is noticed. Heartbeats come every half tick, so this is mostly the time between two of them.',
  elect: 'From there until this server knows which server leads.',
  discover: 'From there until the new epoch is agreed: a follower has promised to follow no earlier epoch, a leader has this promise from a quorum.',
  synchronise: 'From there until a quorum has the leader’s history on disk, and clients are served.',
  first_commit: 'From there until the first write of the new epoch is committed. This takes until a client writes.',
  'ballot box': 'The votes that a server has received, and its own. It counts those of its round.',
  'settle time': 'How long a server waits for a better vote after a quorum has agreed: 200 ms. It does not wait if no other server can send one.',
  digest: 'A sum over all znodes by which servers compare their trees. A server notes it at each transaction whose zxid is a multiple of 128; before the first one since its start there is none.',
  session: 'A client’s time with the ensemble, over any number of connections.',
  connection: 'A client’s TCP connection.',
  'session expiry': 'The end of a session whose client was not heard of for its timeout.',
  'local session': 'A session that its own server alone knows. A global session is known to all servers.',
  znode: 'A node of the tree: path, data, ACL, Stat.',
  ephemeral: 'A znode that ends with its session.',
  container: 'A znode that is deleted some time after its last child.',
  'TTL znode': 'A znode that is deleted if it is not changed for a time and has no children.',
  sequential: 'A znode whose name ends with a number that its parent gives.',
  watch: 'A client’s wish to hear of a change: one-shot, persistent, or persistent recursive.',
  quota: 'A limit of znodes and bytes below a path.',
  stages: 'The parts of a request’s time: parse, queue, propose, own disk, quorum, apply, write.',
  snapshot: 'A file with the whole tree at one zxid.',
  'transaction log': 'Files with all transactions, in order.',
  purge: 'The removal of old snapshots and logs.',
  lag: 'How far a server is behind the last zxid of its leader, in transactions and in time.',
  'fencing token': 'A number that grows with each holder, by which a resource refuses an earlier one.',
  'place in the queue': 'The place of a contender in the order of sequential znodes below one parent.',
  reconfiguration: 'A change of the ensemble, by a transaction.',
};

/** A word that unfolds its definition: `<${Term} of="epoch">epochs</>`. @param {{of: string, children?: any}} props */
export function Term({ of, children = of }) {
  const [isOpen, set] = useState(false);
  const note = useRef(/** @type {HTMLElement | null} */ (null));
  const id = useId();
  const toggle = (/** @type {any} */ event) => {
    event.stopPropagation();
    const box = note.current;
    if (!box) return;
    box.togglePopover();
    const word = event.currentTarget.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(word.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
    box.style.top = `${word.bottom + 6 + box.offsetHeight > innerHeight ? Math.max(8, word.top - box.offsetHeight - 6) : word.bottom + 6}px`;
  };
  if (!TERMS[of]) return children;
  return html`<button type="button" class="term" aria-expanded=${isOpen} aria-describedby=${isOpen ? id : undefined} onClick=${toggle}>${children}</button><span
    class="definition" popover="auto" role="note" id=${id} ref=${note} onToggle=${(/** @type {any} */ event) => set(event.newState === 'open')}><strong>${of.replace('_', ' ')}</strong> ${TERMS[of]}</span>`;
}
