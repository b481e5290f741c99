//! Changing the ensemble while it works. From its proposal on, quorums of the old and of the new configuration are
//! both needed; from its commit on, the new one alone decides.

use super::{EnsembleConfig, Role, chronicle::Why};
use crate::{
    access,
    effect::{Effect, PersistOp, Record},
    input::Now,
    propose::Asker,
    server::Server,
};
use alloc::{collections::BTreeSet, string::ToString, vec::Vec};
use ostler_proto::{
    acl::Perms,
    error::ErrorCode,
    id::{ServerId, SessionId, Zxid},
    membership::{Member, Membership},
    op::Op,
    path,
    planted::{self, Bug},
    request::Reconfig,
    txn::{Txn, TxnRecord},
};
use ostler_zab::{Electorate, Quorum};

impl EnsembleConfig {
    /// The newest configuration that this server has heard of.
    pub(super) fn latest(&self) -> &Membership {
        self.pending.as_ref().unwrap_or(&self.membership)
    }
}

/// Who decides.
pub(super) fn electorate(config: &EnsembleConfig) -> Electorate {
    Electorate { current: Quorum::of(&config.membership), next: config.pending.as_ref().map(Quorum::of) }
}

/// Whether a record changes the ensemble: its header's type says so.
pub(super) fn is_reconfig(record: &Record) -> bool {
    record.0.get(28..32) == Some(&Op::Reconfig.code().to_be_bytes())
}

impl Server {
    /// At a leader: a change of the ensemble, or its refusal, as a proposal.
    pub(crate) fn propose_reconfig(
        &mut self,
        now: Now,
        (session, cxid): (SessionId, i32),
        change: &Reconfig<'_>,
        asker: Asker<'_>,
        effects: &mut Vec<Effect>,
    ) -> Zxid {
        let zxid = self.next_zxid();
        let conn = match asker {
            Asker::Client(conn) => Some(conn),
            Asker::Ids(_) => None,
        };
        match self.reconfigure(zxid, now, session, change, asker) {
            Err(error) => self.append(now, session, cxid, Txn::Error(error.code()), conn, effects),
            Ok(membership) => {
                let text = membership.to_string();
                self.set_pending(Some(membership), effects);
                let data = Some(text.as_bytes());
                let txn = Txn::SetData { reconfig: true, path: path::CONFIG.into(), data, version: -1 };
                self.append(now, session, cxid, txn, conn, effects)
            }
        }
    }

    /// The configuration that is asked for, if it can be had. Checks are in upstream's order.
    fn reconfigure(
        &mut self,
        zxid: Zxid,
        now: Now,
        session: SessionId,
        change: &Reconfig<'_>,
        asker: Asker<'_>,
    ) -> Result<Membership, ErrorCode> {
        if !self.config.reconfig {
            return Err(ErrorCode::ReconfigDisabled);
        }
        let Some(ensemble) = &self.ensemble else { return Err(ErrorCode::Unimplemented) };
        if ensemble.config.pending.is_some() {
            return Err(ErrorCode::ReconfigInProgress);
        }
        let active = &ensemble.config.membership;
        if change.current_config != -1 && change.current_config as u64 != active.version {
            return Err(ErrorCode::BadVersion);
        }
        let mut membership = match &change.members {
            Some(members) => {
                Membership::parse(&members.replace(',', "\n")).map_err(|_| ErrorCode::BadArguments)?
            }
            None => step(active, change)?,
        };
        membership.version = zxid.0;
        membership.check().map_err(|_| ErrorCode::BadArguments)?;
        if membership.voters().count() < 2 {
            return Err(ErrorCode::BadArguments);
        }
        let Role::Leading(leading) = &ensemble.role else { return Err(ErrorCode::Unimplemented) };
        let synced: BTreeSet<ServerId> = leading.synced().chain([ensemble.me]).collect();
        if !Quorum::of(&membership).is_quorum(|server| synced.contains(&server)) {
            return Err(ErrorCode::NewConfigNoQuorum);
        }
        let mut node = self.overlay.get(&self.tree, path::CONFIG).ok_or(ErrorCode::NoNode)?;
        let preparer = self.preparer(zxid, now, session, asker);
        access::check(preparer.config, &node.acl, Perms::WRITE, preparer.ids)?;
        let text = membership.to_string();
        node.set_data(path::CONFIG, Some(text.as_bytes()), -1, zxid, now.wall_ms);
        self.overlay.put(&self.tree, zxid, path::CONFIG, Some(node));
        Ok(membership)
    }

