//! Reconfigurations: changes of the ensemble while it serves. From the proposal of a change on, quorums of the old and
//! of the new configuration have to agree; from its commit on, the new one alone decides.
//!
//! A server needs quorums of at most two configurations: the one in force, and the last one in its log. All changes
//! between these two are committed: a leader refuses a change while another is outstanding, and puts a change that it
//! finds in its log into force as its epoch begins, before it proposes anything.
//!
//! So a logged change shows that its proposer had the change before it in force, and a learner puts that one into
//! force, too ([`Server::handle_reconfig_proposal`]). Otherwise it would ask the oldest and the newest configuration only. Then
//! it could lead without a quorum of the one between them, under which other servers may agree on something else.
//!
//! A whole tree shows the last change only. A tree whose last change may not be committed is not sent to a learner that
//! lacks the change before it ([`has_needed_config`]).

use super::{EnsembleConfig, election_history::SearchReason};
use crate::{
    context::Context,
    effect::{Effect, PersistOp, Record},
    input::Now,
    pipeline::propose::WriteOrigin,
    requests::access,
    server::Server,
};
use alloc::{
    collections::BTreeSet,
    string::{String, ToString},
    vec::Vec,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::Perms,
    error::ErrorCode,
    id::{ServerId, Zxid},
    membership::{Member, Membership},
    op::Op,
    path,
    request::Reconfig,
    txn::{Txn, TxnRecord},
};
use ostler_tree::Tree;
use ostler_zab::{Electorate, Quorum};

impl EnsembleConfig {
    /// The newest configuration that this server has heard of.
    pub(super) fn latest(&self) -> &Membership {
        self.pending.as_ref().unwrap_or(&self.membership)
    }
}

/// Whether a proposed configuration may still come into force: it is newer than the one in force, and its transaction
/// is in the tree, which has everything that is logged at this moment.
pub(super) fn may_take_effect(proposed: &Membership, active: &Membership, tree: &Tree) -> bool {
    if is_numbered_only(proposed) {
        return active.version == 0;
    }
    proposed.version > active.version && shown_by(tree) >= Zxid(proposed.version)
}

/// Whether a configuration is the first one: its version is the first zxid of an epoch, and it has no transaction.
/// Before the epoch begins the version has no meaning: another epoch may have given it another one.
fn is_numbered_only(membership: &Membership) -> bool {
    Zxid(membership.version).counter() == 0
}

/// Whether a learner with this version in force may get a leader's history. Before the epoch begins the leader's tree
/// may show a change that is only logged, and does not show the change before it.
pub(super) fn has_needed_config(version: u64, config: &EnsembleConfig, established: bool) -> bool {
    let changes = config.pending.as_ref().is_some_and(|pending| !is_numbered_only(pending));
    established || !changes || version >= config.membership.version
}

/// The version of the configuration in a tree's `/zookeeper/config`.
fn shown_by(tree: &Tree) -> Zxid {
    tree.get(path::CONFIG).map_or(Zxid::ZERO, |node| node.stat.mzxid)
}

/// The quorums that decide under this configuration, and under the proposed one, if there is one.
pub(super) fn electorate(config: &EnsembleConfig) -> Electorate {
    Electorate { current: Quorum::of(&config.membership), next: config.pending.as_ref().map(Quorum::of) }
}

/// Whether a record changes the ensemble: its header's type says so.
pub(crate) fn is_reconfig(record: &Record) -> bool {
    record.0.get(28..32) == Some(&Op::Reconfig.code().to_be_bytes())
}

impl Server {
    /// At a leader: proposes a change of the ensemble, or an error if it is refused. Returns the zxid.
    pub(crate) fn propose_reconfig(
        &mut self,
        cx: &mut Context<'_>,
        origin: WriteOrigin<'_>,
        change: &Reconfig<'_>,
    ) -> Zxid {
        let zxid = self.next_zxid();
        match self.reconfigure(zxid, cx.now, origin, change) {
            Err(refusal) => {
                let (error, reason) = refusal.into_parts();
                tracing::warn!(?error, reason, "a change of the ensemble was refused");
                self.append(cx, origin, Txn::Error(error.code()))
            }
            Ok(membership) => {
                let text = membership.to_string();
                self.set_pending(cx, membership);
                let data = Some(text.as_bytes());
                let txn = Txn::SetData { reconfig: true, path: path::CONFIG.into(), data, version: -1 };
                self.append(cx, origin, txn)
            }
        }
    }

