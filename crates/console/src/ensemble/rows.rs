//! The rows of the page, and the checks of those that come from other servers.

use super::{OwnPart, links::LinkRow, own};
use crate::{fan_out::Silence, state::Console};
use ostler_explain::ensemble::{
    DigestAt, DiskSpace, ServerKind, ServerState, findings::transactions_behind, four_letter::host_and_port,
};
use ostler_proto::{id::ServerId, membership::Membership};
use ostler_server_core::quorum::election_history::EpochTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest text that is taken from another server.
const TEXT_MAX: usize = 256;
/// The most entries of a list that are taken from another server.
const LIST_MAX: usize = 512;
/// The most figures.
const FIGURES_MAX: usize = 2_000;
/// The shortest name of an ensemble that is shortened.
const NAME_MAX: usize = 60;
/// Times above this are none.
const MS_MAX: i64 = 1 << 50;

/// A member.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) id: i64,
    name: String,
    state: &'static str,
    reason: Option<String>,
    kind: ServerKind,
    version: Option<String>,
    role: Option<&'static str>,
    is_voter: Option<bool>,
    address: Option<String>,
    admin: Option<String>,
    epoch: Option<u32>,
    zxid: Option<String>,
    lag: Option<Lag>,
    clients: Option<u64>,
    sessions: Option<u64>,
    uptime_ms: Option<u64>,
    znodes: Option<u64>,
    digest: Option<DigestAt>,
    disk: Option<DiskSpace>,
    config_version: Option<String>,
    clock_off_ms: Option<i64>,
}

/// How far a server is behind its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Lag {
    txns: u64,
    /// Known only if it is not behind.
    ms: Option<u64>,
}

/// A time in which a server led.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EpochRow {
    pub(crate) leader: i64,
    pub(crate) epoch: u32,
    pub(crate) from_ms: i64,
    pub(crate) to_ms: Option<i64>,
}

impl Row {
    fn empty(id: i64, name: String, state: &'static str, reason: Option<String>) -> Row {
        Row {
            id,
            name,
            state,
            reason,
            kind: ServerKind::Unknown,
            version: None,
            role: None,
            is_voter: None,
            address: None,
            admin: None,
            epoch: None,
            zxid: None,
            lag: None,
            clients: None,
            sessions: None,
            uptime_ms: None,
            znodes: None,
            digest: None,
            disk: None,
            config_version: None,
            clock_off_ms: None,
        }
    }

    /// A server that has answered.
    pub(crate) fn answered(id: i64, name: String, state: &ServerState) -> Row {
        let is_clock_off = state.clock_off_ms.saturating_abs() > state.clock_unsure_ms;
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Row {
            kind: state.kind,
            version: text(&state.version),
            role: state.role(),
            address: state.address.clone(),
            admin: state.admin.clone(),
            epoch: state.epoch,
            zxid: Some(format!("0x{:x}", state.zxid.0)),
            clients: state.count("num_alive_connections"),
            sessions: state.count("global_sessions"),
            uptime_ms: state.count("uptime"),
            znodes: state.count("znode_count"),
            digest: state.digests.last().cloned(),
            disk: state.disk,
            config_version: state.config_version.clone(),
            clock_off_ms: Some(if is_clock_off { state.clock_off_ms } else { 0 }),
            ..Row::empty(id, name, "answered", None)
        }
    }

    /// A server that has answered by its four-letter words only.
    pub(crate) fn by_words(id: i64, name: String, state: &ServerState, silence: &Silence) -> Row {
        let is_java = state.kind == ServerKind::Java;
        let reason = match is_java {
            true => {
                "It is a server of Java: this is what its four-letter words (srvr, mntr, conf) tell.".into()
            }
            false => format!("{} This is what its four-letter words tell.", silence.reason),
        };
        Row {
            state: if is_java { "java" } else { "answered" },
            reason: Some(reason),
            // At least that of its last transaction.
            epoch: Some((state.zxid.0 >> 32) as u32).filter(|epoch| *epoch > 0),
            clock_off_ms: None,
            ..Row::answered(id, name, state)
        }
    }

    /// A server that has not answered.
    pub(crate) fn silent(id: i64, name: String, silence: &Silence) -> Row {
        // A port without a console whose words tell nothing either.
        let silence = Silence { kind: silence.kind.without_words(), reason: silence.reason.clone() };
        Row::empty(id, name, silence.state(), Some(silence.reason))
    }

