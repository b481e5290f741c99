//! Judges the states of the servers of an ensemble: what is wrong, and the way out.

use super::state::{Observed, ServerKind, ServerState};
use ostler_proto::id::Zxid;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gravity {
    /// Clients are not served, or data are in danger.
    Grave,
    /// Something will be wrong soon, or is slow.
    Warning,
    /// Worth knowing.
    Note,
}

impl Gravity {
    /// The word before a finding in a text.
    pub fn name(self) -> &'static str {
        match self {
            Gravity::Grave => "WRONG",
            Gravity::Warning => "warning",
            Gravity::Note => "note",
        }
    }
}

/// A finding: what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub gravity: Gravity,
    /// The thing that is wrong.
    pub sentence: String,
    /// The act that mends it; empty if there is nothing to do.
    pub way_out: String,
    /// The servers that it is about.
    pub servers: Vec<i64>,
}

impl Finding {
    /// Both sentences.
    pub fn text(&self) -> String {
        format!("{} {}", self.sentence, self.way_out).trim_end().to_owned()
    }
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
/// A disk counts as full if less than this share of it is free, and less than [`DISK_FREE_BYTES`].
const DISK_FREE: f64 = 0.1;
const DISK_FREE_BYTES: u64 = 10 << 30;

/// A server that has answered, with the name by which it was asked.
pub(crate) type Up<'a> = (&'a str, &'a ServerState);

/// All findings, the gravest first.
pub fn findings(all: &[Observed]) -> Vec<Finding> {
    let mut found = Findings::default();
    let up = up(all);
    for observed in all {
        if let Err(problem) = &observed.answer {
            let sentence = format!("{} {}.", observed.url, problem.trim_end_matches('.'));
            let way_out = "Look whether its server runs, and whether this machine reaches its admin port.";
            found.add(Gravity::Warning, sentence, way_out, observed.id);
        }
    }
    let asked: BTreeSet<i64> = all.iter().filter_map(|observed| observed.id).collect();
    quorum(&up, &asked, &mut found);
    identities(&up, &mut found);
    differences(&up, &mut found);
    for (_, server) in &up {
        of_server(server, &mut found);
    }
    found.all.sort_by_key(|finding| finding.gravity);
    found.all
}

pub(crate) fn up(all: &[Observed]) -> Vec<Up<'_>> {
    all.iter().filter_map(|observed| Some((&*observed.url, observed.answer.as_ref().ok()?))).collect()
}

#[derive(Default)]
struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    fn add(
        &mut self,
        gravity: Gravity,
        sentence: impl Into<String>,
        way_out: impl Into<String>,
        servers: impl IntoIterator<Item = i64>,
    ) {
        let (sentence, way_out, servers) = (sentence.into(), way_out.into(), servers.into_iter().collect());
        self.all.push(Finding { gravity, sentence, way_out, servers });
    }
}

fn name(server: &ServerState) -> String {
    if server.id == 0 { "The server".into() } else { format!("Server {}", server.id) }
}