    /// The configuration that a request asks for, or its refusal. The checks are in upstream's order.
    fn reconfigure(
        &mut self,
        zxid: Zxid,
        now: Now,
        origin: WriteOrigin<'_>,
        change: &Reconfig<'_>,
    ) -> Result<Membership, Refusal> {
        // Upstream has no error code for a leader that cannot write its configuration, and goes on. Here the answer is
        // the one for disabled reconfiguration: trying again does not help, an operator has to change the server.
        if !self.config.reconfig || !self.config.keeps_config {
            return Err(Refusal(
                ErrorCode::ReconfigDisabled,
                "reconfigEnabled is off, or this server cannot write its configuration",
            ));
        }
        let alone =
            || Refusal(ErrorCode::Unimplemented, "this server is in no ensemble, or does not lead it");
        let Some(ensemble) = self.role.ensemble() else { return Err(alone()) };
        if ensemble.config.pending.is_some() {
            return Err(Refusal(ErrorCode::ReconfigInProgress, "another change is under way"));
        }
        let active = &ensemble.config.membership;
        if change.current_config != -1 && change.current_config as u64 != active.version {
            return Err(Refusal(
                ErrorCode::BadVersion,
                "another configuration is in force than the request was made for",
            ));
        }
        let mut membership = match &change.members {
            Some(members) => Membership::parse(&members.replace(',', "\n"))
                .map_err(|_| bad("a server's line cannot be read"))?,
            None => step(active, change)?,
        };
        membership.version = zxid.0;
        membership.check().map_err(|_| bad("its servers, groups and weights make no ensemble"))?;
        if membership.voters().count() < ensemble.config.voters_min {
            return Err(bad(
                "too few servers would vote: two at least, or one where standaloneEnabled=false",
            ));
        }
        if membership.servers.keys().any(|id| !self.config.types.allows_server(id.0)) {
            return Err(bad(
                "an id is above 254 (127 with emulate353TTLNodes), which none may be where TTL znodes are enabled",
            ));
        }
        let Some(leader) = ensemble.role.leader() else { return Err(alone()) };
        let leading = &leader.learners.leading;
        let acknowledge: BTreeSet<ServerId> = leading.synced_followers().chain([ensemble.me]).collect();
        if !Quorum::of(&membership).is_quorum(|server| acknowledge.contains(&server)) {
            return Err(Refusal(
                ErrorCode::NewConfigNoQuorum,
                "no quorum of its voters follows this leader yet, and is level with it: start them, then try again",
            ));
        }
        let mut node = self
            .pipeline
            .overlay
            .get(&self.tree, path::CONFIG)
            .ok_or(Refusal(ErrorCode::NoNode, "there is no /zookeeper/config"))?;
        let preparer = self.preparer(zxid, now, origin);
        access::check(preparer.config, &node.acl, Perms::WRITE, preparer.ids, preparer.work)
            .map_err(|error| Refusal(error, "the caller may not write /zookeeper/config"))?;
        let text = membership.to_string();
        node.set_data(path::CONFIG, Some(text.as_bytes()), -1, zxid, now.wall_ms);
        self.stats.writes.changes_noted += 1;
        self.pipeline.overlay.put(&self.tree, zxid, path::CONFIG, Some(node));
        Ok(membership)
    }

    /// Notes a proposed configuration.
    fn set_pending(&mut self, cx: &mut Context<'_>, membership: Membership) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        cx.effects.push(Effect::Servers(Vec::from([ensemble.config.membership.clone(), membership.clone()])));
        let op = PersistOp::SaveConfig { membership: membership.clone(), active: false };
        self.pipeline.persist(cx, op);
        ensemble.config.pending = Some(membership);
        self.electorate_changed();
    }

