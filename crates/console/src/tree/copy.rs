//! Copies of subtrees, and moves: a copy, and then a delete of what was copied.

use super::{
    batch::{Batches, Deletion, Refused, Walk, deletes, session, stopped_at},
    identity, look,
    params::{Body, valid_path},
    plan::{LISTED_MAX, is_small, may_be_whole},
    refusal::{Change, refused},
    runs::{End, Run},
    shown,
};
use crate::{
    error::{ApiError, Code},
    rights::{Caller, Writer},
    state::Console,
};
use axum::{Json, extract::State};
use ostler_client::{Client, CreateMode};
use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    id::Zxid,
    path,
    reply::Data,
    stat::NodeKind,
};
use ostler_server_core::report::{
    subtree::{Visited, WalkOrder},
    znodes::ZnodeReader,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

/// The bytes of an operation beside its path and its data.
const OP_BYTES: usize = 256;

#[derive(Deserialize)]
pub(super) struct Copy {
    from: String,
    to: String,
    #[serde(default, rename = "move")]
    is_move: bool,
}

/// `POST /tree/copy`.
pub(super) async fn copy(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<Copy>,
) -> Result<Json<Value>, ApiError> {
    let from = valid_path(&wanted.from)?.to_owned();
    let to = valid_path(&wanted.to)?.to_owned();
    may_be_whole(&from)?;
    may_be_whole(&to)?;
    if path::is_within(&to, &from) {
        return Err(ApiError::bad("A znode cannot be copied to itself, or to a place below it.").at(&to));
    }
    let reader = ZnodeReader::new(&caller.ids);
    let zxid = is_small(&console, &reader, &from)?;
    let seen = look(&console, |server| server.count_below(&reader, &from));
    let (below, _) = seen.map_err(|refusal| refused(&from, refusal))?;
    if look(&console, |server| server.tree().get(&to).is_some()) {
        return Err(ApiError::new(
            Code::Client(ErrorCode::NodeExists),
            "A znode with this path exists already: a copy needs a new one.",
        )
        .at(&to));
    }
    let znodes = below + 1;
    let of = if wanted.is_move { 2 * znodes } else { znodes };
    let (working, who, is_move) = (console.clone(), identity(&caller), wanted.is_move);
    let begun = console.tree.runs.begin(who, of, |run| async move {
        Copying { console: working, caller, run, from, to, zxid, is_move }.run().await
    });
    begun.map(|run| Json(json!({ "run": run })))
}

struct Copying {
    console: Arc<Console>,
    caller: Caller,
    run: Arc<Run>,
    from: String,
    to: String,
    /// Znodes that were created or changed later are not deleted by a move.
    zxid: Zxid,
    is_move: bool,
}

/// A znode with all that its copy needs.
struct Whole {
    path: String,
    data: Data,
    acl: Vec<Acl>,
    aversion: i32,
    mode: CreateMode,
}

/// The versions of the ACLs that were copied. No zxid tells when an ACL was set.
#[derive(Default)]
struct Aversions {
    /// By the hashes of paths: there may be a million. Most znodes have the ACL of their create, and are not here.
    set: HashMap<u64, i32>,
    hashes: RandomState,
}

impl Aversions {
    fn add(&mut self, path: &str, aversion: i32) {
        if aversion != 0 {
            self.set.insert(self.hashes.hash_one(path), aversion);
        }
    }

    fn of(&self, path: &str) -> i32 {
        self.set.get(&self.hashes.hash_one(path)).copied().unwrap_or(0)
    }
}

impl Copying {
    async fn run(self) -> End {
        if let Err(refused) = self.check().await {
            let sentence = format!("{} Nothing was copied.", stopped_at(&refused));
            return End::stopped(sentence, vec![refused.path]);
        }
        let aversions = match self.copy().await {
            Ok(aversions) => aversions,
            Err(end) => return end,
        };
        let (from, to) = (shown::quoted(&self.from), shown::quoted(&self.to));
        if !self.is_move {
            return End::done(format!("{from} and all below it is copied to {to}."));
        }
        match self.delete(&aversions).await {
            Ok(()) => End::done(format!("{from} and all below it is now {to}.")),
            Err(end) => end,
        }
    }

    /// The znodes that are copied: those that existed when the copy began. A queue may grow faster than it is copied.
    fn sources(&self) -> Walk<'_> {
        Walk { path: &self.from, order: WalkOrder::ParentsFirst, upto: Some(self.zxid) }
    }

    /// Looks for what cannot be copied before anything is.
    async fn check(&self) -> Result<(), Refused> {
        let mut batches = Batches::begin(&self.console, &self.caller, self.sources())?;
        while let Some(batch) = batches.next(&self.console).await {
            for visited in &batch {
                self.can_be_copied(visited)?;
            }
        }
        Ok(())
    }

    fn can_be_copied(&self, visited: &Visited) -> Result<(), Refused> {
        let refused = |sentence: &str| Err(Refused::of(&visited.path, sentence));
        if visited.owner().is_some() {
            return refused("it is an ephemeral, and belongs to the session of its client.");
        }
        if !visited.granted.any_of(Perms::READ) {
            return refused("its ACL does not let you read it (READ).");
        }
        if visited.hides_digests {
            return refused(
                "you do not see the digests in its ACL (that needs ADMIN), so its copy would have another one.",
            );
        }
        if self.is_move && !visited.may_be_deleted {
            return refused(
                "the ACL of its parent does not let you delete it (DELETE), so it cannot be moved.",
            );
        }
        Ok(())
    }

    async fn copy(&self) -> Result<Aversions, End> {
        let mut aversions = Aversions::default();
        let begun = Batches::begin(&self.console, &self.caller, self.sources());
        let mut batches = begun.map_err(|refused| self.broken_off(&refused))?;
        while let Some(batch) = batches.next(&self.console).await {
            let client = session(&self.console, &self.caller, &batch[0].path)
                .await
                .map_err(|refused| self.broken_off(&refused))?;
            let mut whole: Vec<Whole> = Vec::new();
            let (mut bytes, most) = (0, self.console.handle.frame_max() / 2);
            for visited in &batch {
                if self.run.is_to_stop() {
                    let stopped = "It was stopped, as you have asked. The part that was copied is there.";
                    return Err(End::stopped(stopped, vec![visited.path.clone()]));
                }
                let Some(next) = self.whole(visited).map_err(|refused| self.broken_off(&refused))? else {
                    continue;
                };
                aversions.add(&next.path, next.aversion);
                let size = next.size();
                if !whole.is_empty() && bytes + size > most {
                    let some = std::mem::take(&mut whole);
                    self.create(&client, some).await.map_err(|refused| self.broken_off(&refused))?;
                    bytes = 0;
                }
                bytes += size;
                whole.push(next);
            }
            if !whole.is_empty() {
                self.create(&client, whole).await.map_err(|refused| self.broken_off(&refused))?;
            }
        }
        Ok(aversions)
    }

    fn broken_off(&self, refused: &Refused) -> End {
        let sentence = format!("{} The part that was copied is there.", stopped_at(refused));
        End::stopped(sentence, vec![refused.path.clone()])
    }

    /// A znode with its data and its ACL; `None` if it was deleted meanwhile.
    fn whole(&self, visited: &Visited) -> Result<Option<Whole>, Refused> {
        self.can_be_copied(visited)?;
        let (path, reader) = (&visited.path, ZnodeReader::new(&self.caller.ids));
        let seen = look(&self.console, |server| {
            let report = server.znode(&reader, path)?;
            server.znode_data(&reader, path).map(|(data, _)| (report, data))
        });
        let (report, data) = match seen {
            Ok(seen) => seen,
            Err(ostler_server_core::report::znodes::ZnodeRefusal::NoNode { .. }) => return Ok(None),
            Err(refusal) => return Err(Refused::look(path, &refusal)),
        };
        let is_hidden = |entry: &Acl| entry.id.scheme == "digest";
        if !report.granted.any_of(Perms::ADMIN) && report.acl.iter().any(is_hidden) {
            return Err(Refused::of(path, "its ACL was changed meanwhile."));
        }
        let mode = match report.kind {
            NodeKind::Container => CreateMode::Container,
            NodeKind::Ttl(ttl_ms) => {
                CreateMode::PersistentWithTtl(Duration::from_millis(u64::try_from(ttl_ms).unwrap_or(0)))
            }
            NodeKind::Persistent => CreateMode::Persistent,
            NodeKind::Ephemeral(_) => {
                return Err(Refused::of(
                    path,
                    "it is an ephemeral, and belongs to the session of its client.",
                ));
            }
        };
        Ok(Some(Whole { path: path.clone(), data, acl: report.acl, aversion: report.stat.aversion, mode }))
    }

    /// The place of a znode's copy.
    fn place(&self, path: &str) -> String {
        format!("{}{}", self.to, &path[self.from.len()..])
    }

    async fn create(&self, client: &Client, whole: Vec<Whole>) -> Result<(), Refused> {
        // The client's multi has no null data, and null data are not empty data.
        if whole.iter().any(|next| next.data.is_none()) {
            return self.create_each(client, &whole).await;
        }
        let count = whole.len();
        let paths: Vec<String> = whole.iter().map(|next| next.path.clone()).collect();
        let multi = whole.into_iter().fold(client.multi(), |multi, next| {
            let data = next.data.as_deref().unwrap_or_default();
            multi.create(&self.place(&next.path), data).mode(next.mode).acl(next.acl).and()
        });
        match multi.await {
            Ok(_) => {
                self.run.add_done(count);
                Ok(())
            }
            Err(error) => {
                let at = match &error {
                    ostler_client::Error::Multi { index, .. } => *index,
                    _ => 0,
                };
                let path = paths.get(at).unwrap_or(&self.from);
                Err(Refused::by(&self.place(path), Change::Create, &error))
            }
        }
    }

    /// Creates znodes by a request for each. Requests of a session are done in their order, so parents come first.
    async fn create_each(&self, client: &Client, whole: &[Whole]) -> Result<(), Refused> {
        let create = |next: &Whole| {
            let (to, data) = (self.place(&next.path), next.data.as_deref());
            let create = client.create(&to, data.unwrap_or_default());
            let create = create.mode(next.mode).acl(next.acl.clone());
            if data.is_none() { create.without_data().send() } else { create.send() }
        };
        let sent: Vec<_> = whole.iter().map(create).collect();
        let mut first = None;
        for (next, created) in whole.iter().zip(sent) {
            match created.await {
                Ok(_) => self.run.add_done(1),
                Err(error) => {
                    first =
                        first.or_else(|| Some(Refused::by(&self.place(&next.path), Change::Create, &error)));
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Deletes what was copied, unless it has changed since.
    async fn delete(&self, copied: &Aversions) -> Result<(), End> {
        let left = |refused: Refused| {
            let sentence =
                format!("{} The copy is whole, and the rest of the old one is left.", stopped_at(&refused));
            End::stopped(sentence, vec![refused.path])
        };
        let walk = Walk { path: &self.from, order: WalkOrder::ChildrenFirst, upto: None };
        let mut batches = Batches::begin(&self.console, &self.caller, walk).map_err(left)?;
        while let Some(batch) = batches.next(&self.console).await {
            if self.run.is_to_stop() {
                let paths = batch.into_iter().map(|visited| visited.path).take(LISTED_MAX).collect();
                let stopped = "It was stopped, as you have asked. The copy is whole, and the rest of the old one is left.";
                return Err(End::stopped(stopped, paths));
            }
            let is_new = |visited: &&Visited| {
                visited.czxid.max(visited.mzxid) > self.zxid
                    || visited.hides_children
                    || visited.aversion != copied.of(&visited.path)
            };
            if let Some(new) = batch.iter().find(is_new) {
                return Err(left(Refused::of(&new.path, "it was created or changed since the move began.")));
            }
            let deletion = |of: Visited| Deletion { path: of.path, czxid: of.czxid, version: of.version };
            let ops = batch.into_iter().map(deletion).collect();
            deletes(&self.console, &self.caller, &self.run, ops).await.map_err(left)?;
        }
        Ok(())
    }
}

impl Whole {
    fn size(&self) -> usize {
        let acl: usize = self.acl.iter().map(Acl::size).sum();
        OP_BYTES + self.path.len() + self.data.as_ref().map_or(0, |data| data.len()) + acl
    }
}
