//! Puts a subtree of a backup back into a running ensemble, through a client.
//!
//! Znodes come back as new ones: with data, ACL and kind (persistent, container, TTL), but with new zxids, times and
//! versions. The counter of sequential children begins anew below a parent that is created again.

use crate::error::{BackupError, Result};
use ostler_client::{Acl, Client, CreateMode, Error as ClientError, Perms, Stat};
use ostler_proto::{id::Zxid, path, stat::NodeKind};
use ostler_tree::{Tree, Znode};
use std::{collections::HashSet, time::Duration};

/// The limits of one multi: its operations, and its bytes. A server's default limit of a request is 1 MiB.
const BATCH_OPERATIONS: usize = 200;
const BATCH_BYTES: usize = 256 << 10;
/// The number of questions that are under way at once.
const ASKED_AT_ONCE: usize = 500;
/// The bytes of an operation in a request, without path, data and ACL.
const OPERATION_BYTES: usize = 64;

/// A znode to put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedZnode {
    /// The path.
    pub path: String,
    /// The data; `None` for null.
    pub data: Option<Vec<u8>>,
    /// The ACL.
    pub acl: Vec<Acl>,
    /// The kind.
    pub mode: CreateMode,
    /// Whether the znode is above the subtree. Then it is created if it is missing, and never changed.
    pub is_above: bool,
}

/// The znodes of a subtree, parents first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubtreePlan {
    /// The znodes to put back.
    pub znodes: Vec<PlannedZnode>,
    /// The znodes that cannot come back, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// The acts that were done, or would be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutBack {
    /// The paths of the znodes that were missing and were created.
    pub created: Vec<String>,
    /// The paths of the znodes that exist with the same data and ACL, or that are kept as they are.
    pub kept: Vec<String>,
    /// The paths of the znodes that exist and were given the data and ACL of the backup.
    pub overwritten: Vec<String>,
    /// The znodes that could not be put back, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// Collects the subtree at `root` from the tree of transaction `zxid`.
///
/// # Errors
/// [`BackupError::NoSubtree`] if the tree has no such znode.
pub fn plan(tree: &Tree, root: &str, zxid: Zxid) -> Result<SubtreePlan> {
    let missing = || BackupError::NoSubtree { path: root.to_owned(), zxid };
    tree.get(root).ok_or_else(missing)?;
    let mut plan = SubtreePlan::default();
    // The parent of the root is the root.
    let mut above: Vec<&str> = std::iter::successors(path::parent(root), |path| path::parent(path))
        .take_while(|path| *path != "/")
        .collect();
    above.reverse();
    for path in above {
        plan.add(tree, tree.get(path).ok_or_else(missing)?, true);
    }
    let frozen = tree.freeze();
    let below = if root == "/" { "/".to_owned() } else { format!("{root}/") };
    for node in frozen.nodes() {
        let is_inside = &*node.path == root || node.path.starts_with(&below);
        if is_inside && &*node.path != "/" {
            plan.add(tree, node, false);
        }
    }
    Ok(plan)
}

impl SubtreePlan {
    fn add(&mut self, tree: &Tree, node: &Znode, is_above: bool) {
        let path = node.path.to_string();
        if path == "/zookeeper" || path.starts_with("/zookeeper/") {
            let reason = "the servers keep it themselves; set quotas again with listquota and setquota";
            self.left_out.push((path, reason.to_owned()));
            return;
        }
        let mode = match node.stat.ephemeral_owner.kind(tree.types()) {
            NodeKind::Persistent => CreateMode::Persistent,
            NodeKind::Container => CreateMode::Container,
            NodeKind::Ttl(ms) => CreateMode::PersistentWithTtl(Duration::from_millis(ms.unsigned_abs())),
            NodeKind::Ephemeral(session) => {
                let reason = format!("it was an ephemeral of session {:#x}", session.0);
                self.left_out.push((path, reason));
                return;
            }
        };
        let acl = match tree.acl(node) {
            Some(acl) => acl.shared().to_vec(),
            None => vec![Acl::world(Perms::ALL)],
        };
        let data = node.data.as_deref().map(<[u8]>::to_vec);
        self.znodes.push(PlannedZnode { path, data, acl, mode, is_above });
    }
}

/// Puts the znodes of a plan back. Existing znodes are kept, or get the data and ACL of the backup with `overwrite`. With
/// `dry_run` it only finds out what would be done.
///
/// # Errors
/// The ensemble cannot be asked. A znode that is refused is no error, but in [`PutBack::failed`].
pub async fn put_back(
    client: &Client,
    plan: &SubtreePlan,
    overwrite: bool,
    dry_run: bool,
) -> Result<PutBack> {
    let (missing, existing) = compare(client, plan).await?;
    let mut done = PutBack::default();
    if dry_run {
        done.created = missing.iter().map(|znode| znode.path.clone()).collect();
    } else {
        create_all(client, &missing, &mut done).await;
    }
    for (znode, stat) in existing {
        if znode.is_above {
            continue;
        }
        let result = match overwrite {
            true => change(client, znode, &stat, dry_run).await,
            false => Ok(false),
        };
        match result {
            Ok(true) => done.overwritten.push(znode.path.clone()),
            Ok(false) => done.kept.push(znode.path.clone()),
            Err(reason) => done.failed.push((znode.path.clone(), reason)),
        }
    }
    Ok(done)
}

