//! The text of each word's answer.

use std::fmt::{self, Display, Write};

use super::connections;
use super::java_text::{Address, Date, Double, mean_of_four_decimals};
use super::mntr;
use super::view::{ConfOfMember, Mode, ServerView, TimeBucket, WatchesOfSession};
use super::word::Word;

/// The answer of words that need a served tree, without one (a line; `hash` leaves the newline out).
pub const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests";

/// The whole answer to a word, to be sent without framing.
pub fn render(word: Word, view: &ServerView) -> String {
    let mut out = String::new();
    write_word(&mut out, word, view).expect("writing to a String cannot fail");
    out
}

fn write_word(out: &mut String, word: Word, view: &ServerView) -> fmt::Result {
    if !view.serving && !word.answers_without_tree() {
        return write_not_serving(out, word);
    }
    match word {
        Word::Conf => write_conf(out, view),
        Word::Cons => write_cons(out, view),
        Word::Crst => writeln!(out, "Connection stats reset."),
        Word::Dirs => write_dirs(out, view),
        Word::Dump => write_dump(out, view),
        Word::Elec => write_elections(out, view),
        Word::Envi => write_envi(out, view),
        Word::Gtmk | Word::Stmk => write!(out, "{}", view.trace_mask),
        Word::Hash => write_hash(out, view),
        Word::Isro => out.write_str(if view.mode == Mode::ReadOnly { "ro" } else { "rw" }),
        Word::Mntr => mntr::write(out, view),
        Word::Ruok => out.write_str("imok"),
        Word::Srst => writeln!(out, "Server stats reset."),
        Word::Srvr => {
            write_version(out, view)?;
            write_statistics(out, view)
        }
        Word::Stat => write_stat(out, view),
        Word::Wchc => write_watches_by_session(out, view),
        Word::Wchp => write_watches_by_path(out, view),
        Word::Wchs => write_watch_summary(out, view),
    }
}

fn write_not_serving(out: &mut String, word: Word) -> fmt::Result {
    match word {
        Word::Isro => out.write_str("null"),
        Word::Hash => out.write_str(NOT_SERVING),
        _ => writeln!(out, "{NOT_SERVING}"),
    }
}

fn write_version(out: &mut String, view: &ServerView) -> fmt::Result {
    writeln!(out, "Zookeeper version: {}", view.version)?;
    if view.mode == Mode::ReadOnly {
        writeln!(out, "READ-ONLY mode; serving only read-only clients")?;
    }
    Ok(())
}

fn write_statistics(out: &mut String, view: &ServerView) -> fmt::Result {
    let latency = view.latency;
    let mean = Double(mean_of_four_decimals(latency.sum_ms, latency.count));
    writeln!(out, "Latency min/avg/max: {}/{mean}/{}", latency.min_ms, latency.max_ms)?;
    writeln!(out, "Received: {}", view.packets_received)?;
    writeln!(out, "Sent: {}", view.packets_sent)?;
    writeln!(out, "Connections: {}", view.connections_alive)?;
    writeln!(out, "Outstanding: {}", view.outstanding)?;
    writeln!(out, "Zxid: 0x{:x}", view.zxid_last)?;
    writeln!(out, "Mode: {}", view.mode.name())?;
    writeln!(out, "Node count: {}", view.znode_count)?;
    if view.mode == Mode::Leader {
        let sizes = view.proposal_sizes;
        writeln!(out, "Proposal sizes last/min/max: {}/{}/{}", sizes.last, sizes.min, sizes.max)?;
    }
    Ok(())
}

fn write_stat(out: &mut String, view: &ServerView) -> fmt::Result {
    write_version(out, view)?;
    writeln!(out, "Clients:")?;
    for connection in &view.connections {
        connections::write_brief(out, connection)?;
    }
    writeln!(out)?;
    write_statistics(out, view)
}

fn write_cons(out: &mut String, view: &ServerView) -> fmt::Result {
    for connection in &view.connections {
        connections::write_full(out, connection)?;
    }
    writeln!(out)
}

fn write_conf(out: &mut String, view: &ServerView) -> fmt::Result {
    let conf = &view.conf;
    let secure_port = conf.secure_client_port.map_or(-1, i32::from);
    writeln!(out, "clientPort={}", conf.client_port)?;
    writeln!(out, "secureClientPort={secure_port}")?;
    writeln!(out, "dataDir={}", conf.data_dir)?;
    writeln!(out, "dataDirSize={}", view.dirs.data_dir_bytes)?;
    writeln!(out, "dataLogDir={}", conf.data_log_dir)?;
    writeln!(out, "dataLogSize={}", view.dirs.log_dir_bytes)?;
    writeln!(out, "tickTime={}", conf.tick_time_ms)?;
    writeln!(out, "maxClientCnxns={}", conf.max_client_cnxns)?;
    writeln!(out, "minSessionTimeout={}", conf.min_session_timeout_ms)?;
    writeln!(out, "maxSessionTimeout={}", conf.max_session_timeout_ms)?;
    writeln!(out, "clientPortListenBacklog={}", conf.client_port_listen_backlog)?;
    writeln!(out, "serverId={}", conf.server_id)?;
    conf.ensemble.as_ref().map_or(Ok(()), |of| write_conf_of_member(out, of))
}

