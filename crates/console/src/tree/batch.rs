//! The steps of a run: znodes of a walk in batches, and multis that are tried again after connection loss.

use super::{
    look,
    plan::IN_A_LOOK,
    refusal::{Change, sentence},
    runs::Run,
    shown,
};
use crate::{inner_client, rights::Caller, state::Console};
use ostler_client::{Client, Error, Version};
use ostler_proto::{error::ErrorCode, id::Zxid};
use ostler_server_core::report::{
    subtree::{SubtreeWalk, Visited, WalkOrder},
    znodes::{ZnodeReader, ZnodeRefusal},
};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// The most operations of a multi.
pub(super) const OPS_MAX: usize = 100;
/// After a lost connection, a change is tried again for this time.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(300);
/// The pause between two looks of a run.
const BETWEEN: Duration = Duration::from_millis(1);
/// The bytes of an operation beside its path.
const OP_BYTES: usize = 64;

/// Where a run stops, and why.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) path: String,
    pub(super) sentence: String,
}

impl Refused {
    pub(super) fn of(path: &str, sentence: &str) -> Refused {
        Refused { path: path.to_owned(), sentence: sentence.to_owned() }
    }

    /// A change was refused, or could not be made.
    pub(super) fn by(path: &str, change: Change, error: &Error) -> Refused {
        match error.code() {
            Some(code) => Refused::of(path, sentence(change, code)),
            None if error.is_outcome_unknown() => Refused::of(
                path,
                "the connection was lost before the answer, so the last changes may have been made or not.",
            ),
            None => Refused::of(path, &format!("the server takes no changes now ({error}).")),
        }
    }

    pub(super) fn look(path: &str, refusal: &ZnodeRefusal) -> Refused {
        match refusal {
            ZnodeRefusal::NoNode { .. } => Refused::of(path, "there is no such znode any more."),
            ZnodeRefusal::NoAuth { .. } => Refused::of(path, "its ACL does not let you read it (READ)."),
            ZnodeRefusal::NotLoggedIn => Refused::of(path, "you are not signed in any more."),
        }
    }
}

/// A walk through a subtree.
pub(super) struct Walk<'a> {
    pub(super) path: &'a str,
    pub(super) order: WalkOrder,
    /// Znodes that were created later are left out; `None`: none are.
    pub(super) upto: Option<Zxid>,
}

/// The znodes of a walk, some at a time.
pub(super) struct Batches {
    ids: Vec<ostler_proto::acl::Id>,
    walk: SubtreeWalk,
    waiting: VecDeque<Visited>,
    bytes_max: usize,
    upto: Option<Zxid>,
}

impl Batches {
    pub(super) fn begin(
        console: &Console,
        caller: &Caller,
        Walk { path, order, upto }: Walk<'_>,
    ) -> Result<Batches, Refused> {
        let reader = ZnodeReader::new(&caller.ids);
        let begun = look(console, |server| server.begin_walk(&reader, path, order));
        let (walk, first) = begun.map_err(|refusal| Refused::look(path, &refusal))?;
        let bytes_max = console.handle.frame_max() / 2;
        let mut batches =
            Batches { ids: caller.ids.clone(), walk, waiting: VecDeque::new(), bytes_max, upto };
        batches.add(first);
        Ok(batches)
    }

    fn add(&mut self, more: Vec<Visited>) {
        let upto = self.upto;
        self.waiting.extend(more.into_iter().filter(|visited| upto.is_none_or(|upto| visited.czxid <= upto)));
    }

