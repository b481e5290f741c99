//! Creates that are found again after their reply is lost.
//!
//! The name carries an id. If the connection is lost before the reply, the znode may exist: after `sync` and a
//! look at the parent's children that is known. Without the `sync` a server that lags could hide it; a create
//! that is still on its way cannot come later, because the session has moved away from where it came from.

use crate::{
    background,
    create::{Asked, Created, Plan},
    error::{Error, Result},
    operation::Operation,
    paths::join,
    retry::Tries,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::path;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::fmt;
use tracing::Instrument;
use uuid::Uuid;

const PREFIX: &str = "_c_";

/// The id that a protected znode carries in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProtectionId(Uuid);

impl ProtectionId {
    /// One that nobody else has.
    #[allow(clippy::new_without_default)]
    pub fn new() -> ProtectionId {
        ProtectionId(Uuid::new_v4())
    }

    /// Whether a znode's name carries it.
    pub fn is_in(self, name: &str) -> bool {
        name.strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix(&*self.to_string()))
            .is_some_and(|rest| rest.starts_with('-'))
    }

    /// `path` with the id in its last part.
    fn protect(self, path: &str) -> String {
        let at = path.rfind('/').map_or(0, |slash| slash + 1);
        format!("{}{PREFIX}{self}-{}", &path[..at], &path[at..])
    }
}

/// Where a client's ids come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    /// For tests that must repeat; the system's chance otherwise.
    seeded: Option<SplitMix64>,
}

impl Ids {
    pub(crate) fn from_seed(seed: u64) -> Ids {
        Ids { seeded: Some(SplitMix64::seed_from_u64(seed)) }
    }

    pub(crate) fn next(&mut self) -> ProtectionId {
        let Some(chance) = &mut self.seeded else { return ProtectionId::new() };
        let mut bytes = [0; 16];
        chance.fill_bytes(&mut bytes);
        ProtectionId(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

/// As in names of znodes.
impl fmt::Display for ProtectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name that a protected znode was given, without the id; any other name as it is.
pub fn without_protection(name: &str) -> &str {
    let Some(rest) = name.strip_prefix(PREFIX) else { return name };
    match (rest.get(..36), rest.get(36..37), rest.get(37..)) {
        (Some(id), Some("-"), Some(given)) if Uuid::try_parse(id).is_ok() => given,
        _ => name,
    }
}

/// A znode that nobody has taken over yet: dropped, it is deleted in the background.
struct Unclaimed {
    made: Option<(Plan, Created)>,
}

impl Unclaimed {
    fn claim(mut self) -> Option<Created> {
        self.made.take().map(|(_, created)| created)
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some((plan, created)) = self.made.take() {
            plan.undo(created);
        }
    }
}

/// Dropping the caller's future leaves nothing half done: it is brought to an end, and what was created is deleted.
pub(crate) fn create(plan: Plan, id: ProtectionId) -> Operation<Created> {
    let path = id.protect(&plan.topic.path);
    let (client, span) = (plan.client.clone(), plan.topic.span());
    let first = plan.ask(&path);
    let work = async move {
        let created = run(&plan, id, &path, first).await?;
        Ok(Unclaimed { made: Some((plan, created)) })
    };
    let work = background::ended_by_anybody(&client, work.instrument(span));
    Operation::new(async move { work.await?.claim().ok_or(Error::Closed) })
}

async fn run(plan: &Plan, id: ProtectionId, path: &str, first: Asked) -> Result<Created> {
    let mut tries = Tries::new(plan.client.retry);
    let mut first = Some(first);
    loop {
        let result = match tries.unknown {
            true if !planted::is(Bug::OrphanNotSought) => find_or_create(plan, id, path).await,
            _ => plan.with_parents(path, first.take().unwrap_or_else(|| plan.ask(path))).await,
        };
        let error = match result {
            Err(error) => error,
            made => return made,
        };
        if let Err(error) = tries.wait(error).await {
            if tries.unknown {
                background::delete_protected(&plan.client.unbound(), parent_of(path).to_owned(), id);
            }
            return Err(error);
        }
    }
}

async fn find_or_create(plan: &Plan, id: ProtectionId, path: &str) -> Result<Created> {
    let client = plan.client.with_retry(crate::RetryPolicy::none());
    let parent = parent_of(path);
    if !planted::is(Bug::SearchWithoutSync) {
        client.sync(parent).await?;
    }
    let names = match client.get_children(parent).await {
        Err(error) if error.is_no_node() => Vec::new(),
        names => names?,
    };
    for name in names.iter().filter(|name| id.is_in(name)) {
        let path = join(parent, name);
        if let Some(stat) = client.exists(&path).await? {
            if plan.is_ours(&stat) {
                return Ok(Created { path, stat });
            }
            // Of a session that is over: it will go, and must not be taken for ours.
            plan.client.unbound().delete(&path).in_background();
        }
    }
    plan.with_parents(path, plan.ask(path)).await
}

pub(crate) fn parent_of(path: &str) -> &str {
    path::parent(path).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_drawn_unless_they_come_from_a_seed() {
        let ids = |mut of: Ids| [of.next(), of.next()].map(|id| id.to_string());
        let seeded = ids(Ids::from_seed(1));
        assert_eq!(seeded, ids(Ids::from_seed(1)));
        assert!(seeded[0] != seeded[1] && seeded != ids(Ids::from_seed(2)));
        assert_ne!(ids(Ids::default()), ids(Ids::default()));
        assert!(Uuid::try_parse(&seeded[0]).is_ok());
    }

    #[test]
    fn names_are_those_of_curator() {
        let id = ProtectionId(Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
        let path = id.protect("/a/lock-");
        assert_eq!(path, "/a/_c_01234567-89ab-cdef-0123-456789abcdef-lock-");
        let name = format!("{}0000000007", path::name(&path));
        assert!(id.is_in(&name) && !ProtectionId::new().is_in(&name) && !id.is_in("lock-0000000007"));
        assert_eq!(without_protection(&name), "lock-0000000007");
        for other in ["lock-1", "_c_", "_c_x-lock", "_c_01234567-89ab-cdef-0123-456789abcdefXlock", "_c_äöü"]
        {
            assert_eq!(without_protection(other), other);
        }
        assert_eq!(id.protect("/"), "/_c_01234567-89ab-cdef-0123-456789abcdef-");
    }
}