    /// A configuration was proposed, or given up.
    fn set_pending(&mut self, pending: Option<Membership>, effects: &mut Vec<Effect>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        if let Some(membership) = pending.clone() {
            effects
                .push(Effect::Servers(Vec::from([ensemble.config.membership.clone(), membership.clone()])));
            let op = PersistOp::SaveConfig { membership, active: false };
            effects.push(Effect::Persist { seq: self.gate.issue(), op });
        }
        ensemble.config.pending = pending;
        self.electorate_changed();
    }

    fn electorate_changed(&mut self) {
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.electorate = electorate(&ensemble.config);
        if let Role::Leading(leading) = &mut ensemble.role {
            leading.set_electorate(ensemble.electorate.clone());
        }
        if let Some(leader) = &mut self.leader {
            leader.set_electorate(ensemble.electorate.clone());
        }
    }

    /// At a leader whose configuration has no number: it gets that of the reign, in agreement with those who follow.
    /// So it wins over what servers bring along that were never in an ensemble.
    pub(super) fn number_first_config(&mut self) {
        let reconfig = self.config.reconfig;
        let Some(ensemble) = &mut self.ensemble else { return };
        let Role::Leading(leading) = &ensemble.role else { return };
        if let Some(epoch) = leading.epoch()
            && reconfig
            && ensemble.config.membership.version == 0
            && ensemble.config.pending.is_none()
        {
            let version = Zxid::new(epoch, 0).0;
            ensemble.config.pending = Some(Membership { version, ..ensemble.config.membership.clone() });
        }
    }

    /// At a learner: the leader's configuration has come with its history.
    pub(super) fn heard_config(&mut self, text: &str, effects: &mut Vec<Effect>) {
        let Ok(membership) = Membership::parse(text) else { return };
        let newer = self.ensemble.as_ref().is_some_and(|ensemble| {
            membership.version > ensemble.config.membership.version
                && ensemble.config.pending.as_ref() != Some(&membership)
        });
        if self.config.reconfig && newer {
            self.set_pending(Some(membership), effects);
        }
    }

    /// At a learner: a change has been proposed.
    pub(super) fn heard_reconfig(&mut self, record: &Record, effects: &mut Vec<Effect>) {
        if let Ok(TxnRecord { txn: Txn::SetData { data: Some(data), .. }, .. }) = TxnRecord::read(&record.0) {
            self.heard_config(&alloc::string::String::from_utf8_lossy(data), effects);
        }
    }

    /// A server that looks for a leader hears of a newer configuration than its own, which may not even have the
    /// servers that decide now: it begins anew under that one. True if it does.
    pub(super) fn adopt_newer(&mut self, now: Now, text: &str, effects: &mut Vec<Effect>) -> bool {
        let Some(ensemble) = &self.ensemble else { return false };
        if !self.config.reconfig || !ensemble.election.is_looking() {
            return false;
        }
        let Ok(membership) = Membership::parse(text) else { return false };
        let own = &ensemble.config.membership;
        if membership.version <= own.version {
            return false;
        }
        let same = membership.lines() == own.lines();
        self.put_in_force(membership, effects);
        if !same {
            self.look(now, Why::Reconfigured, effects);
        }
        !same
    }

    /// The reign has begun with the configuration that came with it.
    pub(super) fn adopt_pending(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let pending = self.ensemble.as_mut().and_then(|ensemble| ensemble.config.pending.clone());
        match pending {
            Some(membership) => self.activate(now, membership, effects),
            None => self.show_config(now),
        }
    }

    fn show_config(&mut self, now: Now) {
        let Some(ensemble) = &self.ensemble else { return };
        let membership = &ensemble.config.membership;
        self.tree.show_config(&membership.to_string(), Zxid(membership.version), now.wall_ms);
    }

    /// A change has committed.
    pub(crate) fn reconfigured(&mut self, now: Now, text: &[u8], effects: &mut Vec<Effect>) {
        let Ok(membership) = Membership::parse(&alloc::string::String::from_utf8_lossy(text)) else { return };
        let serving = self.pipeline().is_some();
        if self.config.reconfig && serving && !(planted::is(Bug::ConfigKept) && self.leader.is_none()) {
            self.activate(now, membership, effects);
        }
    }

