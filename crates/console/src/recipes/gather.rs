//! Gathers the groups from the core: from the ephemerals by their owners, not from a walk of the tree. Each look at the
//! core takes a bounded number of entries, and others have their turn between two looks. The result is kept for a short
//! time for all callers.

use super::{
    groups::{self, Contender, Facts, Group, Queues},
    offer::{self, Alarm, HolderFacts, Offer, QueueFacts},
    patterns,
};
use ostler_proto::{
    id::{SessionId, Zxid},
    path,
};
use ostler_server::admin::AdminHandle;
use ostler_server_core::{
    Now, Server,
    report::holders::{OwnerSession, ReadAcl, RecipeZnode},
};
use std::{
    collections::{HashMap, HashSet},
    thread::sleep,
    time::Duration,
};

/// The pause between two looks. A thread that releases a lock and takes it again at once keeps waiting threads out.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);
/// Ephemerals in one look.
const EPHEMERALS_PER_LOOK: usize = 500;
/// Znodes or sessions in one look.
const ZNODES_PER_LOOK: usize = 64;
/// The most groups that are shown at once.
pub(crate) const GROUPS_MAX: usize = 10_000;
/// The most contenders of all groups together.
const CONTENDERS_MAX: usize = 200_000;
/// The most children of one parent that are looked at for znodes that are no ephemerals.
const CHILDREN_MAX: usize = 1_000;
/// The most parents whose children are looked at for that.
const PARENTS_MAX: usize = 1_000;
/// The most znodes at and above the queues of one group whose ACLs are looked at.
pub(crate) const ANCESTORS_MAX: usize = 64;
/// The most contenders of one group whose czxids are looked up to put them in order.
const ORDERED_MAX: usize = 256;
/// The most groups for which that is done.
const ORDERED_GROUPS_MAX: usize = 1_000;

/// All groups below a path, at about one moment.
pub(crate) struct Snapshot {
    /// In order of their paths.
    pub(crate) groups: Vec<SeenGroup>,
    /// The last transaction that was applied at the beginning.
    pub(crate) zxid: Zxid,
    /// The end of it, in ms since 1970.
    pub(crate) wall_ms: i64,
    /// There are more groups than are shown.
    pub(crate) is_cut: bool,
    /// There are too many contenders. Then there are no groups: a part of a queue does not show who holds.
    pub(crate) is_too_large: bool,
}

/// A group, with what was seen of its holder.
pub(crate) struct SeenGroup {
    pub(crate) group: Group,
    pub(crate) holder: Option<SeenContender>,
    pub(crate) alarms: Vec<Alarm>,
    pub(crate) acls: Acls,
}

/// The ACLs of the znodes whose READ shows a group: its path, the parents of its queue, and all above them.
pub(crate) enum Acls {
    Of(Vec<ReadAcl>),
    /// One of these znodes is gone. Nobody sees the group.
    Gone,
    /// There are more of these znodes than are looked at. Nobody sees the group.
    TooMany,
}

impl Acls {
    /// Those that are known.
    pub(crate) fn known(&self) -> &[ReadAcl] {
        match self {
            Acls::Of(acls) => acls,
            Acls::Gone | Acls::TooMany => &[],
        }
    }
}

/// A znode of a queue as a look saw it.
#[derive(Clone)]
pub(crate) struct SeenContender {
    pub(crate) contender: Contender,
    pub(crate) znode: RecipeZnode,
    /// `None` if it is no ephemeral.
    pub(crate) session: Option<OwnerSession>,
}

impl SeenContender {
    /// The way that is offered to take something from it as the holder.
    pub(crate) fn offer(&self, group: &Group) -> Offer {
        let facts = HolderFacts {
            is_alive: self.session.is_some_and(|session| session.is_alive),
            watches_itself: self.znode.owner_watches,
            data: &self.znode.data,
        };
        offer::for_holder(group, facts)
    }
}

/// The ephemerals of a session.
#[derive(Default)]
pub(crate) struct Owned {
    /// The first of them.
    pub(crate) paths: Vec<String>,
    pub(crate) count: usize,
}

/// Looks at the core in small parts.
pub(crate) struct Looks<'a>(pub(crate) &'a AdminHandle);