    /// Adds how far it is behind the leader.
    pub(crate) fn compare(&mut self, state: Option<&ServerState>, leader: Option<&ServerState>) {
        let behind = state.zip(leader).and_then(|(state, leader)| transactions_behind(state, leader));
        self.lag = behind.map(|txns| Lag { txns, ms: (txns == 0).then_some(0) });
    }

    /// Adds what the configuration in force says.
    pub(crate) fn add_configured(&mut self, membership: Option<&Membership>) {
        let Some(membership) = membership else { return };
        let id = ServerId(self.id);
        self.is_voter = Some(membership.votes(id));
        let configured = membership.servers.get(&id).and_then(|member| member.addresses.first());
        if self.address.is_none() {
            self.address = configured.map(|address| host_and_port(&address.host, address.quorum_port));
        }
    }
}

impl EpochRow {
    pub(crate) fn of(time: &EpochTime) -> EpochRow {
        EpochRow { leader: time.leader.0, epoch: time.epoch.0, from_ms: time.from_ms, to_ms: time.to_ms }
    }
}

/// The epochs that all servers tell of, the oldest first. An epoch lasts as long as somebody took part in it.
pub(crate) fn epochs<'a>(all: impl Iterator<Item = &'a EpochRow>) -> Vec<EpochRow> {
    let mut by_epoch: BTreeMap<(u32, i64), EpochRow> = BTreeMap::new();
    for row in all {
        let known = by_epoch.entry((row.epoch, row.leader)).or_insert_with(|| row.clone());
        known.from_ms = known.from_ms.min(row.from_ms);
        known.to_ms = known.to_ms.zip(row.to_ms).map(|(one, other)| one.max(other));
    }
    let mut rows: Vec<EpochRow> = by_epoch.into_values().collect();
    // A server that went on with its old leader for a moment does not make that epoch last.
    for at in 1..rows.len() {
        let next = rows[at].from_ms;
        let before = &mut rows[at - 1];
        before.to_ms = Some(before.to_ms.map_or(next, |to| to.min(next)));
    }
    rows
}

/// The sorted list of the members' hosts, shortened; with ports if several are on one host.
pub(crate) fn ensemble_name(console: &Console, membership: Option<&Membership>) -> String {
    let Some(membership) = membership else {
        let place = console.handle.own_place();
        return host_and_port(&place.admin.ip().to_string(), place.client_port);
    };
    let hosts = own::hosts(membership);
    let is_one = |at: usize| hosts.iter().filter(|(host, _)| *host == hosts[at].0).count() == 1;
    // On one machine the host is said once.
    let is_all = |at: usize| at > 0 && hosts.iter().all(|(host, _)| *host == hosts[0].0);
    let named = |(at, (host, port)): (usize, &(String, u16))| match (is_one(at), is_all(at)) {
        (true, _) => host.clone(),
        (false, true) => port.to_string(),
        (false, false) => host_and_port(host, *port),
    };
    let names: Vec<String> = hosts.iter().enumerate().map(named).collect();
    shortened(&names)
}

fn shortened(names: &[String]) -> String {
    let whole = names.join(", ");
    if whole.len() <= NAME_MAX {
        return whole;
    }
    let mut short = String::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 && short.len() + name.len() > NAME_MAX {
            return format!("{short}, and {} more", names.len() - at);
        }
        short = if at == 0 { name.chars().take(NAME_MAX).collect() } else { format!("{short}, {name}") };
    }
    short
}

/// The answer of another server about itself, with texts and lists of a sane length. `None` if it is about another server.
pub(super) fn checked(part: OwnPart, id: i64) -> Option<OwnPart> {
    let OwnPart { as_of_ms, states, links, epochs } = part;
    let state = states.into_iter().next().filter(|state| state.id == id)?;
    let is_time = |ms: &i64| ms.saturating_abs() <= MS_MAX;
    let link = |link: LinkRow| (link.from == id).then(|| link.bounded());
    Some(OwnPart {
        as_of_ms: Some(as_of_ms).filter(is_time)?,
        states: vec![bounded(state)],
        links: links.into_iter().take(LIST_MAX).filter_map(link).collect(),
        epochs: epochs
            .into_iter()
            .take(LIST_MAX)
            .filter(|row| is_time(&row.from_ms) && row.to_ms.as_ref().is_none_or(is_time))
            .collect(),
    })
}