    /// From now on this configuration decides. A server whose part in it is another begins anew.
    fn activate(&mut self, now: Now, membership: Membership, effects: &mut Vec<Effect>) {
        let designated = self.designated_leader();
        let Some(ensemble) = &self.ensemble else { return };
        let observed = ensemble.is_observer();
        let gives_way = self.leader.is_some() && designated != ensemble.me;
        self.put_in_force(membership, effects);
        self.show_config(now);
        let observes = self.ensemble.as_ref().is_some_and(|ensemble| ensemble.is_observer());
        if gives_way || observes != observed {
            self.look(now, Why::Reconfigured, effects);
        }
    }

    fn put_in_force(&mut self, membership: Membership, effects: &mut Vec<Effect>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let version = alloc::format!("{:x}", membership.version);
        tracing::info!(version, servers = membership.servers.len(), "a configuration is in force");
        effects.push(Effect::Servers(Vec::from([membership.clone()])));
        let op = PersistOp::SaveConfig { membership: membership.clone(), active: true };
        effects.push(Effect::Persist { seq: self.gate.issue(), op });
        ensemble.config.membership = membership;
        ensemble.config.pending = None;
        // Who was taken out and comes again is new.
        let membership = &ensemble.config.membership;
        ensemble.had_data.retain(|server| membership.servers.contains_key(server));
        let observer = ensemble.is_observer();
        ensemble.election.set_config(ensemble.config.membership.to_string(), observer);
        self.electorate_changed();
    }

    /// Who shall lead under the newest configuration: this leader if it votes there, else who has most of its log.
    pub(super) fn designated_leader(&self) -> ServerId {
        let Some(ensemble) = &self.ensemble else { return self.config.server };
        let latest = ensemble.config.latest();
        if latest.votes(ensemble.me) {
            return ensemble.me;
        }
        let acknowledged = |server: ServerId| {
            self.leader.as_ref().map(|leader| leader.acknowledged_by(server)).unwrap_or_default()
        };
        latest.voters().max_by_key(|server| acknowledged(*server)).unwrap_or(ensemble.me)
    }
}

/// Servers added, changed and removed, one by one.
fn step(active: &Membership, change: &Reconfig<'_>) -> Result<Membership, ErrorCode> {
    if !active.groups.is_empty() {
        return Err(ErrorCode::BadArguments);
    }
    let bad = |_| ErrorCode::BadArguments;
    let mut next = active.clone();
    let listed = |list: &Option<alloc::borrow::Cow<'_, str>>| -> Vec<alloc::string::String> {
        let items = list.as_deref().unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(Into::into).collect()
    };
    for id in listed(&change.leaving) {
        next.servers.remove(&ServerId(id.parse().map_err(|_| ErrorCode::BadArguments)?));
    }
    for joining in listed(&change.joining) {
        let (key, spec) = joining.split_once('=').ok_or(ErrorCode::BadArguments)?;
        let member = Member::parse(key, spec).map_err(bad)?;
        // `server.N` or N alone, as upstream takes it: whatever is before the last dot plays no part.
        let id = key.trim().rsplit('.').next().and_then(|id| id.parse().ok()).map(ServerId);
        let id = id.ok_or(ErrorCode::BadArguments)?;
        let collides = next.servers.iter().any(|(of, other)| *of != id && member.collides(other));
        if member.client.is_none() || collides {
            return Err(ErrorCode::BadArguments);
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
            step(&active, &change).map(|next| next.servers.keys().map(|id| id.0).collect::<Vec<i64>>())
        };
        for joining in ["server.2=b:1:2;3", "2=b:1:2;3", "zk.server.2=b:1:2;3", "server.2 = b:1:2;3"] {
            assert_eq!(ids(joining), Ok(vec![1, 2]), "{joining}");
        }
        for joining in ["server.=b:1:2;3", "server.x=b:1:2;3", "2", "2=b:1:2", "2=a:1:2;3"] {
            assert_eq!(ids(joining), Err(ErrorCode::BadArguments), "{joining}");
        }
    }
}
