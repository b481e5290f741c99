// Types of Sessions, Leadership, Watches, Slow and hot, Metrics, Configuration, Disk and Clients. Only the check of types reads this file.

type PageProps = import('../lib/route.js').PageProps;
type Go = import('../lib/route.js').Go;
type Column = import('../lib/table.js').Column;
type Answer = import('../lib/live.js').Answer & { more?: (() => Promise<void>) | null };

interface Live {
  id: string; server: number | null; address: string | null; ids: string[]; is_local: boolean; timeout_ms: number; last_heard_ago_ms: number | null;
  longest_silence_ms: number | null; ephemerals: number; watches: number | null; outstanding: number | null; requests: number | null; has_tls: boolean | null; since_ms: number | null;
}
interface Ended {
  id: string; server: number; address: string | null; ended_ms: number; cause: string; sentence: string; verdict: string | null; gaps_ms: number[];
  ephemerals: string[]; passed_on: { path: string; to: string }[]; timeout_ms: number;
}
interface Alarm { kind: string; sentence: string }
interface Stage { name: string; for_ms: number }
interface Series { server: number | null; name: string; unit: string; values: (number | null)[] }
interface Mark { at_ms: number; kind: string; sentence: string }
interface Metrics { step_ms: number; since_ms: number; series: Series[]; marks: Mark[] }
interface ConfigValue { server: number; value: string | null; from: string }
interface ConfigKey { key: string; standing: string; values: ConfigValue[]; differs: boolean; note: string }
interface Place { path: string; free_bytes: number; total_bytes: number }
interface ServerDisk {
  server: number; data: Place; log: Place; snapshots: any[]; logs: any[];
  last_snapshot: { zxid: string; at_ms: number; took_ms: number; bytes: number } | null;
  grows_bytes_per_hour: number | null; full_in_ms: number | null; restart_ms: number | null;
  purge: { keep: number; removes: string[]; bytes: number }; findings: any[];
}
