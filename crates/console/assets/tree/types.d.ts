// The shapes of the tree's pages. Browsers do not load this file.

/** A line of a decoded value. */
export interface Item {
  label: string;
  value?: string;
  children?: Item[];
}

/** A form of data that some program is known to write. */
export interface Known {
  form: string;
  sentence: string;
  facts: Item[];
}

/** One unpacking. */
export interface Layer {
  format: string;
  from: number;
  to: number;
}

/** Data, unpacked as far as they can be, and the ways to show them. */
export interface Decoded {
  bytes: Uint8Array;
  layers: Layer[];
  /** The likeliest first. */
  views: string[];
  known: Known | null;
  stopped: string | null;
}

export type Kind = 'persistent' | 'ephemeral' | 'container' | 'ttl' | 'system';

export interface Stat {
  czxid: string;
  mzxid: string;
  pzxid: string;
  ctime_ms: number;
  mtime_ms: number;
  version: number;
  cversion: number;
  aversion: number;
  ephemeral_owner: string | null;
  data_length: number;
  num_children: number;
}

export interface Acl {
  scheme: string;
  id: string;
  perms: string;
}

export interface Rights {
  read: boolean;
  write: boolean;
  create: boolean;
  delete: boolean;
  admin: boolean;
}

export interface Znode {
  path: string;
  stat: Stat;
  kind: Kind;
  ttl_ms: number | null;
  quota: Record<string, unknown> | null;
  watches: { data: number; children: number; persistent: number } | null;
  owner: { session: string; address: string | null; alive: boolean } | null;
  acl: Acl[] | null;
  rights: Rights;
  may_be_deleted?: boolean;
  name: { sequence: number | null };
}

/** A child. What the caller may not see is null. */
export interface Child {
  name: string;
  kind: Kind | null;
  num_children: number | null;
  data_length: number | null;
  version: number | null;
  mzxid: string | null;
  mtime_ms: number | null;
  has_quota: boolean | null;
  watched: boolean | null;
  may_read: boolean;
}

export interface ChildPage {
  items: Child[];
  next: string | null;
  truncated: boolean;
  as_of_zxid: string;
  cversion: number;
  total: number;
  /** The place of the first of them; null behind a cursor. */
  from?: number | null;
  /** The number of names that start with the text; null behind a cursor. */
  matching?: number | null;
  changes_since: number;
}

export interface Data {
  data: string;
  length: number;
  version: number;
  czxid: string;
  mzxid: string;
}

/** By what a change recognises the znode that somebody saw: versions begin at 0 with each create. */
export interface Seen {
  version: number;
  czxid: string;
  mzxid: string;
}

export interface Found {
  path: string;
  kind: Kind;
  data_length: number;
  mtime_ms: number;
  match: 'name' | 'value';
}

export interface FoundPage {
  items: Found[];
  next: string | null;
  looked_at: number;
  of: number | null;
  done: boolean;
}

export interface Change {
  zxid: string;
  time_ms: number;
  session: string;
  kind: 'create' | 'set' | 'delete' | 'set_acl';
  version: number | null;
  data: string | null;
  length: number | null;
  hidden?: boolean;
  /** The ACL after it, as far as one may see it; null: not at all. */
  acl: Acl[] | null;
  /** Whether digests in it are not shown. */
  acl_is_masked: boolean;
  /** The znode after it. */
  znode: { kind: Kind; ttl_ms: number | null } | null;
}

export interface ChangePage {
  items: Change[];
  next: string | null;
  back_to_zxid: string | null;
  sentence: string | null;
}

export interface Plan {
  id: string;
  path: string;
  znodes: number;
  bytes: number;
  ephemerals: number;
  owners: { session: string; count: number; address: string | null }[];
  watches: number | null;
  locks: string[];
  refused: string[];
  expires_in_ms: number;
  as_of_zxid: string;
}

export interface Run {
  done: number;
  of: number;
  state: 'running' | 'done' | 'stopped';
  sentence: string | null;
  left: string[];
}

/** An answer that is no success. */
export interface Refusal {
  code: string;
  sentence: string;
  path?: string;
  theirs?: { data: string; stat: Stat };
  created_anew?: boolean;
}
