//! Plans: what a change of a whole subtree would meet. It is shown first, and only what was shown is changed.

use super::{BETWEEN_LOOKS, aside, identity, look, params::Params, refusal::refused, runs::locked, shown};
use crate::{
    error::{ApiError, Code},
    people,
    rights::{self, Caller},
    state::Console,
};
use axum::{Json, extract::State, http::HeaderMap};
use ostler_proto::{
    acl::{Id, Perms},
    id::{SessionId, Zxid},
    path,
};
use ostler_server_core::report::{
    subtree::{Visited, WalkOrder},
    znodes::ZnodeReader,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A plan holds for this time.
const LASTS: Duration = Duration::from_secs(300);
/// Plans at once. The oldest makes room.
const PLANS_MAX: usize = 64;
/// The time for which a caller waits until the plans of others are made.
const TURN_WITHIN: Duration = Duration::from_secs(5);
/// The most znodes of a plan.
const ZNODES_MAX: usize = 1_000_000;
/// The most paths in a list of an answer, and the most sessions.
pub(super) const LISTED_MAX: usize = 100;
/// Znodes that are visited in one look.
pub(super) const IN_A_LOOK: usize = 250;
/// Names of locks and of leaders' queues by Curator, kazoo, ZooKeeper's recipes and Ostler.
const LOCK_MARKS: [&str; 7] = ["lock-", "latch-", "lease-", "__lock__", "__READ__", "__WRIT__", "__rlock__"];

/// The change that a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanKind {
    Delete,
    SetAcl,
}

/// A plan.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) path: String,
    pub(super) kind: PlanKind,
    pub(super) znodes: usize,
    /// Znodes that were created later were not shown.
    pub(super) zxid: Zxid,
    who: Vec<Id>,
    made: Instant,
}

#[cfg(test)]
impl Plan {
    /// A plan to set the ACLs of a subtree, as of now.
    pub(super) fn of_acls(path: &str, znodes: usize) -> Plan {
        let (who, made) = (Vec::new(), Instant::now());
        Plan { path: path.into(), kind: PlanKind::SetAcl, znodes, zxid: Zxid(u64::MAX), who, made }
    }
}

/// The plans that hold.
#[derive(Default)]
pub(super) struct Plans {
    by_id: Mutex<BTreeMap<String, Plan>>,
    /// Held while a plan is made: one at a time.
    making: Arc<tokio::sync::Mutex<()>>,
}

impl Plans {
    fn keep(&self, id: String, plan: Plan) {
        let mut plans = locked(&self.by_id);
        plans.retain(|_, plan| plan.made.elapsed() < LASTS);
        if plans.len() >= PLANS_MAX
            && let Some(oldest) = plans.iter().min_by_key(|(_, plan)| plan.made).map(|(id, _)| id.clone())
        {
            plans.remove(&oldest);
        }
        plans.insert(id, plan);
    }

    /// Takes a plan of this person. It can be used once.
    pub(super) fn take(&self, id: &str, kind: PlanKind, who: &[Id]) -> Result<Plan, ApiError> {
        let mut plans = locked(&self.by_id);
        plans.retain(|_, plan| plan.made.elapsed() < LASTS);
        let is_fit = plans.get(id).is_some_and(|plan| plan.kind == kind && plan.who == who);
        let plan = if is_fit { plans.remove(id) } else { None };
        plan.ok_or_else(|| {
            ApiError::new(
                Code::Plan,
                "There is no such plan of yours (any more): a plan holds for 5 minutes, for one change, and for the \
                 identity that asked for it. Make it again.",
            )
        })
    }

    /// Puts a plan back that could not be begun.
    pub(super) fn put_back(&self, id: &str, plan: Plan) {
        locked(&self.by_id).insert(id.to_owned(), plan);
    }
}