    /// The next znodes, at most as many as go into one multi; `None` after the last.
    pub(super) async fn next(&mut self, console: &Console) -> Option<Vec<Visited>> {
        while self.waiting.len() < OPS_MAX && !self.walk.is_over() {
            let more = {
                let reader = ZnodeReader::new(&self.ids);
                look(console, |server| server.walk_on(&reader, &mut self.walk, IN_A_LOOK))
            };
            self.add(more);
            tokio::time::sleep(BETWEEN).await;
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(next) = self.waiting.front() {
            bytes += next.path.len() + OP_BYTES;
            if batch.len() == OPS_MAX || !batch.is_empty() && bytes > self.bytes_max {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        (!batch.is_empty()).then_some(batch)
    }
}

/// A session for the changes of a run. Waits for a while if the server opens none now, as during an election.
pub(super) async fn session(console: &Arc<Console>, caller: &Caller, path: &str) -> Result<Client, Refused> {
    let began = Instant::now();
    loop {
        match inner_client::client(console, caller).await {
            Ok(client) => return Ok(client),
            Err(_) if began.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
            Err(_) => {
                let sentence = "the server opens no session for changes now. Is there a quorum?";
                return Err(Refused::of(path, sentence));
            }
        }
    }
}

/// A znode that is deleted.
pub(super) struct Deletion {
    pub(super) path: String,
    /// The zxid of its create, as it was visited.
    pub(super) czxid: Zxid,
    /// The version that it must have; -1 for any.
    pub(super) version: i32,
}

/// Deletes znodes in this order. Those that are gone already count as done. At a refusal those before it are deleted all
/// the same.
pub(super) async fn deletes(
    console: &Arc<Console>,
    caller: &Caller,
    run: &Run,
    mut ops: Vec<Deletion>,
) -> Result<(), Refused> {
    let began = Instant::now();
    let mut is_unknown = false;
    while let Some(first) = ops.first() {
        let first_path = first.path.clone();
        let client = session(console, caller, &first_path).await?;
        if is_unknown {
            match left(console, &client, run, &mut ops).await? {
                Some(0) => return Ok(()),
                Some(_) => {}
                None if began.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                None => return Err(Refused::of(&first_path, "the server has no leader.")),
            }
        }
        match delete_together(&client, &ops).await {
            Ok(()) => {
                run.add_done(ops.len());
                return Ok(());
            }
            Err((at, error)) if error.is_no_node() => {
                ops.remove(at);
                run.add_done(1);
            }
            Err((_, error)) if is_open(&error) && began.elapsed() < PATIENCE => {
                is_unknown = true;
                tokio::time::sleep(PAUSE).await;
            }
            Err((at, error)) => {
                let refused = Refused::by(&ops[at].path, Change::Delete, &error);
                if at > 0 && delete_together(&client, &ops[..at]).await.is_ok() {
                    run.add_done(at);
                }
                return Err(refused);
            }
        }
    }
    Ok(())
}

/// Takes out what is gone: nobody knows whether the last attempt was committed. Somebody may have created a znode anew
/// since, which is none of those that were to be deleted. Returns how many are left; `None` if the server cannot tell now.
async fn left(
    console: &Console,
    client: &Client,
    run: &Run,
    ops: &mut Vec<Deletion>,
) -> Result<Option<usize>, Refused> {
    // The server may be behind the attempt.
    let Some(Deletion { path, .. }) = ops.first() else { return Ok(Some(0)) };
    if client.sync(path).await.is_err() {
        return Ok(None);
    }
    let found = look(console, |server| {
        let czxid = |op: &Deletion| server.tree().get(&op.path).map(|node| node.stat.czxid);
        ops.iter().map(czxid).collect::<Vec<_>>()
    });
    let anew = |(op, found): &(&Deletion, &Option<Zxid>)| found.is_some_and(|czxid| czxid != op.czxid);
    if let Some((op, _)) = ops.iter().zip(&found).find(anew) {
        return Err(Refused::of(&op.path, "it was created anew after the plan."));
    }
    let mut found = found.into_iter();
    ops.retain(|_| match found.next().flatten() {
        Some(_) => true,
        None => {
            run.add_done(1);
            false
        }
    });
    Ok(Some(ops.len()))
}

/// Whether it is not known if a delete was done.
fn is_open(error: &Error) -> bool {
    let is_over = error.is_session_over() || error.is_closed();
    is_over || error.is_connection_trouble() || error.code() == Some(ErrorCode::SessionMoved)
}

/// The error has the place of the operation that was refused.
async fn delete_together(client: &Client, ops: &[Deletion]) -> Result<(), (usize, Error)> {
    let multi = ops.iter().fold(client.multi(), |multi, op| {
        multi.delete(&op.path).version(Version::from_wire(op.version)).and()
    });
    multi.await.map(drop).map_err(|error| match &error {
        Error::Multi { index, .. } if *index < ops.len() => (*index, error),
        _ => (0, error),
    })
}

/// The sentence that a run says about its end.
pub(super) fn stopped_at(refused: &Refused) -> String {
    format!("Stopped at {}: {}", shown::quoted(&refused.path), refused.sentence)
}

#[cfg(test)]
mod tests;