impl Looks<'_> {
    fn look<T>(&self, look: impl FnOnce(Now, &Server) -> T) -> T {
        let seen = self.0.inspect_now(look);
        sleep(BETWEEN_LOOKS);
        seen
    }

    /// The results of `look` for each of these, a number of them at a time.
    fn each<K, T>(&self, keys: &[K], look: impl Fn(Now, &Server, &K) -> T) -> Vec<T> {
        let mut seen = Vec::with_capacity(keys.len());
        for part in keys.chunks(ZNODES_PER_LOOK) {
            self.look(|now, server| seen.extend(part.iter().map(|key| look(now, server, key))));
        }
        seen
    }

    /// All groups whose znodes are within `under`.
    pub(crate) fn groups(&self, under: &str) -> Snapshot {
        let zxid = self.look(|_, server| server.tree().last_processed());
        let queues = self.queues(under);
        let is_too_large = queues.is_none();
        let mut queues = queues.unwrap_or_default();
        self.add_strays(&mut queues);
        let wanted = groups::wanted(&queues);
        let facts: HashMap<Box<str>, Facts> = self.facts(wanted);
        let mut groups = groups::recognise(queues, |path| facts.get(path));
        let is_cut = groups.len() > GROUPS_MAX;
        groups.truncate(GROUPS_MAX);
        self.order(&mut groups);
        Snapshot {
            groups: self.seen(groups),
            zxid,
            wall_ms: self.look(|now, _| now.wall_ms),
            is_cut,
            is_too_large,
        }
    }

    /// The ephemerals whose names recipes write, by their parents; `None` if there are too many.
    fn queues(&self, under: &str) -> Option<Queues> {
        let (mut queues, mut count) = (Queues::new(), 0);
        // The queue for a semaphore of kazoo is beside its path.
        let beside = format!("{under}-");
        let mut after: Option<(SessionId, String)> = None;
        loop {
            let part = self.look(|_, server| {
                let after = after.as_ref().map(|(session, path)| (*session, &**path));
                server.ephemerals_after(after, EPHEMERALS_PER_LOOK)
            });
            for (session, path) in &part {
                if !path::is_within(path, under) && !path.starts_with(&beside) {
                    continue;
                }
                let Some(contender) = Contender::of(path, Some(*session)) else { continue };
                if count == CONTENDERS_MAX {
                    return None;
                }
                count += 1;
                queues.entry(path::parent(path).unwrap_or("/").into()).or_default().push(contender);
            }
            if part.len() < EPHEMERALS_PER_LOOK {
                return Some(queues);
            }
            after = part.into_iter().next_back();
        }
    }

    /// Adds znodes in the queues that are no ephemerals. Whoever comes later waits for them.
    fn add_strays(&self, queues: &mut Queues) {
        let parents: Vec<Box<str>> = queues.keys().cloned().collect();
        let children =
            self.each(&parents, |_, server, parent| server.tree().get(parent).map(|node| node.num_children));
        let has_more = |queue: &Vec<Contender>, children: Option<u32>| {
            let is_more = children.is_some_and(|count| count as usize > queue.len());
            is_more && queue.iter().any(|one| one.number.is_some())
        };
        let some = parents.iter().zip(children);
        let some = some
            .filter(|(parent, children)| queues.get(*parent).is_some_and(|queue| has_more(queue, *children)));
        let some: Vec<&Box<str>> = some.map(|(parent, _)| parent).take(PARENTS_MAX).collect();
        for parent in some {
            let Some(queue) = queues.get_mut(parent) else { continue };
            let names = self.look(|_, server| server.first_children(parent, CHILDREN_MAX));
            let known: HashSet<&str> = queue.iter().map(|one| path::name(&one.path)).collect();
            let unknown = names.iter().filter(|name| !known.contains(&***name));
            let strays: Vec<Contender> = unknown
                .filter(|name| patterns::read(name).is_some_and(|name| name.number.is_some()))
                .filter_map(|name| Contender::of(&ostler_client::paths::join(parent, name), None))
                .collect();
            let owners = self.each(&strays, |_, server, stray| server.recipe_znode(&stray.path));
            let strays = strays.into_iter().zip(owners);
            queue.extend(
                strays.filter_map(|(stray, znode)| Some(Contender { session: znode?.owner, ..stray })),
            );
        }
    }

    fn facts(&self, paths: Vec<Box<str>>) -> HashMap<Box<str>, Facts> {
        let seen = self.each(&paths, |_, server, path| server.recipe_znode(path));
        let known = paths.into_iter().zip(seen).filter_map(|(path, znode)| Some((path, znode?)));
        known
            .map(|(path, RecipeZnode { czxid, mzxid, data, .. })| (path, Facts { czxid, mzxid, data }))
            .collect()
    }

    /// Of the sessions of all contenders those that do not live.
    fn dead_sessions(&self, groups: &[Group]) -> HashSet<SessionId> {
        let all: HashSet<SessionId> =
            groups.iter().flat_map(|group| &group.queue).filter_map(|one| one.session).collect();
        let all: Vec<SessionId> = all.into_iter().collect();
        let lives = self.each(&all, |now, server, session| server.owner_session(now, *session).is_alive);
        all.into_iter().zip(lives).filter(|(_, lives)| !lives).map(|(session, _)| session).collect()
    }

    /// Puts those groups in order whose numbers do not.
    fn order(&self, groups: &mut [Group]) {
        for group in groups.iter_mut().filter(|group| group.needs_czxids()).take(ORDERED_GROUPS_MAX) {
            let some = &group.queue[..group.queue.len().min(ORDERED_MAX)];
            let czxids = self.each(some, |_, server, one| Some(server.recipe_znode(&one.path)?.czxid));
            let paths = some.iter().map(|one| one.path.clone());
            let known: HashMap<Box<str>, Option<Zxid>> = paths.zip(czxids).collect();
            group.arrange(|one| known.get(&one.path).copied().flatten());
        }
    }

    /// The groups with their holders and alarms.
    fn seen(&self, groups: Vec<Group>) -> Vec<SeenGroup> {
        let dead = self.dead_sessions(&groups);
        let looked = self.each(&groups, |now, server, group| {
            let first = group.queue.first().and_then(|first| contender(now, server, first));
            (first, acls(server, group))
        });
        let both = groups.into_iter().zip(looked);
        both.map(|(group, (first, acls))| seen(group, first, acls, &dead)).collect()
    }

    /// These contenders as they are now. Those that are gone are left out.
    pub(crate) fn contenders(&self, queue: &[Contender]) -> Vec<SeenContender> {
        self.each(queue, contender).into_iter().flatten().collect()
    }

    /// The first paths of a session's ephemerals, and the number of all.
    pub(crate) fn owned(&self, session: SessionId, max: usize) -> Owned {
        let mut owned: Vec<String> = Vec::new();
        let count = self.look(|_, server| server.tree().ephemerals(session).len());
        loop {
            let part = self.look(|_, server| {
                let after = owned.last().map_or("", |path| &**path);
                let part = server.ephemerals_after(Some((session, after)), EPHEMERALS_PER_LOOK.min(max));
                part.into_iter()
                    .take_while(|(of, _)| *of == session)
                    .map(|(_, path)| path)
                    .collect::<Vec<_>>()
            });
            let is_all = part.is_empty();
            owned.extend(part);
            if is_all || owned.len() >= max {
                break;
            }
        }
        owned.truncate(max);
        Owned { paths: owned, count }
    }
}

