//! Decides how leadership, a lock or a lease can be taken from its holder, and what is wrong with a group. Pure.
//!
//! *Why only some of Ostler's recipes are fenced.* The holder's znode may be deleted only if its program notices that and
//! stops. A latch and a selector of Ostler watch their own znode as long as they lead (`lead` in
//! `crates/recipes/src/leader/latch.rs`, `Fence::lost` in `leader/selector.rs`), and the fence refuses their writes from
//! the deletion on. A guard of a mutex, a read-write lock or a semaphore watches its znode only if the program asks for
//! it (`lost`, `revocation_requested`), and so does the leadership of an `UnfairElection`: their writes through the fence
//! are refused as well, but a program that does nothing else would not hear of it. A znode of any other library is never
//! deleted: two programs would hold at once.

use super::{
    groups::{Contender, Group, REVOKED},
    patterns::{Kind, Maker},
};
use ostler_client::RecipeTag;

/// A way to take something from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Way {
    /// The holder's znode is deleted. The holder notices, and the fence refuses it.
    Fence,
    /// The holder is asked to release.
    Revoke,
    /// The holder's session is ended, with all that it owns.
    Expire,
    None,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::Fence, Way::Revoke, Way::Expire, Way::None];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Fence => "fence",
            Way::Revoke => "revoke",
            Way::Expire => "expire",
            Way::None => "none",
        }
    }
}

/// The facts of the holder that an offer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HolderFacts<'a> {
    /// Whether its session lives.
    pub(crate) is_alive: bool,
    /// Whether its client watches the data of its own znode; `None` if that client is connected to another server.
    pub(crate) watches_itself: Option<bool>,
    pub(crate) data: &'a [u8],
}

/// A way, and why it is this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) way: Way,
    pub(crate) sentence: &'static str,
}

const fn offer(way: Way, sentence: &'static str) -> Offer {
    Offer { way, sentence }
}

/// The way that is offered for the holder of a group.
pub(crate) fn for_holder(group: &Group, facts: HolderFacts<'_>) -> Offer {
    let Some(holder) = group.holder() else {
        return offer(Way::None, "Nobody holds, so there is nothing to hand over.");
    };
    if !facts.is_alive {
        return offer(Way::None, "The holder's session does not live any more. Its znode goes with it.");
    }
    match (holder.maker(), holder.tag) {
        (Maker::Ostler, Some(RecipeTag::LeaderLatch | RecipeTag::LeaderSelector)) => for_own_leader(facts),
        (Maker::Ostler, _) | (Maker::Curator, _) if is_revocable(group, facts) => for_revocable(facts),
        (Maker::Ostler, _) => offer(
            Way::Expire,
            "The session of the holder is to be ended, with all that it owns. This recipe of Ostler does not watch its znode by \
             itself, so the znode alone is not deleted.",
        ),
        (Maker::Curator, _) if is_lock(group) && is_unseen(facts) => offer(
            Way::Expire,
            "The session of the holder is to be ended, with all that it owns. Its client is connected to another server; only \
             there it can be seen whether the lock is revocable.",
        ),
        _ => offer(
            Way::Expire,
            "The session of the holder is to be ended, with all that it owns. Its znode alone is not deleted: the program may \
             not notice, and two would hold.",
        ),
    }
}

fn for_own_leader(facts: HolderFacts<'_>) -> Offer {
    match facts.watches_itself {
        Some(false) => offer(
            Way::Expire,
            "The session of the holder is to be ended, with all that it owns. The holder does not watch its znode now, as a \
             leader of Ostler does, so the znode alone is not deleted.",
        ),
        _ => offer(
            Way::Fence,
            "The znode of the holder is to be deleted. The holder watches it and stops leading, and the fence refuses its \
             later writes. Its session lives on.",
        ),
    }
}

fn for_revocable(facts: HolderFacts<'_>) -> Offer {
    if facts.data == REVOKED {
        return offer(
            Way::Revoke,
            "The holder has been asked to release the lock, and has not done so yet. It decides.",
        );
    }
    offer(
        Way::Revoke,
        "The holder is to be asked to release the lock, by data in its znode that it watches. It decides.",
    )
}