/// Whether a quorum works together, and what it would take to lose it. `asked` are servers that surely were asked.
fn quorum(up: &[Up<'_>], asked: &BTreeSet<i64>, found: &mut Findings) {
    let count = super::verdict::count(up);
    let missing: Vec<String> =
        count.missing.iter().map(|(id, address)| format!("{id} ({address})")).collect();
    let ids = || count.missing.iter().map(|(id, _)| *id);
    if count.voters > 0 && count.leader.is_none() && count.present < count.needed {
        found.add(
            Gravity::Grave,
            format!(
                "No server leads, so no client can write: {} of {} voters have to work together, and these do not: {}.",
                count.needed,
                count.voters,
                missing.join(", ")
            ),
            "Start them; if they run, look whether they reach each other's ports 2888 and 3888 (`ostler explain election` \
             shows their votes).",
            ids(),
        );
    } else if !missing.is_empty() && up.len() > 1 {
        let then = match count.may_fail {
            0 => "if one more fails, nobody can write".to_owned(),
            spare => format!("{spare} more may fail before nobody can write"),
        };
        let (maybe, way_out) = match ids().all(|id| asked.contains(&id)) {
            true => ("", "Start them; if they run, look whether they reach the leader."),
            false => (", or were not asked", "Start them, or name their admin servers, too."),
        };
        let missing = missing.join(", ");
        found.add(
            Gravity::Warning,
            format!("These voters do not work with the others{maybe}: {missing}; {then}."),
            way_out,
            ids(),
        );
    }
    if count.voters > 0 && count.voters.is_multiple_of(2) {
        let sentence = format!("There are {} voters: one less would survive as many failures.", count.voters);
        found.add(Gravity::Note, sentence, "", None);
    }
    for (_, server) in up.iter().filter(|(_, server)| server.mode == "read-only" || !server.serves) {
        let who = name(server);
        let (sentence, way_out) = match &*server.stage {
            "discovery" => (
                format!("{who} has found its leader, and does not have its history yet."),
                "Wait: it serves once it does.",
            ),
            _ => {
                let whom = if server.mode == "read-only" { "only clients that read" } else { "nobody" };
                (format!("{who} looks for a leader, and serves {whom}."), "")
            }
        };
        found.add(Gravity::Grave, sentence, way_out, [server.id]);
    }
}

/// A connection between two servers that should be there and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLink {
    /// The server that misses it.
    pub from: i64,
    /// The other one.
    pub to: i64,
    /// The port: `election` or `quorum`.
    pub port: &'static str,
    /// Why it cannot be had.
    pub error: Option<String>,
}

impl MissingLink {
    /// The finding, if both servers run.
    pub fn finding(&self) -> Finding {
        let MissingLink { from, to, port, error } = self;
        let why = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
        Finding {
            gravity: Gravity::Warning,
            sentence: format!("Server {from} has no connection to server {to} at the {port} port{why}."),
            way_out: "Look at the network and the firewall between the two.".into(),
            servers: vec![*from, *to],
        }
    }
}