type Existing<'p> = Vec<(&'p PlannedZnode, Stat)>;

/// Asks which znodes exist. Everything below a missing one is missing, too.
async fn compare<'p>(
    client: &Client,
    plan: &'p SubtreePlan,
) -> Result<(Vec<&'p PlannedZnode>, Existing<'p>)> {
    let (mut missing, mut existing) = (Vec::new(), Vec::new());
    let mut gone: HashSet<&str> = HashSet::new();
    let depth = |znode: &PlannedZnode| znode.path.matches('/').count();
    for level in plan.znodes.chunk_by(|a, b| depth(a) == depth(b)) {
        for chunk in level.chunks(ASKED_AT_ONCE) {
            let below_gone =
                |znode: &PlannedZnode| path::parent(&znode.path).is_some_and(|above| gone.contains(above));
            let asked: Vec<_> = chunk
                .iter()
                .map(|znode| (znode, (!below_gone(znode)).then(|| client.exists(&znode.path).send())))
                .collect();
            for (znode, question) in asked {
                let stat = match question {
                    Some(question) => question.await.map_err(|source| BackupError::Client {
                        action: format!("say whether {} exists", znode.path),
                        source,
                    })?,
                    None => None,
                };
                match stat {
                    Some(stat) => existing.push((znode, stat)),
                    None => missing.push(znode),
                }
            }
            gone.extend(missing.iter().map(|znode| &*znode.path));
        }
    }
    Ok((missing, existing))
}

async fn create_all(client: &Client, missing: &[&PlannedZnode], done: &mut PutBack) {
    let mut rest = missing;
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(batch_length(rest));
        rest = after;
        // A multi cannot have a znode without data.
        let fits = batch.iter().all(|znode| znode.data.is_some());
        if fits && create_batch(client, batch).await.is_ok() {
            done.created.extend(batch.iter().map(|znode| znode.path.clone()));
            continue;
        }
        for znode in batch {
            match create_one(client, znode).await {
                Ok(()) => done.created.push(znode.path.clone()),
                Err(error) if error.is_node_exists() => done.kept.push(znode.path.clone()),
                Err(error) => done.failed.push((znode.path.clone(), error.to_string())),
            }
        }
    }
}

/// The number of znodes in the next multi; at least one.
fn batch_length(znodes: &[&PlannedZnode]) -> usize {
    let mut bytes = 0;
    let fits = |znode: &&&PlannedZnode| {
        let acl: usize = znode.acl.iter().map(Acl::size).sum();
        bytes += OPERATION_BYTES + znode.path.len() + znode.data.as_ref().map_or(0, Vec::len) + acl;
        bytes <= BATCH_BYTES
    };
    znodes.iter().take(BATCH_OPERATIONS).take_while(fits).count().max(1)
}

async fn create_batch(client: &Client, batch: &[&PlannedZnode]) -> std::result::Result<(), ClientError> {
    let mut multi = client.multi();
    for znode in batch {
        let data = znode.data.as_deref().unwrap_or_default();
        multi = multi.create(&znode.path, data).mode(znode.mode).acl(&znode.acl).and();
    }
    multi.await.map(drop)
}

/// Creates a znode alone: after a failed multi this shows which of its znodes is refused.
async fn create_one(client: &Client, znode: &PlannedZnode) -> std::result::Result<(), ClientError> {
    let data = znode.data.as_deref().unwrap_or_default();
    let create = client.create(&znode.path, data).mode(znode.mode).acl(znode.acl.clone()).idempotent();
    let create = if znode.data.is_none() { create.without_data() } else { create };
    create.await.map(drop)
}

/// Gives an existing znode the data and ACL of the backup. Returns whether it had others.
async fn change(
    client: &Client,
    znode: &PlannedZnode,
    stat: &Stat,
    dry_run: bool,
) -> std::result::Result<bool, String> {
    let text = |error: ClientError| error.to_string();
    if !matches!(znode.mode, CreateMode::Container | CreateMode::PersistentWithTtl(_))
        && stat.ephemeral_owner != 0
    {
        return Err("an ephemeral, container or TTL znode is in its place, and is kept".to_owned());
    }
    let (data, _) = client.get_data(&znode.path).await.map_err(text)?;
    let (acl, _) = client.get_acl(&znode.path).await.map_err(text)?;
    let wanted = znode.data.as_deref().unwrap_or_default();
    let (other_data, other_acl) = (data != wanted, differs(&acl, &znode.acl));
    if other_data && !dry_run {
        client.set_data(&znode.path, wanted).idempotent().await.map_err(text)?;
    }
    if other_acl && !dry_run {
        client.set_acl(&znode.path, &znode.acl).await.map_err(text)?;
    }
    Ok(other_data || other_acl)
}