/// A state with texts and lists of a sane length.
fn bounded(state: ServerState) -> ServerState {
    let texts =
        |of: BTreeMap<i64, String>| of.into_iter().take(LIST_MAX).map(|(id, of)| (id, text(of))).collect();
    let is_time = |ms: &i64| (0..=MS_MAX).contains(ms);
    ServerState {
        version: text(state.version),
        mode: text(state.mode),
        stage: text(state.stage),
        voters: texts(state.voters),
        observers: texts(state.observers),
        config_version: state.config_version.map(text),
        synced: state.synced.into_iter().take(LIST_MAX).collect(),
        address: state.address.map(text),
        admin: state.admin.map(text),
        figures: state
            .figures
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .take(FIGURES_MAX)
            .map(|(name, value)| (text(name), value))
            .collect(),
        digests: state
            .digests
            .into_iter()
            .take(LIST_MAX)
            .map(|digest| DigestAt { value: text(digest.value), ..digest })
            .collect(),
        paused_before_ms: state.paused_before_ms.filter(is_time),
        disk_stalled_before_ms: state.disk_stalled_before_ms.filter(is_time),
        ..state
    }
}

/// A text without control characters, shortened.
pub(super) fn text(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect()
}

impl LinkRow {
    fn bounded(mut self) -> LinkRow {
        self.election.error = self.election.error.map(text);
        if let Some(quorum) = &mut self.quorum {
            quorum.error = quorum.error.take().map(text);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::Zxid;

    fn epoch(leader: i64, epoch: u32, from_ms: i64, to_ms: Option<i64>) -> EpochRow {
        EpochRow { leader, epoch, from_ms, to_ms }
    }

    #[test]
    fn the_epochs_of_all_servers_are_put_together() {
        let of_one = [epoch(2, 1, 100, Some(500)), epoch(3, 2, 520, None)];
        let of_two = [epoch(2, 1, 90, Some(505)), epoch(3, 2, 515, None)];
        let all = epochs(of_one.iter().chain(&of_two));
        assert_eq!(all, [epoch(2, 1, 90, Some(505)), epoch(3, 2, 515, None)]);
        // The record of a server that did not notice yet.
        let late = [epoch(2, 1, 90, None), epoch(3, 2, 515, None)];
        assert_eq!(epochs(late.iter())[0].to_ms, Some(515));
    }

    #[test]
    fn long_names_are_shortened() {
        let names: Vec<String> = (1..=9).map(|number| format!("zookeeper-{number}.example.com")).collect();
        assert_eq!(shortened(&names[..2]), "zookeeper-1.example.com, zookeeper-2.example.com");
        assert_eq!(shortened(&names), "zookeeper-1.example.com, zookeeper-2.example.com, and 7 more");
        assert_eq!(shortened(&["x".repeat(300)]).len(), NAME_MAX);
    }

    #[test]
    fn an_answer_of_another_server_is_cut_to_size() {
        let state = ServerState {
            id: 2,
            version: format!("\u{1b}[31m{}", "x".repeat(5_000)),
            zxid: Zxid(7),
            voters: (0..5_000).map(|id| (id, String::new())).collect(),
            paused_before_ms: Some(-5),
            ..ServerState::default()
        };
        let part = |state: ServerState| OwnPart {
            as_of_ms: 5,
            states: vec![state],
            links: Vec::new(),
            epochs: vec![epoch(1, 1, i64::MIN, None), epoch(1, 1, 5, None)],
        };
        let taken = checked(part(state.clone()), 2).unwrap();
        let of = &taken.states[0];
        assert_eq!((of.version.len(), of.voters.len(), of.paused_before_ms), (TEXT_MAX, LIST_MAX, None));
        assert!(!of.version.contains('\u{1b}'));
        assert_eq!(taken.epochs.len(), 1);
        assert!(checked(part(state), 3).is_none(), "it is about another server");
        assert!(
            checked(
                OwnPart { as_of_ms: i64::MAX, ..part(ServerState { id: 2, ..ServerState::default() }) },
                2
            )
            .is_none()
        );
    }
}