/// Whether each number stands for one server.
fn identities(up: &[Up<'_>], found: &mut Findings) {
    let mut by_id: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for (url, server) in up.iter().filter(|(_, server)| server.id != 0) {
        by_id.entry(server.id).or_default().push(url);
    }
    for (id, urls) in by_id.into_iter().filter(|(_, urls)| urls.len() > 1) {
        found.add(
            Gravity::Grave,
            format!("Two servers say that they are server {id}: {}.", urls.join(" and ")),
            "If these are two servers, give one of them its own number in the file myid.",
            [id],
        );
    }
}

/// Looks at values that should be the same at all servers.
fn differences(up: &[Up<'_>], found: &mut Findings) {
    versions(up, found);
    let views: BTreeSet<&BTreeMap<i64, String>> =
        up.iter().map(|(_, server)| &server.voters).filter(|view| !view.is_empty()).collect();
    let configs: BTreeSet<&str> =
        up.iter().filter_map(|(_, server)| server.config_version.as_deref()).collect();
    let ids = || up.iter().map(|(_, server)| server.id);
    if views.len() > 1 {
        found.add(
            Gravity::Warning,
            "The servers have different lists of voters.",
            "Compare the server.N lines of their zoo.cfg, or wait for a reconfiguration that is under way.",
            ids(),
        );
    } else if configs.len() > 1 {
        let all: Vec<&str> = configs.into_iter().collect();
        found.add(
            Gravity::Warning,
            format!("The servers have different versions of the configuration: {}.", all.join(", ")),
            "Wait for a reconfiguration that is under way; if it stays so, restart the server that is behind.",
            ids(),
        );
    }
    digests(up, found);
    let leader = up.iter().find(|(_, server)| server.mode == "leader" && server.serves);
    for (_, server) in up {
        if let Some((_, leader)) = leader
            && let Some(behind) = transactions_behind(server, leader).filter(|behind| *behind > BEHIND)
        {
            found.add(
                Gravity::Warning,
                format!("{} is {behind} transactions behind the leader.", name(server)),
                "Look at its disk and its network.",
                [server.id],
            );
        }
        let off = server.clock_off_ms.saturating_abs();
        if off > CLOCK_MS.max(server.clock_unsure_ms) {
            let sentence = format!(
                "The clock of {} differs from this machine's by {:.1} s.",
                name(server).to_lowercase(),
                server.clock_off_ms as f64 / 1000.0
            );
            found.add(Gravity::Warning, sentence, "Run NTP on both.", [server.id]);
        }
    }
}

/// How far a server is behind its leader; `None` if one of them does not serve, or they are in different epochs.
pub fn transactions_behind(server: &ServerState, leader: &ServerState) -> Option<u64> {
    if !server.serves || !leader.serves {
        return None;
    }
    if leader.zxid.0 >> 32 == server.zxid.0 >> 32 {
        return Some(leader.zxid.0.saturating_sub(server.zxid.0));
    }
    // A server that takes part in an epoch has all of those before it.
    let is_new = server.epoch.is_some() && server.epoch == leader.epoch && server.zxid < leader.zxid;
    is_new.then_some(leader.zxid.0 & 0xffff_ffff)
}

fn versions(up: &[Up<'_>], found: &mut Findings) {
    let of_kind = |kind: ServerKind| -> BTreeSet<&str> {
        up.iter().filter(|(_, server)| server.kind == kind).map(|(_, server)| &*server.version).collect()
    };
    let (ostler, java) = (of_kind(ServerKind::Ostler), of_kind(ServerKind::Java));
    let unknown = of_kind(ServerKind::Unknown);
    let all: Vec<&str> =
        ostler.iter().chain(&java).chain(&unknown).copied().filter(|of| !of.is_empty()).collect();
    if !ostler.is_empty() && !java.is_empty() {
        let ids =
            up.iter().filter(|(_, server)| server.kind == ServerKind::Java).map(|(_, server)| server.id);
        found.add(
            Gravity::Note,
            format!("Ostler and ZooKeeper in Java work together: {}.", all.join(", ")),
            "Java's servers are shown by their four-letter words (srvr, mntr, conf).",
            ids,
        );
    } else if all.len() > 1 {
        let ids = up.iter().map(|(_, server)| server.id);
        let sentence = format!("The servers have different versions: {}.", all.join(", "));
        found.add(Gravity::Note, sentence, "Finish the upgrade.", ids);
    }
}

/// Trees of the same transaction have the same digest.
fn digests(up: &[Up<'_>], found: &mut Findings) {
    let mut by_zxid: BTreeMap<Zxid, BTreeMap<&str, Vec<i64>>> = BTreeMap::new();
    for (_, server) in up {
        for digest in &server.digests {
            by_zxid.entry(digest.zxid).or_default().entry(&digest.value).or_default().push(server.id);
        }
    }
    let differing = by_zxid.into_iter().rev().find(|(_, values)| values.len() > 1);
    if let Some((zxid, values)) = differing {
        found.add(
            Gravity::Grave,
            format!("The trees of the servers differ: at zxid 0x{:x} their digests are not the same.", zxid.0),
            "Find the server that is alone with its digest, stop it, move its data folder away, and let it copy the data again.",
            values.into_values().flatten(),
        );
    }
}

/// Looks at one server's figures.
fn of_server(server: &ServerState, found: &mut Findings) {
    let who = name(server);
    let figure = |name: &str| server.figure(name);
    let mut add =
        |gravity, sentence: String, way_out: &str| found.add(gravity, sentence, way_out, [server.id]);
    if figure("digest_mismatches_count") > 0.0 {
        add(
            Gravity::Grave,
            format!(
                "{who} has found its tree to differ from the leader's ({} times).",
                figure("digest_mismatches_count")
            ),
            "Stop it, move its data folder away, and let it copy the data again.",
        );
    }
    if figure("unrecoverable_error_count") > 0.0 {
        add(Gravity::Grave, format!("{who} has met an error that it cannot mend."), "Read its log.");
    }
    if let Some(disk) = server.disk
        && (disk.free_bytes as f64) < disk.total_bytes as f64 * DISK_FREE
        && disk.free_bytes < DISK_FREE_BYTES
    {
        let percent = disk.free_bytes as f64 * 100.0 / (disk.total_bytes as f64).max(1.0);
        add(
            Gravity::Warning,
            format!("The disk of {} is nearly full: {percent:.0}% are free.", who.to_lowercase()),
            "Purge old snapshots and logs (autopurge.purgeInterval), or make the disk larger: a server whose log cannot be \
             written ends.",
        );
    }
    let slow_syncs = figure("p99_sync_processor_queue_flush_time_ms");
    if slow_syncs >= SLOW_SYNC_MS {
        add(
            Gravity::Warning,
            format!(
                "The disk of {} is slow: one of a hundred syncs of the log takes {slow_syncs} ms or more, and writes wait for it.",
                who.to_lowercase()
            ),
            "Give dataLogDir a disk of its own (`ostler bench disk`).",
        );
    }
    if let Some(before) = server.disk_stalled_before_ms.filter(|before| *before < LATELY_MS) {
        add(
            Gravity::Warning,
            format!(
                "The disk of {} stood still, last {} s ago: sessions may have been lost by it.",
                who.to_lowercase(),
                before / 1000
            ),
            "Look for another program that uses the disk, or give dataLogDir a disk of its own.",
        );
    }
    if let Some(before) = server.paused_before_ms.filter(|before| *before < LATELY_MS) {
        add(
            Gravity::Warning,
            format!("{who} did not run for a while, last {} s ago.", before / 1000),
            "Look for swapping, a paused machine, or a limit of its control group.",
        );
    }
    loads(server, &who, &mut add);
    if server.expired > 0 {
        add(
            Gravity::Note,
            format!(
                "At {} {} sessions expired in the last five minutes.",
                who.to_lowercase(),
                server.expired
            ),
            "`ostler explain session ID` tells why; /commands/session_ends has the ids.",
        );
    }
}

/// Figures that come near a limit.
fn loads(server: &ServerState, who: &str, add: &mut impl FnMut(Gravity, String, &str)) {
    let figure = |name: &str| server.figure(name);
    if figure("snapshot_error_count") > 0.0 {
        add(
            Gravity::Warning,
            format!("{who} could not write {} snapshots, so its log grows.", figure("snapshot_error_count")),
            "Look for free space in dataDir.",
        );
    }
    let descriptors = figure("open_file_descriptor_count") / figure("max_file_descriptor_count").max(1.0);
    if descriptors > DESCRIPTORS {
        add(
            Gravity::Warning,
            format!("{who} uses {:.0}% of the files that it may open.", descriptors * 100.0),
            "Raise its limit (LimitNOFILE, ulimit -n) above the number of clients.",
        );
    }
    if figure("connection_rejected") > 0.0 {
        add(
            Gravity::Warning,
            format!("{who} has refused {} connections.", figure("connection_rejected")),
            "See maxClientCnxns, maxCnxns and the throttles of connections.",
        );
    }
    if figure("outstanding_requests") > OUTSTANDING {
        add(
            Gravity::Warning,
            format!("{who} has {} requests under way.", figure("outstanding_requests")),
            "Look at its slow requests (/commands/slow_requests) and its hot paths (/commands/hot_paths).",
        );
    }
    if figure("max_client_response_size") > LARGE_ANSWER {
        add(
            Gravity::Warning,
            format!(
                "{who} has sent an answer of {} bytes. Clients take up to jute.maxbuffer (1,048,575 unless set), so a list of \
                 children will soon be too long to be read.",
                figure("max_client_response_size")
            ),
            "/commands/hot_paths shows where.",
        );
    }
}
