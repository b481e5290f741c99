//! Judges the states of the servers of an ensemble: what is wrong, and the way out.

use super::observed::{Observed, ServerState};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Gravity {
    /// Clients are not served, or data are in danger.
    Grave,
    /// Something will be wrong soon, or is slow.
    Warning,
    /// Worth knowing.
    Note,
}

impl Gravity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Gravity::Grave => "WRONG",
            Gravity::Warning => "warning",
            Gravity::Note => "note",
        }
    }
}

/// A finding: what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) gravity: Gravity,
    pub(super) text: String,
}

/// Clocks may differ by this without a word.
const CLOCK_MS: i64 = 2_000;
/// A pause or a stall of the disk counts for this time.
const LATELY_MS: i64 = 600_000;
/// A follower that is this number of transactions behind is named.
const BEHIND: u64 = 10_000;
/// Bytes of an answer near `jute.maxbuffer`, which is 1,048,575 unless it is set.
const LARGE_ANSWER: f64 = 900_000.0;
/// Requests under way from which on a server counts as loaded.
const OUTSTANDING: f64 = 1_000.0;
/// A slow sync of the log, ms, in one of a hundred.
const SLOW_SYNC_MS: f64 = 100.0;
/// The share of descriptors from which on more are needed.
const DESCRIPTORS: f64 = 0.8;

/// All findings, the gravest first.
pub(super) fn findings(all: &[Observed]) -> Vec<Finding> {
    let mut found = Findings::default();
    let up: Vec<(&str, &ServerState)> =
        all.iter().filter_map(|observed| Some((&*observed.url, observed.answer.as_ref().ok()?))).collect();
    for observed in all {
        if let Err(problem) = &observed.answer {
            found.add(
                Gravity::Warning,
                format!("{} {problem}. Look whether its server runs, and whether this machine reaches its admin port", observed.url),
            );
        }
    }
    quorum(&up, &mut found);
    differences(&up, &mut found);
    for (_, server) in &up {
        of_server(server, &mut found);
    }
    found.all.sort_by_key(|finding| finding.gravity);
    found.all
}

#[derive(Default)]
struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, gravity: Gravity, text: impl Into<String>) {
        self.all.push(Finding { gravity, text: text.into() });
    }
}

fn name(server: &ServerState) -> String {
    if server.id == 0 { "The server".into() } else { format!("Server {}", server.id) }
}

/// Whether a quorum works together, and what it would take to lose it.
fn quorum(up: &[(&str, &ServerState)], found: &mut Findings) {
    let voters: BTreeMap<i64, String> = up.iter().flat_map(|(_, server)| server.voters.clone()).collect();
    if voters.is_empty() {
        return;
    }
    let needed = voters.len() / 2 + 1;
    let works = |id: &i64| {
        up.iter().any(|(_, server)| server.id == *id && server.serves && server.mode != "read-only")
    };
    let working: Vec<i64> = voters.keys().copied().filter(works).collect();
    let missing: Vec<String> =
        voters.iter().filter(|(id, _)| !works(id)).map(|(id, address)| format!("{id} ({address})")).collect();
    let leads = up.iter().any(|(_, server)| server.mode == "leader" && server.serves);
    if !leads && working.len() < needed {
        found.add(
            Gravity::Grave,
            format!(
                "No server leads, so no client can write: {needed} of {} voters have to work together, and these do not: {}. \
                 Start them; if they run, look whether they reach each other's ports 2888 and 3888 (`ostler explain \
                 election` shows their votes)",
                voters.len(),
                missing.join(", ")
            ),
        );
    } else if !missing.is_empty() && up.len() > 1 {
        let spare = working.len().saturating_sub(needed);
        let then = match spare {
            0 => "if one more fails, nobody can write".to_owned(),
            spare => format!("{spare} more may fail before nobody can write"),
        };
        found.add(
            Gravity::Warning,
            format!("These voters do not work with the others, or were not asked: {}; {then}. Start them, or name their admin \
                     servers, too", missing.join(", ")),
        );
    }
    if voters.len().is_multiple_of(2) {
        found.add(
            Gravity::Note,
            format!("There are {} voters: one less would survive as many failures", voters.len()),
        );
    }
    for (_, server) in up.iter().filter(|(_, server)| server.mode == "read-only" || !server.serves) {
        found.add(
            Gravity::Grave,
            match &*server.stage {
                "discovery" => format!(
                    "{} has found its leader, and does not have its history yet: it serves once it does",
                    name(server)
                ),
                _ => format!(
                    "{} looks for a leader, and serves {}",
                    name(server),
                    if server.mode == "read-only" { "only clients that read" } else { "nobody" }
                ),
            },
        );
    }
}

