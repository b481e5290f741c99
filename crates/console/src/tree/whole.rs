//! Changes of whole subtrees by a plan: deletes, and ACLs.

use super::{
    BETWEEN_LOOKS,
    batch::{Batches, Deletion, Refused, Walk, deletes, session, stopped_at},
    identity, look,
    params::Body,
    plan::{LISTED_MAX, Plan, PlanKind},
    refusal::{Change, sentence},
    runs::{End, Run},
    shown, write,
};
use crate::{
    error::ApiError,
    rights::{Caller, Writer},
    state::Console,
};
use axum::{Json, extract::State};
use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    path,
};
use ostler_server_core::report::{
    subtree::{Visited, WalkOrder},
    znodes::ZnodeReader,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Changes of ACLs that are under way at once.
const ACLS_AT_ONCE: usize = 20;

#[derive(Deserialize)]
pub(super) struct DeleteAll {
    plan: String,
    confirm: String,
}

#[derive(Deserialize)]
pub(super) struct SetAclAll {
    plan: String,
    acl: Vec<write::AclEntry>,
}

/// `POST /tree/delete-all`.
pub(super) async fn delete_all(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<DeleteAll>,
) -> Result<Json<Value>, ApiError> {
    let who = identity(&caller);
    let plans = &console.tree.plans;
    let plan = plans.take(&wanted.plan, PlanKind::Delete, &who)?;
    if wanted.confirm != path::name(&plan.path) {
        let error = ApiError::bad(format!(
            "To delete it all, write the last part of its path: {}.",
            shown::quoted(path::name(&plan.path))
        ))
        .at(&plan.path);
        plans.put_back(&wanted.plan, plan);
        return Err(error);
    }
    let (of, planned) = (plan.znodes, plan.clone());
    let working = console.clone();
    let begun = console
        .tree
        .runs
        .begin(who, of, |run| async move { Whole { console: working, caller, plan, run }.delete().await });
    if begun.is_err() {
        plans.put_back(&wanted.plan, planned);
    }
    begun.map(|run| Json(json!({ "run": run })))
}

/// `POST /tree/set-acl-all`.
pub(super) async fn set_acl_all(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<SetAclAll>,
) -> Result<Json<Value>, ApiError> {
    let acl = write::acl(&wanted.acl)?;
    let who = identity(&caller);
    let plans = &console.tree.plans;
    let plan = plans.take(&wanted.plan, PlanKind::SetAcl, &who)?;
    let (of, planned) = (plan.znodes, plan.clone());
    let working = console.clone();
    let begun = console.tree.runs.begin(who, of, |run| async move {
        Whole { console: working, caller, plan, run }.set_acl(&acl).await
    });
    if begun.is_err() {
        plans.put_back(&wanted.plan, planned);
    }
    begun.map(|run| Json(json!({ "run": run })))
}

/// A walk that also meets what the plan has not shown.
fn walk(path: &str, order: WalkOrder) -> Walk<'_> {
    Walk { path, order, upto: None }
}

/// A change of a subtree.
struct Whole {
    console: Arc<Console>,
    caller: Caller,
    plan: Plan,
    run: Arc<Run>,
}

impl Whole {
    async fn delete(self) -> End {
        let mut batches = match Batches::begin(
            &self.console,
            &self.caller,
            walk(&self.plan.path, WalkOrder::ChildrenFirst),
        ) {
            Ok(batches) => batches,
            Err(refusal) => return self.stopped(refusal),
        };
        while let Some(batch) = batches.next(&self.console).await {
            if let Some(end) = self.asked_or_new(&batch) {
                return end;
            }
            if let Some(hides) = batch.iter().find(|visited| visited.hides_children) {
                return self.stopped(Refused::of(
                    &hides.path,
                    "The ACL of the znode does not let you see its children (READ), so they cannot be deleted.",
                ));
            }
            let deletion = |of: Visited| Deletion { path: of.path, czxid: of.czxid, version: -1 };
            let ops = batch.into_iter().map(deletion).collect();
            if let Err(refused) = deletes(&self.console, &self.caller, &self.run, ops).await {
                return self.stopped(refused);
            }
        }
        End::done(format!("{} and all below it is deleted.", shown::quoted(&self.plan.path)))
    }