    /// Drops a proposed configuration after `to`, as the log is cut back. Its file may stay: a start finds that it has
    /// no transaction.
    pub(super) fn forget_proposed_after(&mut self, to: Zxid) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if ensemble.config.pending.take_if(|pending| pending.version > to.0).is_some() {
            self.electorate_changed();
        }
    }

    /// A whole tree has come in the place of the log: the configuration that it shows is the last change. Drops any
    /// other.
    pub(super) fn handle_config_of_tree(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let EnsembleConfig { membership, pending, .. } = &mut ensemble.config;
        if pending.take_if(|pending| !may_take_effect(pending, membership, &self.tree)).is_some() {
            self.electorate_changed();
        }
        if let Some(text) = self.shown_config() {
            self.handle_config(cx, &text);
        }
    }

    fn shown_config(&self) -> Option<String> {
        let data = self.tree.get(path::CONFIG)?.data.as_deref()?;
        Some(String::from_utf8_lossy(data).into_owned())
    }

    fn electorate_changed(&mut self) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        ensemble.electorate = electorate(&ensemble.config);
        let Some(leader) = ensemble.role.leader_mut() else { return };
        leader.learners.leading.set_electorate(ensemble.electorate.clone());
        if let Some(proposals) = &mut leader.proposals {
            proposals.set_electorate(ensemble.electorate.clone());
        }
    }

    /// At a leader whose configuration has no version: gives it the first zxid of the epoch, as its followers do. So it
    /// is newer than the configurations of servers that were in no ensemble yet.
    pub(super) fn number_first_config(&mut self) {
        let reconfig = self.config.reconfig;
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(leader) = ensemble.role.leader() else { return };
        if let Some(epoch) = leader.learners.leading.epoch()
            && reconfig
            && ensemble.config.membership.version == 0
            && ensemble.config.pending.is_none()
        {
            let version = Zxid::new(epoch, 0).0;
            ensemble.config.pending = Some(Membership { version, ..ensemble.config.membership.clone() });
        }
    }

    /// The configuration to send with NEWLEADER. In an established epoch an outstanding change is not part of it: it
    /// follows as a proposal, or with its commit.
    pub(super) fn config_to_follow(ensemble: &EnsembleConfig, established: bool) -> String {
        if established { ensemble.membership.to_string() } else { ensemble.latest().to_string() }
    }

    /// At a learner: a configuration has come with NEWLEADER, with a tree, or as a proposal.
    pub(super) fn handle_config(&mut self, cx: &mut Context<'_>, text: &str) {
        let Ok(membership) = Membership::parse(text) else { return };
        let Some(ensemble) = self.role.ensemble() else { return };
        let EnsembleConfig { membership: active, pending, .. } = &ensemble.config;
        let known = pending.as_ref().filter(|pending| !is_numbered_only(pending)).unwrap_or(active);
        let newer = membership.version > known.version && pending.as_ref() != Some(&membership);
        // The leader had this one in force when it proposed the one that is logged here.
        let before = membership.version > active.version && membership.version < known.version;
        if self.config.reconfig && newer {
            self.set_pending(cx, membership);
        } else if self.config.reconfig && before {
            self.put_in_force(cx, membership);
        }
    }

    /// At a learner: a change was proposed. Its leader had the change before it in force, so this server puts that one
    /// into force, too.
    pub(super) fn handle_reconfig_proposal(&mut self, cx: &mut Context<'_>, record: &Record) {
        let Ok(TxnRecord { header, txn: Txn::SetData { data: Some(data), .. }, .. }) =
            TxnRecord::read(&record.0)
        else {
            return;
        };
        if let Some(before) = self.logged_change().filter(|before| before.version < header.zxid.0)
            && !planted::is(Bug::ChangeBeforeForgotten)
        {
            self.put_in_force(cx, before);
        }
        self.handle_config(cx, &String::from_utf8_lossy(data));
    }

    /// The last change in the log that is not in force here.
    fn logged_change(&self) -> Option<Membership> {
        let pending = self.role.ensemble()?.config.pending.as_ref()?;
        (self.config.reconfig && !is_numbered_only(pending)).then(|| pending.clone())
    }

    /// Takes a newer configuration that came with a vote, while this server looks for a leader. The present voters may
    /// not even be in it, so the election begins again under the new one. Returns true if it does.
    ///
    /// Only a voter may bring a configuration, as in upstream from 3.9.7 on: otherwise any caller of the election port
    /// could put a list of other servers into force.
    pub(super) fn adopt_newer(&mut self, cx: &mut Context<'_>, from: ServerId, newer: Membership) -> bool {
        let Some(ensemble) = self.role.ensemble_mut() else { return false };
        if !self.config.reconfig || !ensemble.election.is_looking() {
            return false;
        }
        let own = &ensemble.config.membership;
        if newer.version <= own.version {
            return false;
        }
        if !ensemble.electorate.votes(from) {
            if newer.version > ensemble.unbelieved_version {
                ensemble.unbelieved_version = newer.version;
                tracing::warn!(
                    server = from.0,
                    version = %format_args!("{:x}", newer.version),
                    own = %format_args!("{:x}", own.version),
                    "a newer configuration came from a server that does not vote in this server's: it is not taken. \
                     If all other voters that it knows were replaced while it was away, stop it, put the lines of the \
                     other servers' dynamic configuration file in the place of its own server lines (in its dynamic \
                     configuration file, or in zoo.cfg if it has none), and start it again"
                );
            }
            return false;
        }
        let same = newer.lines() == own.lines();
        self.put_in_force(cx, newer);
        if !same {
            self.look(cx, SearchReason::Reconfigured);
        }
        !same
    }

    /// The epoch has begun: the configuration that came with its history is in force, unless its change is still
    /// outstanding.
    pub(super) fn adopt_config(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble() else { return };
        let EnsembleConfig { membership, pending, .. } = &ensemble.config;
        let under_way =
            |of: &Membership| self.pipeline.outstanding.iter().any(|logged| logged.zxid.0 == of.version);
        let committed = pending.clone().filter(|pending| !under_way(pending)).or_else(|| {
            let shown = self.shown_config().filter(|_| self.config.reconfig)?;
            Membership::parse(&shown).ok().filter(|shown| shown.version > membership.version)
        });
        match committed {
            Some(membership) => self.activate(cx, membership),
            None => self.show_config(cx.now),
        }
        if self.has_changed_voting_role() {
            self.look(cx, SearchReason::Reconfigured);
        }
    }

    /// Whether this server follows as a follower and is an observer now, or the other way round.
    fn has_changed_voting_role(&self) -> bool {
        let Some(ensemble) = self.role.ensemble() else { return false };
        let learner = ensemble.role.learner();
        learner.is_some_and(|learner| learner.learning.observes() != ensemble.is_observer())
    }

    fn show_config(&mut self, now: Now) {
        let Some(ensemble) = self.role.ensemble() else { return };
        let membership = &ensemble.config.membership;
        self.tree.show_config(&membership.to_string(), Zxid(membership.version), now.wall_ms);
    }

    /// A change of the ensemble has committed.
    pub(crate) fn reconfigured(&mut self, cx: &mut Context<'_>, text: &[u8]) {
        let Ok(membership) = Membership::parse(&String::from_utf8_lossy(text)) else { return };
        let (Some(ensemble), Some(_)) = (self.role.ensemble(), self.write_route()) else { return };
        if !self.config.reconfig || (planted::is(Bug::ConfigKept) && !self.leads()) {
            return;
        }
        // A learner may have put it into force before this transaction came.
        if membership.version > ensemble.config.membership.version {
            self.activate(cx, membership);
        } else {
            self.show_config(cx.now);
        }
    }

    /// Puts a configuration into force. This server looks for a leader again if it may not lead any more, or has become
    /// a follower or an observer.
    fn activate(&mut self, cx: &mut Context<'_>, membership: Membership) {
        let designated = self.designated_leader();
        let Some(ensemble) = self.role.ensemble() else { return };
        let gives_way = self.leads() && designated != ensemble.me;
        self.put_in_force(cx, membership);
        self.show_config(cx.now);
        if gives_way || self.has_changed_voting_role() {
            self.look(cx, SearchReason::Reconfigured);
        }
    }

    fn put_in_force(&mut self, cx: &mut Context<'_>, membership: Membership) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let version = alloc::format!("{:x}", membership.version);
        tracing::info!(version, servers = membership.servers.len(), "a configuration is in force");
        // Other servers may have put it into force earlier, and have proposed the next change, which is logged here
        // already.
        let pending = ensemble.config.pending.take();
        let pending = pending.filter(|of| of.version > membership.version && !is_numbered_only(of));
        cx.effects.push(Effect::Servers([membership.clone()].into_iter().chain(pending.clone()).collect()));
        let op = PersistOp::SaveConfig { membership: membership.clone(), active: true };
        self.pipeline.persist(cx, op);
        ensemble.config.membership = membership;
        ensemble.config.pending = pending;
        // A server that was removed and is added again is new.
        let membership = &ensemble.config.membership;
        ensemble.servers_with_data.retain(|server| membership.servers.contains_key(server));
        let observer = !ensemble.votes();
        ensemble.election.set_config(ensemble.config.membership.to_string(), observer);
        self.electorate_changed();
    }

    /// The server to lead under the newest configuration: this leader if it votes there, else the voter with the most
    /// acknowledgements.
    pub(super) fn designated_leader(&self) -> ServerId {
        let Some(ensemble) = self.role.ensemble() else { return self.config.server };
        let latest = ensemble.config.latest();
        if latest.votes(ensemble.me) {
            return ensemble.me;
        }
        let acknowledged = |server: ServerId| {
            self.role.proposals().map(|proposals| proposals.acknowledged_by(server)).unwrap_or_default()
        };
        latest.voters().max_by_key(|server| acknowledged(*server)).unwrap_or(ensemble.me)
    }
}