fn is_lock(group: &Group) -> bool {
    matches!(group.kind, Kind::Mutex | Kind::ReadWrite)
}

/// Whether the holder waits for the revocation: nothing else in these recipes watches the data of the holder's own znode.
/// Curator leaves the data of a revocable lock's znode empty, and of others not.
fn is_revocable(group: &Group, facts: HolderFacts<'_>) -> bool {
    let is_of_curator = group.holder().is_some_and(|holder| holder.maker() == Maker::Curator);
    let may_be = !is_of_curator || has_data_of_revocable(facts);
    is_lock(group) && may_be && facts.watches_itself == Some(true)
}

fn has_data_of_revocable(facts: HolderFacts<'_>) -> bool {
    facts.data.is_empty() || facts.data == REVOKED
}

/// Whether the lock can be revocable, and only another server knows.
fn is_unseen(facts: HolderFacts<'_>) -> bool {
    facts.watches_itself.is_none() && has_data_of_revocable(facts)
}

/// Something that is wrong with a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) kind: &'static str,
    pub(crate) sentence: String,
}

/// The kinds of alarms.
pub(crate) const ALARMS: [&str; 4] = ["holder_silent", "no_holder", "no_session", "same_session"];

/// The facts of a group that alarms depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct QueueFacts {
    /// The silence and the timeout of the holder's session, ms.
    pub(crate) silence: Option<(u64, i32)>,
    /// The number of contenders whose sessions do not live.
    pub(crate) dead: usize,
}

/// The alarms of a group.
pub(crate) fn alarms(group: &Group, facts: QueueFacts) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let mut alarm = |kind, sentence: String| alarms.push(Alarm { kind, sentence });
    if let Some((silent_ms, timeout_ms)) =
        facts.silence.filter(|(silent, timeout)| is_silent(*silent, *timeout))
    {
        alarm(
            "holder_silent",
            format!(
                "Nothing was heard of the holder's session for {silent_ms} ms; it expires after {timeout_ms} ms."
            ),
        );
    }
    if group.holding == 0 && !group.queue.is_empty() {
        alarm("no_holder", without_holder(group));
    }
    let strays = group.queue.iter().filter(|one| one.session.is_none()).count();
    if facts.dead + strays > 0 {
        alarm("no_session", without_session(facts.dead, strays));
    }
    if let Some(twice) = twice(group) {
        alarm(
            "same_session",
            format!(
                "The holder's session {twice} has another znode in the queue. Two threads of one program do that; \
                 otherwise the program has lost sight of a znode, and waits for itself."
            ),
        );
    }
    alarms
}

fn is_silent(silent_ms: u64, timeout_ms: i32) -> bool {
    u64::try_from(timeout_ms).is_ok_and(|timeout| timeout > 0 && silent_ms > timeout / 2)
}

fn without_holder(group: &Group) -> String {
    let waiting = group.waiting();
    match group.queue.first() {
        Some(Contender { session: None, path, .. }) => format!(
            "{} is the first in the queue and belongs to no session, so nobody holds, and {} wait for it for ever.",
            path,
            waiting - 1
        ),
        _ => format!("Nobody holds, and {waiting} wait."),
    }
}

fn without_session(dead: usize, strays: usize) -> String {
    match (dead, strays) {
        (0, strays) => format!(
            "Znodes in the queue that are no ephemerals, so that no session's end deletes them: {strays}."
        ),
        (dead, 0) => format!("Znodes in the queue whose sessions do not live: {dead}."),
        (dead, strays) => format!(
            "Znodes in the queue whose sessions do not live: {dead}; that are no ephemerals: {strays}."
        ),
    }
}

/// The holder's session, if it has another znode in a queue of those that hold alone.
fn twice(group: &Group) -> Option<ostler_proto::id::SessionId> {
    if matches!(group.kind, Kind::Semaphore | Kind::ReadWrite) {
        return None;
    }
    let session = group.holder()?.session?;
    group.queue.iter().skip(1).any(|one| one.session == Some(session)).then_some(session)
}

#[cfg(test)]
mod tests;