fn seen(mut group: Group, first: Option<SeenContender>, acls: Acls, dead: &HashSet<SessionId>) -> SeenGroup {
    if let Some(first) = &first {
        group.refine(&first.znode.data);
    }
    let holder = first.filter(|_| group.holding > 0);
    let session = holder.as_ref().and_then(|holder| holder.session).filter(|session| session.is_alive);
    let facts = QueueFacts {
        silence: session.and_then(|session| session.silent_for_ms.zip(session.timeout_ms)),
        dead: group.queue.iter().filter(|one| one.session.is_some_and(|id| dead.contains(&id))).count(),
    };
    let alarms = offer::alarms(&group, facts);
    SeenGroup { group, holder, alarms, acls }
}

fn contender(now: Now, server: &Server, contender: &Contender) -> Option<SeenContender> {
    let znode = server.recipe_znode(&contender.path)?;
    let session = znode.owner.map(|session| server.owner_session(now, session));
    Some(SeenContender { contender: contender.clone(), znode, session })
}

/// The ACLs that show a group: those of its path, of the parents of its queue, and of all above them.
fn acls(server: &Server, group: &Group) -> Acls {
    let mut looked = HashSet::new();
    let mut acls: Vec<ReadAcl> = Vec::new();
    for path in std::iter::once(&group.path).chain(&group.parents) {
        for above in std::iter::once(&**path).chain(path::ancestors(path)) {
            if !looked.insert(above) {
                break;
            }
            if looked.len() > ANCESTORS_MAX {
                return Acls::TooMany;
            }
            let Some(RecipeZnode { acl, .. }) = server.recipe_znode(above) else { return Acls::Gone };
            if acls.iter().all(|known| known.key() != acl.key()) {
                acls.push(acl);
            }
        }
    }
    Acls::Of(acls)
}
