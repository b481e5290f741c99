//! `/livez` and `/readyz`: whether the server lives, and whether it serves.

use super::{bodies::object, json::Object};
use ostler_server_core::quorum::{MemberMode, MemberReport, ZabStage};
use serde_json::{Value, json};

/// The questions to `/readyz` beside "does it serve clients".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asks {
    /// `?quorum`: whether it leads or follows, so that a quorum stands behind it.
    pub(super) quorum: bool,
    /// `?voter`: whether it has a vote and the leader's history. A rolling update waits for this.
    pub(super) voter: bool,
}

/// A server's place: `None` for a standalone server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) mode: Option<MemberMode>,
    pub(super) member: Option<&'a MemberReport>,
}

/// Whether the server is ready, and the answer that says why.
pub(super) fn readiness(facts: Facts<'_>, asks: Asks) -> (bool, Object) {
    let mut checks = vec![("serves", serves(facts))];
    if asks.quorum {
        checks.push(("quorum", has_quorum(facts)));
    }
    if asks.voter {
        checks.push(("voter", is_voter(facts)));
    }
    let reason = checks.iter().find_map(|(_, check)| check.clone().err());
    let shown: Vec<Value> = checks
        .into_iter()
        .map(|(name, check)| json!({ "name": name, "passed": check.is_ok(), "reason": check.err() }))
        .collect();
    let ready = reason.is_none();
    (ready, object(json!({ "ready": ready, "reason": reason, "checks": shown })))
}

/// An error is the reason for which the check has failed.
type Check = Result<(), String>;

fn serves(facts: Facts<'_>) -> Check {
    match facts.mode {
        None | Some(MemberMode::Leader | MemberMode::Follower | MemberMode::Observer) => Ok(()),
        Some(MemberMode::ReadOnly) => Err("no leader is known: only read-only clients are served".into()),
        Some(MemberMode::Looking) => Err(match facts.member.map(|member| (member.stage, member.leader)) {
            Some((ZabStage::Discovery, Some(leader))) => {
                format!("server {leader} is elected, and this server does not have its history yet")
            }
            _ => "this server looks for a leader: no quorum of the voters has agreed on one".into(),
        }),
    }
}

fn has_quorum(facts: Facts<'_>) -> Check {
    match facts.mode {
        None | Some(MemberMode::Leader | MemberMode::Follower | MemberMode::Observer) => Ok(()),
        Some(MemberMode::ReadOnly | MemberMode::Looking) => {
            Err("no quorum of the voters stands behind this server".into())
        }
    }
}

fn is_voter(facts: Facts<'_>) -> Check {
    let Some(member) = facts.member else { return Ok(()) };
    if !member.votes() {
        return Err(format!("server {} has no vote in the configuration in force", member.me));
    }
    match facts.mode {
        Some(MemberMode::Leader | MemberMode::Follower) => Ok(()),
        _ => Err("this server does not have the leader's history yet".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::{
        id::{Epoch, ServerId},
        membership::Membership,
    };

    fn member(stage: ZabStage, voters: &str) -> MemberReport {
        MemberReport {
            me: ServerId(1),
            leader: (stage != ZabStage::Election).then_some(ServerId(2)),
            stage,
            epoch: Epoch(1),
            membership: Membership::parse(voters).unwrap(),
            synced: Vec::new(),
        }
    }

    const VOTER: &str = "server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=0";
    const OBSERVER: &str = "server.1=a:1:2:observer\nserver.2=b:1:2:participant\nversion=0";
    const ALL: Asks = Asks { quorum: true, voter: true };

    fn reason(mode: Option<MemberMode>, member: Option<&MemberReport>, asks: Asks) -> Option<String> {
        let (ready, body) = readiness(Facts { mode, member }, asks);
        let reason = body["reason"].as_str().map(String::from);
        assert_eq!(ready, reason.is_none());
        reason
    }

    #[test]
    fn a_server_is_ready_once_it_serves() {
        assert_eq!(reason(None, None, ALL), None);
        let synced = member(ZabStage::Broadcast, VOTER);
        assert_eq!(reason(Some(MemberMode::Follower), Some(&synced), ALL), None);
        assert_eq!(reason(Some(MemberMode::Leader), Some(&synced), ALL), None);
        let looking = member(ZabStage::Election, VOTER);
        assert!(
            reason(Some(MemberMode::Looking), Some(&looking), Asks::default()).unwrap().contains("looks for")
        );
        let dialling = member(ZabStage::Discovery, VOTER);
        assert!(
            reason(Some(MemberMode::Looking), Some(&dialling), ALL).unwrap().contains("server 2 is elected")
        );
        assert!(reason(Some(MemberMode::ReadOnly), Some(&looking), ALL).unwrap().contains("read-only"));
    }

    #[test]
    fn an_observer_is_ready_and_no_voter() {
        let observer = member(ZabStage::Broadcast, OBSERVER);
        let asks = |voter| Asks { quorum: true, voter };
        assert_eq!(reason(Some(MemberMode::Observer), Some(&observer), asks(false)), None);
        assert!(reason(Some(MemberMode::Observer), Some(&observer), asks(true)).unwrap().contains("no vote"));
    }
}