/// Why a change is refused: the error for the client, and the reason for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal(ErrorCode, &'static str);

impl Refusal {
    fn into_parts(self) -> (ErrorCode, &'static str) {
        (self.0, self.1)
    }
}

fn bad(reason: &'static str) -> Refusal {
    Refusal(ErrorCode::BadArguments, reason)
}

const LINE: &str = "a joining server's line cannot be read: server.N=host:port:port:role;port is one";

/// The configuration after servers are removed, then added or changed.
fn step(active: &Membership, change: &Reconfig<'_>) -> Result<Membership, Refusal> {
    if !active.groups.is_empty() {
        return Err(bad("there are groups, and servers of groups cannot be added or removed one by one"));
    }
    let mut next = active.clone();
    let listed = |list: &Option<alloc::borrow::Cow<'_, str>>| -> Vec<alloc::string::String> {
        let items = list.as_deref().unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(Into::into).collect()
    };
    for id in listed(&change.leaving) {
        let id = id.parse().map_err(|_| bad("what is to leave is no server's id"))?;
        next.servers.remove(&ServerId(id));
    }
    for joining in listed(&change.joining) {
        let (key, spec) = joining.split_once('=').ok_or(bad(LINE))?;
        let member = Member::parse(key, spec).map_err(|_| bad(LINE))?;
        // `server.N` or N alone: as in upstream, the text before the last dot is ignored.
        let id = key.trim().rsplit('.').next().and_then(|id| id.parse().ok()).map(ServerId);
        let id = id.ok_or(bad(LINE))?;
        if member.client.is_none() {
            return Err(bad(
                "a joining server's line has no port for clients, which comes after a semicolon",
            ));
        }
        let collides = next.servers.iter().any(|(of, other)| *of != id && member.collides(other));
        if collides {
            return Err(bad("a joining server has an address and port of another one"));
        }
        next.servers.insert(id, member);
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_joining_server_is_known_by_what_follows_the_last_dot() {
        let active = Membership::parse("server.1=a:1:2:participant;3").unwrap();
        let ids = |joining: &'static str| {
            let joining = Some(joining.into());
            let change = Reconfig { joining, leaving: None, members: None, current_config: -1 };
            let ids = |next: Membership| next.servers.keys().map(|id| id.0).collect::<Vec<i64>>();
            step(&active, &change).map(ids).map_err(|Refusal(error, _)| error)
        };
        for joining in ["server.2=b:1:2;3", "2=b:1:2;3", "zk.server.2=b:1:2;3", "server.2 = b:1:2;3"] {
            assert_eq!(ids(joining), Ok(vec![1, 2]), "{joining}");
        }
        for joining in ["server.=b:1:2;3", "server.x=b:1:2;3", "2", "2=b:1:2", "2=a:1:2;3"] {
            assert_eq!(ids(joining), Err(ErrorCode::BadArguments), "{joining}");
        }
    }
}