/// The sums and lists of a plan.
#[derive(Default)]
struct Found {
    znodes: usize,
    bytes: u64,
    ephemerals: usize,
    owners: BTreeMap<SessionId, usize>,
    watches: usize,
    locks: BTreeSet<String>,
    refused: Vec<String>,
}

impl Found {
    fn add(&mut self, visited: &Visited, kind: PlanKind) {
        self.znodes += 1;
        self.watches += visited.watchers;
        let is_allowed = match kind {
            PlanKind::Delete => visited.may_be_deleted && !visited.hides_children,
            PlanKind::SetAcl => visited.granted.any_of(Perms::ADMIN) && !visited.hides_children,
        };
        if !is_allowed && self.refused.len() < LISTED_MAX {
            self.refused.push(visited.path.clone());
        }
        if !visited.granted.any_of(Perms(Perms::READ.0 | Perms::ADMIN.0)) {
            // Nothing else of it is shown to the caller.
            return;
        }
        self.bytes += visited.data_length as u64;
        if let Some(session) = visited.owner() {
            self.ephemerals += 1;
            if self.owners.len() < LISTED_MAX || self.owners.contains_key(&session) {
                *self.owners.entry(session).or_default() += 1;
            }
            let name = path::name(&visited.path);
            let is_lock =
                shown::sequence(name).is_some() && LOCK_MARKS.iter().any(|mark| name.contains(mark));
            if is_lock
                && self.locks.len() < LISTED_MAX
                && let Some(parent) = path::parent(&visited.path)
            {
                self.locks.insert(parent.to_owned());
            }
        }
    }
}

/// Refuses what is never changed as a whole.
pub(super) fn may_be_whole(path: &str) -> Result<(), ApiError> {
    if !path::is_special(path) {
        return Ok(());
    }
    Err(ApiError::bad(format!(
        "{path} is never changed as a whole: the ensemble's own znodes are below it. Change its children."
    ))
    .at(path))
}

/// `GET /tree/plan`.
pub(super) async fn plan(
    State(console): State<Arc<Console>>,
    caller: Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    let path = params.path("path")?;
    let kind = params.word("kind", &[("delete", PlanKind::Delete), ("set-acl", PlanKind::SetAcl)])?;
    may_be_whole(&path)?;
    let is_viewer = rights::is_viewer(&caller, &headers, &console);
    let who = identity(&caller);
    let making = console.tree.plans.making.clone();
    let Ok(turn) = tokio::time::timeout(TURN_WITHIN, making.lock_owned()).await else {
        return Err(ApiError::new(
            Code::Busy,
            "A plan of somebody else is being made. Try again in a moment.",
        ));
    };
    let (of, top) = (console.clone(), path.clone());
    let counting = aside(move || {
        let reader = ZnodeReader::new(&caller.ids);
        let (zxid, found) = count(&of, &reader, &top, kind)?;
        let owners = owners(&of, &found, is_viewer);
        // The turn goes on as long as the walk does, also if the caller has gone away.
        drop(turn);
        Ok((zxid, found, owners))
    });
    let (zxid, found, owners) = counting.await?;
    let Some(ticket) = people::new_ticket() else {
        return Err(ApiError::new(Code::Server, "The system gives no random numbers, so there is no plan."));
    };
    let id = people::hex(&ticket);
    let body = json!({
        "id": id,
        "path": path,
        "znodes": found.znodes,
        "bytes": found.bytes,
        "ephemerals": found.ephemerals,
        "owners": owners,
        "watches": is_viewer.then_some(found.watches),
        "locks": found.locks,
        "refused": found.refused,
        "expires_in_ms": LASTS.as_millis() as u64,
        "as_of_zxid": zxid.to_string(),
    });
    let made = Instant::now();
    console.tree.plans.keep(id, Plan { path, kind, znodes: found.znodes, zxid, who, made });
    Ok(Json(body))
}

