//! The other members: whether they answer, which versions they run, and whether their configuration is the same.

use super::{
    clock::{self, ClockReading},
    finding::{Finding, Level, Topic},
    words::{self, Answer},
};
use ostler_proto::{
    id::ServerId,
    membership::{Member, Membership},
};
use ostler_server::config::ServerConfig;
use std::{collections::BTreeMap, net::ToSocketAddrs, thread};

/// The answers of a member.
#[derive(Debug, Clone)]
pub(super) struct MemberAnswer {
    pub(super) id: ServerId,
    /// Where it was asked.
    place: String,
    /// The reason why its name stands for no address.
    unresolved: Option<String>,
    srvr: Answer,
    conf: Answer,
    /// Its clock, if it tells it.
    pub(super) clock: Option<ClockReading>,
}

/// The values of this configuration that have to be the same at all members.
#[derive(Debug, Clone)]
struct OwnValues {
    numbers: Vec<(&'static str, i64)>,
    membership: Membership,
}

/// Asks all other members at the same time.
pub(super) fn ask(config: &ServerConfig) -> Vec<MemberAnswer> {
    let Some(ensemble) = &config.ensemble else { return Vec::new() };
    let usual_port = config.clients.client_address.map(|address| address.port());
    let others = ensemble.membership.servers.iter().filter(|(id, _)| **id != ensemble.me);
    let places: Vec<(ServerId, String, u16)> = others
        .filter_map(|(id, member)| place(member, usual_port).map(|(host, port)| (*id, host, port)))
        .collect();
    thread::scope(|scope| {
        let asked: Vec<_> =
            places.iter().map(|(id, host, port)| scope.spawn(move || ask_one(*id, host, *port))).collect();
        asked.into_iter().filter_map(|answer| answer.join().ok()).collect()
    })
}

/// Where a member's clients reach it. Without a client part in its line, the usual port is tried.
fn place(member: &Member, usual_port: Option<u16>) -> Option<(String, u16)> {
    let own_host = || member.addresses.first().map(|address| address.host.clone());
    let (host, port) = match &member.client {
        Some(client) if client.is_wildcard() => (own_host()?, client.port),
        Some(client) => (client.host.clone(), client.port),
        None => (own_host()?, usual_port?),
    };
    Some((host, port)).filter(|(_, port)| *port != 0)
}

fn ask_one(id: ServerId, host: &str, port: u16) -> MemberAnswer {
    let place = format!("{host}:{port}");
    let unresolved = (host, port).to_socket_addrs().err().map(|error| error.to_string());
    let srvr = words::ask(host, port, "srvr");
    if let Answer::None(_) = srvr {
        return MemberAnswer { id, place, unresolved, conf: srvr.clone(), srvr, clock: None };
    }
    let conf = words::ask(host, port, "conf");
    let asked_ms = clock::now_ms();
    let elections = words::ask(host, port, "elec");
    let answered_ms = clock::now_ms();
    let clock = elections.text().and_then(|text| clock::reading(text, (asked_ms, answered_ms)));
    MemberAnswer { id, place, unresolved, srvr, conf, clock }
}

pub(super) fn judge(config: &ServerConfig, answers: &[MemberAnswer]) -> Vec<Finding> {
    let Some(ensemble) = &config.ensemble else { return Vec::new() };
    let own = OwnValues {
        numbers: vec![
            ("tickTime", config.tick_time_ms.into()),
            ("initLimit", ensemble.init_limit.into()),
            ("syncLimit", ensemble.sync_limit.into()),
            ("minSessionTimeout", config.sessions.min_session_timeout_ms.into()),
            ("maxSessionTimeout", config.sessions.max_session_timeout_ms.into()),
        ],
        membership: ensemble.membership.clone(),
    };
    let mut findings: Vec<Finding> = answers.iter().flat_map(|answer| judge_one(&own, answer)).collect();
    findings.extend(judge_versions(answers));
    findings
}

fn finding(level: Level, text: String) -> Finding {
    Finding::new(level, Topic::Members, text)
}

fn judge_one(own: &OwnValues, answer: &MemberAnswer) -> Vec<Finding> {
    let (id, place) = (answer.id, &answer.place);
    let mut findings = Vec::new();
    if let Some(reason) = &answer.unresolved {
        return vec![finding(
            Level::Warning,
            format!(
                "the name of server {id} ({place}) cannot be resolved: {reason}; add it to DNS or to /etc/hosts"
            ),
        )];
    }
    match &answer.srvr {
        Answer::None(reason) => {
            return vec![finding(
                Level::Note,
                format!(
                    "server {id} does not answer at {place}: {reason}; it is down, or its client port is another \
                     one or has \
                     TLS only"
                ),
            )];
        }
        Answer::NotAllowed => findings.push(finding(
            Level::Note,
            format!(
                "server {id} at {place} does not allow the word srvr; add it to its 4lw.commands.whitelist"
            ),
        )),
        Answer::Text(text) if words::version(text).is_none() => findings.push(finding(
            Level::Note,
            format!("server {id} at {place} runs, and does not serve: it has no leader now"),
        )),
        Answer::Text(_) => {}
    }
    match &answer.conf {
        Answer::Text(conf) => findings.extend(judge_conf(own, id, conf)),
        Answer::NotAllowed => findings.push(finding(
            Level::Note,
            format!(
                "server {id} at {place} does not allow the word conf, so its configuration cannot be compared; add \
                 conf to its \
                 4lw.commands.whitelist"
            ),
        )),
        Answer::None(_) => {}
    }
    findings
}

fn judge_conf(own: &OwnValues, id: ServerId, conf: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(found) = words::value(conf, "serverId").and_then(|text| text.parse::<i64>().ok())
        && found != id.0
    {
        let says =
            if found == 0 { "is a standalone server".to_owned() } else { format!("calls itself {found}") };
        findings.push(finding(
            Level::Error,
            format!(
                "the server at the address of server.{id} {says}; correct its myid and its server lines, or the address \
                 here"
            ),
        ));
        return findings;
    }
    for (key, own_value) in &own.numbers {
        let theirs: Option<i64> = words::value(conf, key).and_then(|text| text.parse().ok());
        if let Some(theirs) = theirs.filter(|theirs| theirs != own_value) {
            findings.push(finding(
                Level::Warning,
                format!(
                    "{key} is {own_value} here and {theirs} at server {id}; give all members the same value"
                ),
            ));
        }
    }
    let lines = conf.split_once("membership:").map(|(_, lines)| lines.trim());
    if let Some(theirs) = lines.and_then(|lines| Membership::parse(lines).ok()) {
        findings.extend(judge_membership(&own.membership, id, &theirs));
    }
    findings
}

fn judge_membership(own: &Membership, id: ServerId, theirs: &Membership) -> Option<Finding> {
    let ids: std::collections::BTreeSet<_> = own.servers.keys().chain(theirs.servers.keys()).collect();
    let other: Vec<String> = ids
        .into_iter()
        .filter(|each| !is_same(own.servers.get(each), theirs.servers.get(each)))
        .map(|each| format!("server.{each}"))
        .collect();
    if other.is_empty() && own.groups == theirs.groups && own.weights == theirs.weights {
        return None;
    }
    let which = if other.is_empty() { "groups or weights".to_owned() } else { other.join(", ") };
    if theirs.version > own.version {
        return Some(finding(
            Level::Note,
            format!(
                "server {id} has a newer configuration of the ensemble (version {:x}), which differs in {which}; \
                 this server \
                 takes it from the leader",
                theirs.version
            ),
        ));
    }
    Some(finding(
        Level::Warning,
        format!(
            "the ensemble of server {id} differs from this file in {which}; write the same lines for all members"
        ),
    ))
}

/// Whether two lines name the same server. The client part is compared only if both have one: Java shows its own.
fn is_same(own: Option<&Member>, theirs: Option<&Member>) -> bool {
    match (own, theirs) {
        (Some(own), Some(theirs)) => {
            let clients = own.client.as_ref().zip(theirs.client.as_ref());
            own.addresses == theirs.addresses
                && own.observer == theirs.observer
                && clients.is_none_or(|(own, theirs)| own.port == theirs.port)
        }
        (own, theirs) => own.is_none() && theirs.is_none(),
    }
}

/// Which version each member runs.
fn judge_versions(answers: &[MemberAnswer]) -> Vec<Finding> {
    let mut by_version: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for answer in answers {
        if let Some(version) = answer.srvr.text().and_then(words::version) {
            by_version.entry(version).or_default().push(answer.id.to_string());
        }
    }
    let mut findings: Vec<Finding> = by_version
        .iter()
        .filter(|(version, _)| !is_tested(version))
        .map(|(version, ids)| {
            finding(
                Level::Warning,
                format!(
                    "version {version} runs at {}; Ostler is tested in one ensemble with 3.8 and 3.9, so upgrade to \
                     one of \
                     these first",
                    ids.join(", ")
                ),
            )
        })
        .collect();
    let each: Vec<String> =
        by_version.iter().map(|(version, ids)| format!("{version} at {}", ids.join(", "))).collect();
    match each.len() {
        0 => {}
        1 => findings.push(finding(Level::Fact, format!("version of the other members: {}", each[0]))),
        _ => findings.push(finding(
            Level::Note,
            format!(
                "the members run different versions: {}; this is meant for the time of an upgrade only",
                each.join("; ")
            ),
        )),
    }
    findings
}

/// Whether a version is one that Ostler is tested with, by its first two numbers.
fn is_tested(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    matches!((numbers.next().flatten(), numbers.next().flatten()), (Some(3), Some(8 | 9)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str =
        "server.1=a:1:2:participant;0.0.0.0:5\nserver.2=b:1:2:participant;0.0.0.0:5\nversion=0";

    fn own() -> OwnValues {
        let lines = "server.1=a:1:2\nserver.2=b:1:2";
        OwnValues { numbers: vec![("tickTime", 2000)], membership: Membership::parse(lines).unwrap() }
    }

    fn conf(id: i64, tick: i64, lines: &str) -> String {
        format!("clientPort=5\ntickTime={tick}\nserverId={id}\nmembership: \n{lines}")
    }

    fn levels(conf: &str) -> Vec<Level> {
        judge_conf(&own(), ServerId(2), conf).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn an_equal_configuration_has_no_finding_and_each_difference_has_one() {
        assert_eq!(levels(&conf(2, 2000, LINES)), []);
        assert_eq!(levels(&conf(1, 2000, LINES)), [Level::Error]);
        assert_eq!(levels(&conf(2, 3000, LINES)), [Level::Warning]);
        assert_eq!(levels(&conf(2, 2000, &LINES.replace("b:1:2", "b:1:3"))), [Level::Warning]);
        let newer = LINES.replace("b:1:2", "b:1:3").replace("version=0", "version=100000001");
        assert_eq!(levels(&conf(2, 2000, &newer)), [Level::Note]);
        assert_eq!(levels("nothing"), []);
    }

    fn answer(id: i64, srvr: Answer) -> MemberAnswer {
        let (place, conf) = ("b:5".into(), Answer::NotAllowed);
        MemberAnswer { id: ServerId(id), place, unresolved: None, srvr, conf, clock: None }
    }

    fn runs(id: i64, version: &str) -> MemberAnswer {
        answer(id, Answer::Text(format!("Zookeeper version: {version}, built on x\nMode: follower\n")))
    }

    #[test]
    fn versions_that_differ_or_are_too_old_are_told() {
        let levels = |answers: &[MemberAnswer]| -> Vec<Level> {
            judge_versions(answers).iter().map(|finding| finding.level).collect()
        };
        assert_eq!(levels(&[runs(2, "3.9.5-x"), runs(3, "3.9.5-x")]), [Level::Fact]);
        assert_eq!(levels(&[runs(2, "3.8.0"), runs(3, "3.9.5")]), [Level::Note]);
        assert_eq!(levels(&[runs(2, "3.4.14")]), [Level::Warning, Level::Fact]);
        assert_eq!(levels(&[answer(2, Answer::NotAllowed)]), []);
    }

    #[test]
    fn silence_and_words_that_are_not_allowed_are_notes() {
        let notes = judge_one(&own(), &answer(2, Answer::None("refused".into())));
        assert_eq!((notes.len(), notes[0].level), (1, Level::Note));
        assert_eq!(judge_one(&own(), &answer(2, Answer::NotAllowed)).len(), 2);
        let unknown = MemberAnswer { unresolved: Some("no name".into()), ..answer(2, Answer::NotAllowed) };
        assert_eq!(judge_one(&own(), &unknown)[0].level, Level::Warning);
        let silent = "This ZooKeeper instance is not currently serving requests\n";
        assert!(judge_one(&own(), &answer(2, Answer::Text(silent.into())))[0].text.contains("no leader"));
    }

    #[test]
    fn a_member_is_asked_at_its_client_address_or_at_the_usual_port() {
        let place = |line: &str| super::place(&Member::parse("server.2", line).unwrap(), Some(7));
        assert_eq!(place("b:1:2"), Some(("b".into(), 7)));
        assert_eq!(place("b:1:2;5"), Some(("b".into(), 5)));
        assert_eq!(place("b:1:2;c:5"), Some(("c".into(), 5)));
    }
}