/// Looks at values that should be the same at all servers.
fn differences(up: &[(&str, &ServerState)], found: &mut Findings) {
    let versions: BTreeSet<&str> = up.iter().map(|(_, server)| &*server.version).collect();
    if versions.len() > 1 {
        let all: Vec<&str> = versions.into_iter().collect();
        found.add(
            Gravity::Note,
            format!("The servers have different versions: {}. Finish the upgrade", all.join(", ")),
        );
    }
    let views: BTreeSet<&BTreeMap<i64, String>> =
        up.iter().map(|(_, server)| &server.voters).filter(|view| !view.is_empty()).collect();
    if views.len() > 1 {
        found.add(
            Gravity::Warning,
            "The servers have different lists of voters: compare the server.N lines of their zoo.cfg, or wait for a \
             reconfiguration that is under way",
        );
    }
    let leader = up.iter().find(|(_, server)| server.mode == "leader" && server.serves);
    for (_, server) in up {
        if let Some((_, leader)) = leader
            && server.serves
            && leader.zxid >> 32 == server.zxid >> 32
            && leader.zxid.saturating_sub(server.zxid) > BEHIND
        {
            let behind = leader.zxid - server.zxid;
            found.add(
                Gravity::Warning,
                format!(
                    "{} is {behind} transactions behind the leader: look at its disk and its network",
                    name(server)
                ),
            );
        }
        if server.clock_off_ms.abs() > CLOCK_MS {
            found.add(
                Gravity::Warning,
                format!(
                    "The clock of {} differs from this machine's by {:.1} s: run NTP on both",
                    name(server).to_lowercase(),
                    server.clock_off_ms as f64 / 1000.0
                ),
            );
        }
    }
}