/// Walks through a subtree. Znodes that are created meanwhile do not count.
fn count(
    console: &Console,
    reader: &ZnodeReader,
    path: &str,
    kind: PlanKind,
) -> Result<(Zxid, Found), ApiError> {
    let zxid = is_small(console, reader, path)?;
    let begun = look(console, |server| server.begin_walk(reader, path, WalkOrder::ChildrenFirst));
    let (mut walk, first) = begun.map_err(|refusal| refused(path, refusal))?;
    let mut found = Found::default();
    let mut add = |visited: &[Visited]| {
        visited.iter().filter(|visited| visited.czxid <= zxid).for_each(|visited| found.add(visited, kind));
    };
    add(&first);
    while !walk.is_over() {
        add(&look(console, |server| server.walk_on(reader, &mut walk, IN_A_LOOK)));
        thread::sleep(BETWEEN_LOOKS);
    }
    Ok((zxid, found))
}

/// Refuses a subtree that is too large for one run. Returns the last transaction applied.
pub(super) fn is_small(console: &Console, reader: &ZnodeReader, path: &str) -> Result<Zxid, ApiError> {
    let seen = look(console, |server| server.count_below(reader, path));
    let (below, zxid) = seen.map_err(|refusal| refused(path, refusal))?;
    if below >= ZNODES_MAX {
        return Err(ApiError::new(
            Code::TooLarge,
            format!("There are {below} znodes below it, and one change takes at most {ZNODES_MAX}. Take its parts."),
        )
        .at(path));
    }
    Ok(zxid)
}

/// The sessions with most ephemerals, with the addresses of their clients for those who may see them.
fn owners(console: &Console, found: &Found, is_viewer: bool) -> Value {
    let mut owners: Vec<(SessionId, usize)> = found.owners.iter().map(|(id, count)| (*id, *count)).collect();
    owners.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let addresses = match is_viewer {
        true => look(console, |server| {
            owners.iter().map(|(session, _)| server.address_of(*session)).collect::<Vec<_>>()
        }),
        false => vec![None; owners.len()],
    };
    owners
        .iter()
        .zip(addresses)
        .map(|((session, count), address)| {
            let address = address.map(|address| address.to_string());
            json!({ "session": session.to_string(), "count": count, "address": address })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str, age: Duration) -> Plan {
        Plan {
            path: "/a".into(),
            kind: PlanKind::Delete,
            znodes: 1,
            zxid: Zxid(1),
            who: vec![Id::new("digest", name)],
            made: Instant::now().checked_sub(age).unwrap(),
        }
    }

    #[test]
    fn a_plan_holds_for_five_minutes_for_its_maker_and_once() {
        let (plans, ann) = (Plans::default(), [Id::new("digest", "ann")]);
        plans.keep("1".into(), plan("ann", Duration::from_secs(290)));
        plans.keep("2".into(), plan("ann", Duration::from_secs(300)));
        assert!(plans.take("2", PlanKind::Delete, &ann).is_err(), "too old");
        assert!(plans.take("1", PlanKind::Delete, &[Id::new("digest", "bob")]).is_err());
        assert!(plans.take("1", PlanKind::SetAcl, &ann).is_err());
        let taken = plans.take("1", PlanKind::Delete, &ann).unwrap();
        assert!(plans.take("1", PlanKind::Delete, &ann).is_err(), "used");
        plans.put_back("1", taken);
        assert!(plans.take("1", PlanKind::Delete, &ann).is_ok());
    }

    #[test]
    fn the_oldest_plan_makes_room() {
        let (plans, ann) = (Plans::default(), [Id::new("digest", "ann")]);
        for age in 0..=PLANS_MAX as u64 {
            plans.keep(age.to_string(), plan("ann", Duration::from_secs(age)));
        }
        assert_eq!(locked(&plans.by_id).len(), PLANS_MAX);
        assert!(plans.take(&(PLANS_MAX - 1).to_string(), PlanKind::Delete, &ann).is_err());
        assert!(plans.take("0", PlanKind::Delete, &ann).is_ok());
    }
}