/// Upstream's only election algorithm that is left.
const FAST_LEADER_ELECTION: u8 = 3;

/// The last line has no end, as upstream's has none.
fn write_conf_of_member(out: &mut String, of: &ConfOfMember) -> fmt::Result {
    let ports = |all: &[u16]| all.iter().map(u16::to_string).collect::<Vec<_>>().join("|");
    writeln!(out, "initLimit={}", of.init_limit)?;
    writeln!(out, "syncLimit={}", of.sync_limit)?;
    writeln!(out, "electionAlg={FAST_LEADER_ELECTION}")?;
    writeln!(out, "electionPort={}", ports(&of.election_ports))?;
    writeln!(out, "quorumPort={}", ports(&of.quorum_ports))?;
    writeln!(out, "peerType={}", u8::from(of.observer))?;
    let Some(membership) = &of.membership else { return Ok(()) };
    write!(out, "membership: \n{membership}")
}

fn write_dirs(out: &mut String, view: &ServerView) -> fmt::Result {
    writeln!(out, "datadir_size: {}", view.dirs.data_dir_bytes)?;
    writeln!(out, "logdir_size: {}", view.dirs.log_dir_bytes)
}

fn write_dump(out: &mut String, view: &ServerView) -> fmt::Result {
    writeln!(out, "SessionTracker dump:")?;
    write_sessions(out, view)?;
    writeln!(out, "ephemeral nodes dump:")?;
    writeln!(out, "Sessions with Ephemerals ({}):", view.ephemerals.len())?;
    for owner in &view.ephemerals {
        writeln!(out, "0x{:x}:", owner.session_id)?;
        for path in &owner.paths {
            writeln!(out, "\t{path}")?;
        }
    }
    writeln!(out, "Connections dump:")?;
    write_buckets(out, "Connections", &view.connection_expiry, |connection| {
        format!("ip: {} sessionId: 0x{:x}", Address(connection.remote), connection.session_id)
    })
}

fn write_sessions(out: &mut String, view: &ServerView) -> fmt::Result {
    let id = |id: &i64| format!("0x{id:x}");
    if let Some(local) = &view.local_session_expiry {
        write_buckets(out, "Local Session", local, id)?;
    }
    match (&view.learnt_sessions, &view.local_session_expiry) {
        (Some(sessions), _) => {
            writeln!(out, "Global Sessions({}):", sessions.len())?;
            for (session_id, timeout_ms) in sessions {
                writeln!(out, "0x{session_id:x}\t{timeout_ms}ms")?;
            }
            Ok(())
        }
        (None, Some(_)) => write_buckets(out, "Global Session", &view.session_expiry, id),
        (None, None) => write_buckets(out, "Session", &view.session_expiry, id),
    }
}

fn write_buckets<T, D: Display>(
    out: &mut String,
    what: &str,
    buckets: &[TimeBucket<T>],
    describe: impl Fn(&T) -> D,
) -> fmt::Result {
    let total: usize = buckets.iter().map(|bucket| bucket.members.len()).sum();
    writeln!(out, "{what} Sets ({})/({total}):", buckets.len())?;
    for bucket in buckets {
        let at = Date { wall_ms: bucket.expires_at_wall_ms };
        writeln!(out, "{} expire at {at}:", bucket.members.len())?;
        for member in &bucket.members {
            writeln!(out, "\t{}", describe(member))?;
        }
    }
    Ok(())
}

fn write_elections(out: &mut String, view: &ServerView) -> fmt::Result {
    writeln!(out, "{}", serde_json::to_string(&view.elections).map_err(|_| fmt::Error)?)
}

fn write_envi(out: &mut String, view: &ServerView) -> fmt::Result {
    writeln!(out, "Environment:")?;
    for (key, value) in &view.environment {
        writeln!(out, "{key}={value}")?;
    }
    Ok(())
}

fn write_hash(out: &mut String, view: &ServerView) -> fmt::Result {
    for entry in &view.digests {
        // A digest is an unsigned sum to us; Java keeps it in a signed long and prints it as such.
        writeln!(out, "{:x}: {}", entry.zxid, entry.digest as i64)?;
    }
    Ok(())
}

fn write_watches_by_session(out: &mut String, view: &ServerView) -> fmt::Result {
    for watcher in &view.watches {
        writeln!(out, "0x{:x}", watcher.session_id)?;
        for path in &watcher.paths {
            writeln!(out, "\t{path}")?;
        }
    }
    writeln!(out)
}

fn write_watches_by_path<'a>(out: &mut String, view: &'a ServerView) -> fmt::Result {
    let of = |watcher: &'a WatchesOfSession| watcher.paths.iter().map(|path| (&**path, watcher.session_id));
    let mut all: Vec<(&str, i64)> = view.watches.iter().flat_map(of).collect();
    all.sort_unstable();
    all.dedup();
    for watched in all.chunk_by(|one, next| one.0 == next.0) {
        writeln!(out, "{}", watched[0].0)?;
        for (_, session_id) in watched {
            writeln!(out, "\t0x{session_id:x}")?;
        }
    }
    writeln!(out)
}

fn write_watch_summary(out: &mut String, view: &ServerView) -> fmt::Result {
    let (connections, paths, total) = view.watch_summary;
    writeln!(out, "{connections} connections watching {paths} paths")?;
    writeln!(out, "Total watches:{total}")
}
