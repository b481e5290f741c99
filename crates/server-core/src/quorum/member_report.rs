//! A member's place in its ensemble, for the admin server.

use super::{Ensemble, role::MemberRole};
use crate::server::Server;
use alloc::vec::Vec;
use ostler_proto::{
    id::{Epoch, ServerId},
    membership::Membership,
};

/// The stage of Zab (as `QuorumPeer.ZabState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZabStage {
    /// There is no leader.
    Election,
    /// There is a leader, and the epoch is being agreed on.
    Discovery,
    /// The server serves.
    Broadcast,
}

impl ZabStage {
    /// Upstream's name.
    pub fn name(self) -> &'static str {
        match self {
            ZabStage::Election => "election",
            ZabStage::Discovery => "discovery",
            ZabStage::Broadcast => "broadcast",
        }
    }
}

/// A member's place in its ensemble.
#[derive(Debug, Clone)]
pub struct MemberReport {
    /// This server.
    pub me: ServerId,
    /// The leader, once one is elected.
    pub leader: Option<ServerId>,
    /// The stage of Zab.
    pub stage: ZabStage,
    /// The current epoch.
    pub epoch: Epoch,
    /// The configuration in force.
    pub membership: Membership,
    /// At a leader: the other servers that have its history.
    pub synced: Vec<ServerId>,
}

impl MemberReport {
    /// Whether this server has a vote.
    pub fn votes(&self) -> bool {
        self.membership.votes(self.me)
    }
}

impl Ensemble {
    fn stage(&self) -> ZabStage {
        match &self.role {
            MemberRole::Looking(_) => ZabStage::Election,
            MemberRole::Leading(_) if self.has_established_epoch() => ZabStage::Broadcast,
            _ if self.following().is_some() => ZabStage::Broadcast,
            _ => ZabStage::Discovery,
        }
    }
}

impl Server {
    /// A member's place in its ensemble; `None` for a standalone server.
    pub fn member_report(&self) -> Option<MemberReport> {
        let ensemble = self.role.ensemble()?;
        let synced = match &ensemble.role {
            MemberRole::Leading(leader) => leader.learners.leading.synced().collect(),
            _ => Vec::new(),
        };
        Some(MemberReport {
            me: ensemble.me,
            leader: ensemble.leader(),
            stage: ensemble.stage(),
            epoch: ensemble.begun_epoch(),
            membership: ensemble.config.membership.clone(),
            synced,
        })
    }
}
