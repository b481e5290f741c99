// The past of a deleted znode, for those who put it back.

/** @import {Acl, Change} from './types' */

/** How a znode is put back. `mode` is empty and `acl` null if somebody has to choose; `note` says why.
 *  @typedef {{mode: string, ttl_ms: number | null, acl: Acl[] | null, note: string}} Was */

/**
 * What the znode with a change's value was at its end. The newest change is the first, and the value is that of the change at a place.
 * @param {Change[]} changes @param {number} at @returns {Was}
 */
export function wasAt(changes, at) {
  const end = changes.slice(0, at).findLastIndex(({ kind }) => kind === 'delete' || kind === 'create');
  // An ACL that was set after the value holds: an earlier one may have let in more people.
  const last = changes.slice(end + 1, at + 1).find(({ kind }) => kind === 'set_acl') ?? changes[at];
  const { znode } = changes[at];
  const acl = last.acl_is_masked ? null : last.acl;
  const notes = [];
  if (!znode) notes.push('Its kind is not known any more.');
  if (znode?.kind === 'ephemeral') notes.push('It was ephemeral and belonged to a session. It cannot come back as one: as persistent it stays until somebody deletes it, and programs may take its session for alive.');
  if (!last.acl) notes.push('Its ACL is not known, or not shown to you.');
  if (last.acl && !acl) notes.push('Its ACL had digests that you do not see, so it cannot come back as it was.');
  const mode = znode && znode.kind !== 'ephemeral' ? (znode.kind === 'system' ? 'persistent' : znode.kind) : '';
  return { mode, ttl_ms: znode?.ttl_ms ?? null, acl, note: notes.join(' ') };
}