/// Looks at one server's figures.
fn of_server(server: &ServerState, found: &mut Findings) {
    let who = name(server);
    let figure = |name: &str| server.figure(name);
    if figure("digest_mismatches_count") > 0.0 {
        found.add(
            Gravity::Grave,
            format!("{who} has found its tree to differ from the leader's ({} times): stop it, move its data folder away, and let it copy the data again", figure("digest_mismatches_count")),
        );
    }
    if figure("unrecoverable_error_count") > 0.0 {
        found.add(Gravity::Grave, format!("{who} has met an error that it cannot mend: read its log"));
    }
    let slow_syncs = figure("p99_sync_processor_queue_flush_time_ms");
    if slow_syncs >= SLOW_SYNC_MS {
        found.add(
            Gravity::Warning,
            format!("The disk of {} is slow: one of a hundred syncs of the log takes {slow_syncs} ms or more, and writes wait for it. Give dataLogDir a disk of its own (`ostler bench disk`)", who.to_lowercase()),
        );
    }
    if let Some(before) = server.disk_stalled_before_ms.filter(|before| *before < LATELY_MS) {
        found.add(
            Gravity::Warning,
            format!(
                "The disk of {} stood still, last {} s ago: sessions may have been lost by it",
                who.to_lowercase(),
                before / 1000
            ),
        );
    }
    if let Some(before) = server.paused_before_ms.filter(|before| *before < LATELY_MS) {
        found.add(Gravity::Warning, format!("{who} did not run for a while, last {} s ago: look for swapping, a paused machine, or a limit of its control group", before / 1000));
    }
    if figure("snapshot_error_count") > 0.0 {
        found.add(
            Gravity::Warning,
            format!(
                "{who} could not write {} snapshots, so its log grows: look for free space in dataDir",
                figure("snapshot_error_count")
            ),
        );
    }
    let descriptors = figure("open_file_descriptor_count") / figure("max_file_descriptor_count").max(1.0);
    if descriptors > DESCRIPTORS {
        found.add(Gravity::Warning, format!("{who} uses {:.0}% of the files that it may open: raise its limit (LimitNOFILE, ulimit -n) above the number of clients", descriptors * 100.0));
    }
    if figure("connection_rejected") > 0.0 {
        found.add(Gravity::Warning, format!("{who} has refused {} connections: see maxClientCnxns, maxCnxns and the throttles of connections", figure("connection_rejected")));
    }
    if figure("outstanding_requests") > OUTSTANDING {
        found.add(Gravity::Warning, format!("{who} has {} requests under way: look at its slow requests (/commands/slow_requests) and its hot paths (/commands/hot_paths)", figure("outstanding_requests")));
    }
    if figure("max_client_response_size") > LARGE_ANSWER {
        found.add(Gravity::Warning, format!("{who} has sent an answer of {} bytes. Clients take up to jute.maxbuffer (1,048,575 unless set), so a list of children will soon be too long to be read: /commands/hot_paths shows where", figure("max_client_response_size")));
    }
    if server.expired > 0 {
        found.add(Gravity::Note, format!("At {} {} sessions expired in the last five minutes: `ostler explain session ID` tells why; /commands/session_ends has the ids", who.to_lowercase(), server.expired));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voters() -> BTreeMap<i64, String> {
        (1..=3).map(|id| (id, format!("h{id}:2888"))).collect()
    }

    fn server(id: i64, mode: &str) -> ServerState {
        ServerState {
            id,
            mode: mode.into(),
            serves: mode != "looking",
            stage: if mode == "looking" { "election" } else { "broadcast" }.into(),
            voters: voters(),
            ..ServerState::default()
        }
    }

    fn of(servers: Vec<ServerState>) -> Vec<Finding> {
        let observed =
            |state: ServerState| Observed { url: format!("http://h{}:8080", state.id), answer: Ok(state) };
        findings(&servers.into_iter().map(observed).collect::<Vec<_>>())
    }

    fn all_well() -> Vec<ServerState> {
        vec![server(1, "follower"), server(2, "leader"), server(3, "follower")]
    }

    #[track_caller]
    fn only(servers: Vec<ServerState>, gravity: Gravity, part: &str) {
        let found = of(servers);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].gravity, gravity);
        assert!(found[0].text.contains(part), "{}", found[0].text);
    }

    #[test]
    fn nothing_is_found_where_nothing_is_wrong() {
        assert_eq!(of(all_well()), []);
        assert_eq!(
            of(vec![ServerState { serves: true, mode: "standalone".into(), ..ServerState::default() }]),
            []
        );
    }

    #[test]
    fn a_lost_quorum_is_named_with_the_missing_voters() {
        let found = of(vec![server(1, "looking")]);
        assert!(
            found[0].text.contains("2 of 3 voters have to work together")
                && found[0].text.contains("2 (h2:2888), 3 (h3:2888)"),
            "{found:?}"
        );
        assert!(found.iter().any(|finding| finding.text.contains("looks for a leader")), "{found:?}");
    }

    #[test]
    fn a_missing_voter_is_a_warning_as_long_as_there_is_a_quorum() {
        only(
            vec![server(1, "follower"), server(2, "leader")],
            Gravity::Warning,
            "if one more fails, nobody can write",
        );
    }

    #[test]
    fn each_figure_out_of_bounds_is_a_finding() {
        for (figure, value, gravity, part) in [
            ("digest_mismatches_count", 1.0, Gravity::Grave, "tree to differ"),
            ("p99_sync_processor_queue_flush_time_ms", 500.0, Gravity::Warning, "disk of server 1 is slow"),
            ("snapshot_error_count", 2.0, Gravity::Warning, "could not write 2 snapshots"),
            ("connection_rejected", 3.0, Gravity::Warning, "refused 3 connections"),
            ("outstanding_requests", 5000.0, Gravity::Warning, "5000 requests under way"),
            ("max_client_response_size", 1_000_000.0, Gravity::Warning, "too long to be read"),
            ("open_file_descriptor_count", 100.0, Gravity::Warning, "files that it may open"),
        ] {
            let mut servers = all_well();
            servers[0].figures =
                BTreeMap::from([(figure.into(), value), ("max_file_descriptor_count".into(), 110.0)]);
            only(servers, gravity, part);
        }
    }

    #[test]
    fn what_differs_between_servers_is_a_finding() {
        let changed = |change: fn(&mut ServerState)| {
            let mut servers = all_well();
            change(&mut servers[0]);
            servers
        };
        only(
            changed(|server| server.clock_off_ms = -60_000),
            Gravity::Warning,
            "differs from this machine's by -60.0 s",
        );
        only(changed(|server| server.version = "x".into()), Gravity::Note, "different versions");
        only(
            changed(|server| server.paused_before_ms = Some(5000)),
            Gravity::Warning,
            "did not run for a while, last 5 s ago",
        );
        only(changed(|server| server.disk_stalled_before_ms = Some(5000)), Gravity::Warning, "stood still");
        only(changed(|server| server.expired = 4), Gravity::Note, "4 sessions expired");
        let mut servers = all_well();
        servers[1].zxid = 20_000;
        (servers[0].zxid, servers[2].zxid) = (1, 20_000);
        only(servers, Gravity::Warning, "19999 transactions behind");
    }
}