    async fn set_acl(self, acl: &[Acl]) -> End {
        let mut batches = match Batches::begin(
            &self.console,
            &self.caller,
            walk(&self.plan.path, WalkOrder::ChildrenFirst),
        ) {
            Ok(batches) => batches,
            Err(refusal) => return self.stopped(refusal),
        };
        while let Some(batch) = batches.next(&self.console).await {
            if let Some(end) = self.asked_or_new(&batch) {
                return end;
            }
            for some in batch.chunks(ACLS_AT_ONCE) {
                if let Err(refused) = self.set_acls(some, acl).await {
                    return self.stopped(refused);
                }
            }
        }
        End::done(format!("{} and all below it has the new ACL.", shown::quoted(&self.plan.path)))
    }

    /// Sets the ACLs of some znodes, up to the first one where that is refused.
    async fn set_acls(&self, some: &[Visited], acl: &[Acl]) -> Result<(), Refused> {
        let is_refused = |visited: &Visited| !visited.granted.any_of(Perms::ADMIN) || visited.hides_children;
        let allowed = some.iter().position(is_refused).unwrap_or(some.len());
        let client = session(&self.console, &self.caller, &some[0].path).await?;
        let set = |visited: &Visited| {
            client
                .set_acl(&visited.path, acl)
                .version(ostler_client::Version::Exactly(visited.aversion))
                .send()
        };
        let sent: Vec<_> = some[..allowed].iter().map(set).collect();
        let mut first = None;
        for (visited, set) in some.iter().zip(sent) {
            match set.await {
                Ok(_) => self.run.add_done(1),
                // It was deleted meanwhile.
                Err(error) if error.is_no_node() => {}
                Err(error) => first = first.or(Some(Refused::by(&visited.path, Change::SetAcl, &error))),
            }
        }
        match (first, some.get(allowed)) {
            (Some(refused), _) => Err(refused),
            (None, Some(visited)) => {
                Err(Refused::of(&visited.path, sentence(Change::SetAcl, ErrorCode::NoAuth)))
            }
            (None, None) => Ok(()),
        }
    }

    /// Whether the run ends before this batch: somebody wants it to stop, or there are znodes that the plan has not shown.
    fn asked_or_new(&self, batch: &[Visited]) -> Option<End> {
        if self.run.is_to_stop() {
            return Some(End::stopped("It was stopped, as you have asked.", self.left(None)));
        }
        let new = batch.iter().find(|visited| visited.czxid > self.plan.zxid)?;
        Some(self.stopped(Refused::of(
            &new.path,
            "The znode was created after the plan, so you have not seen it there. Make a new plan for what is left.",
        )))
    }

    fn stopped(&self, refused: Refused) -> End {
        let left = self.left(Some(&refused.path));
        End::stopped(stopped_at(&refused), left)
    }

    /// The first paths that are left, in the order of the run.
    fn left(&self, first: Option<&str>) -> Vec<String> {
        let mut left: Vec<String> = first.into_iter().map(Into::into).collect();
        if self.plan.kind == PlanKind::SetAcl {
            // Those that are done are there as well, so the place says it all.
            return left;
        }
        let reader = ZnodeReader::new(&self.caller.ids);
        let path = &self.plan.path;
        let begun = look(&self.console, |server| server.begin_walk(&reader, path, WalkOrder::ChildrenFirst));
        let Ok((mut walk, _)) = begun else { return left };
        while !walk.is_over() && left.len() < LISTED_MAX {
            let more = look(&self.console, |server| server.walk_on(&reader, &mut walk, LISTED_MAX));
            left.extend(more.into_iter().map(|visited| visited.path).filter(|path| first != Some(path)));
            std::thread::sleep(BETWEEN_LOOKS);
        }
        left.truncate(LISTED_MAX);
        left
    }
}

#[cfg(test)]
mod tests;
