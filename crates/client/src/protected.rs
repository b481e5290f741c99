//! Protected creates: the znode is found again after its reply is lost.
//!
//! The name contains an id. If the connection is lost before the reply, the znode may exist. The client then sends
//! `sync` and reads the parent's children. Without the `sync`, a server that lags behind could miss the znode. The lost
//! create cannot be done later: the session has moved to another connection, and servers refuse requests from the old
//! one.

use crate::{
    background,
    create::{Created, Plan, SentCreate},
    error::{Error, Result},
    operation::Operation,
    paths::join,
    recipe_tag::RecipeTag,
    retry::Tries,
    tracing::Instrument,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::path;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::fmt;
use uuid::Uuid;

pub(crate) const PREFIX: &str = "_c_";

/// The id in the name of a protected znode: a UUID. Curator's protection id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProtectionId(Uuid);

impl ProtectionId {
    /// A new random id.
    #[allow(clippy::new_without_default)]
    pub fn new() -> ProtectionId {
        ProtectionId(Uuid::new_v4())
    }

    /// This id with a tag in it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tag(self, tag: RecipeTag) -> ProtectionId {
        ProtectionId(tag.mark(self.0))
    }

    /// Whether a znode's name has this id: `_c_` id `-` and any text.
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

/// Generates a client's protection ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    /// For repeatable tests; `None` for random ids.
    seeded: Option<SplitMix64>,
}

impl Ids {
    pub(crate) fn from_seed(seed: u64) -> Ids {
        Ids { seeded: Some(SplitMix64::seed_from_u64(seed)) }
    }

    pub(crate) fn next(&mut self) -> ProtectionId {
        let Some(random) = &mut self.seeded else { return ProtectionId::new() };
        let mut bytes = [0; 16];
        random.fill_bytes(&mut bytes);
        ProtectionId(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

/// The form in names of znodes.
impl fmt::Display for ProtectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A protected znode's name without prefix and id; any other name unchanged. Curator's `ProtectedUtils.normalize`.
pub fn without_protection(name: &str) -> &str {
    let Some(rest) = name.strip_prefix(PREFIX) else { return name };
    match (rest.get(..36), rest.get(36..37), rest.get(37..)) {
        (Some(id), Some("-"), Some(given)) if Uuid::try_parse(id).is_ok() => given,
        _ => name,
    }
}

/// A created znode that the caller has not received yet. If it is dropped, the znode is deleted in the background.
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

/// A protected create. If the caller drops the future, the create is completed in the background, and its znode deleted.
pub(crate) fn create(plan: Plan, id: ProtectionId) -> Operation<Created> {
    let path = id.protect(&plan.context.path);
    let (client, span) = (plan.client.clone(), plan.context.span());
    let first = plan.ask(&path);
    let work = async move {
        let created = run(&plan, id, &path, first).await?;
        Ok(Unclaimed { made: Some((plan, created)) })
    };
    let work = background::run_to_end(&client, work.instrument(span));
    Operation::new(async move { work.await?.claim().ok_or(Error::Closed) })
}

async fn run(plan: &Plan, id: ProtectionId, path: &str, first: SentCreate) -> Result<Created> {
    let mut tries = Tries::of(&plan.client);
    let mut first = Some(first);
    loop {
        let result = match tries.may_be_done {
            true if !planted::is(Bug::OrphanNotSought) => find_or_create(plan, id, path).await,
            _ => plan.with_parents(path, first.take().unwrap_or_else(|| plan.ask(path))).await,
        };
        let error = match result {
            Err(error) => error,
            made => return made,
        };
        if let Err(error) = tries.wait(error).await {
            if tries.may_be_done {
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
            // It belongs to a session that is over, and must not count as created in this one.
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
    fn ids_are_random_without_a_seed_and_repeatable_with_one() {
        let ids = |mut of: Ids| [of.next(), of.next()].map(|id| id.to_string());
        let seeded = ids(Ids::from_seed(1));
        assert_eq!(seeded, ids(Ids::from_seed(1)));
        assert!(seeded[0] != seeded[1] && seeded != ids(Ids::from_seed(2)));
        assert_ne!(ids(Ids::default()), ids(Ids::default()));
        assert!(Uuid::try_parse(&seeded[0]).is_ok());
    }

    #[test]
    fn names_are_like_curators() {
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