/// Whether an ACL that a server showed differs from that of the backup. To a client without the right ADMIN, a server shows
/// `x` in place of a digest (upstream's `fixupACL`). Such a client could not change the ACL either, so `x` fits each digest.
fn differs(shown: &[Acl], wanted: &[Acl]) -> bool {
    let same_id = |shown: &Acl, wanted: &Acl| {
        let without_digest = |id: &str| id.split_once(':').map(|(user, _)| format!("{user}:x"));
        let (shown, wanted) = (&shown.id, &wanted.id);
        let hidden = shown.scheme == "digest" && without_digest(&wanted.id).as_ref() == Some(&shown.id);
        shown.scheme == wanted.scheme && (shown.id == wanted.id || hidden)
    };
    let same = |(shown, wanted): (&Acl, &Acl)| shown.perms == wanted.perms && same_id(shown, wanted);
    shown.len() != wanted.len() || !shown.iter().zip(wanted).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::{
        acl::Id,
        id::SessionId,
        stat::{EphemeralOwner, ExtendedTypes, StatPersisted},
    };

    #[test]
    fn a_digest_that_is_not_shown_is_no_difference() {
        let digest = |id: &str| Acl { perms: Perms::ALL, id: Id { scheme: "digest".into(), id: id.into() } };
        let world = Acl::world(Perms::READ);
        assert!(!differs(&[digest("ann:x"), world.clone()], &[digest("ann:pK9w="), world.clone()]));
        assert!(differs(&[digest("ann:x")], &[digest("bob:pK9w=")]), "another user");
        assert!(differs(&[digest("ann:pK9w=")], &[digest("ann:other=")]), "another digest");
        assert!(differs(&[digest("ann:x")], &[digest("ann:pK9w="), world]), "one entry less");
    }

    fn tree() -> Tree {
        let mut tree = Tree::fresh(ExtendedTypes { enabled: true, emulate_353: false });
        let mut put = |path: &str, owner: EphemeralOwner, acl: Option<&[Acl]>| {
            let stat = StatPersisted { ephemeral_owner: owner, ..StatPersisted::default() };
            tree.restore_node(path, Some(b"x"), stat, (acl.map_or(-1, |_| 1), acl)).unwrap();
        };
        let read = [Acl::world(Perms::READ)];
        put("/a", EphemeralOwner::NONE, None);
        put("/a/b", EphemeralOwner::NONE, Some(&read));
        put("/a/b/c", EphemeralOwner::CONTAINER, None);
        put("/a/b/e", EphemeralOwner(77), None);
        put("/a/b/c/t", EphemeralOwner::ttl(5000), None);
        put("/a/bb", EphemeralOwner::NONE, None);
        tree.finish_restore(Zxid(9), [(SessionId(77), 1000)], None);
        tree
    }

    #[test]
    fn a_plan_has_parents_first_and_no_ephemerals() {
        let plan = plan(&tree(), "/a/b", Zxid(9)).unwrap();
        let lines: Vec<_> =
            plan.znodes.iter().map(|znode| (&*znode.path, znode.mode, znode.is_above)).collect();
        assert_eq!(
            lines,
            [
                ("/a", CreateMode::Persistent, true),
                ("/a/b", CreateMode::Persistent, false),
                ("/a/b/c", CreateMode::Container, false),
                ("/a/b/c/t", CreateMode::PersistentWithTtl(Duration::from_secs(5)), false),
            ]
        );
        assert_eq!(plan.znodes[1].acl, [Acl::world(Perms::READ)]);
        assert_eq!(plan.left_out.len(), 1);
        assert!(plan.left_out[0].1.contains("0x4d"), "{:?}", plan.left_out);
    }

    #[test]
    fn a_subtree_that_is_not_there_is_an_error_and_the_root_leaves_system_znodes_out() {
        assert!(matches!(plan(&tree(), "/x", Zxid(9)), Err(BackupError::NoSubtree { .. })));
        let all = plan(&tree(), "/", Zxid(9)).unwrap();
        assert_eq!(all.znodes.len(), 5);
        assert!(all.left_out.iter().any(|(path, _)| path == "/zookeeper/config"));
    }

    #[test]
    fn a_batch_is_bounded_by_its_operations_and_its_bytes() {
        let znode = |size: usize| PlannedZnode {
            path: "/a".into(),
            data: Some(vec![0; size]),
            acl: vec![Acl::world(Perms::ALL)],
            mode: CreateMode::Persistent,
            is_above: false,
        };
        let (small, large) = (znode(1), znode(BATCH_BYTES));
        assert_eq!(batch_length(&vec![&small; 1000]), BATCH_OPERATIONS);
        assert_eq!(batch_length(&[&small, &large]), 1);
        assert_eq!(batch_length(&[&large, &large]), 1);
    }
}
