//! Recognises groups: the ephemerals below one parent that are the queue of a lock, an election or a semaphore. Pure: the
//! caller has looked at the znodes.

use super::patterns::{self, Confidence, Form, Kind, Maker};
use ostler_client::{RecipeTag, paths::join};
use ostler_proto::{
    id::{SessionId, Zxid},
    path,
};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the parent of a semaphore's leases in Curator, and of the queue for the next one.
const LEASES: &str = "leases";
const LOCKS: &str = "locks";
/// The end of the path of the queue for a semaphore of kazoo.
const KAZOO_QUEUE: &str = "-__lock__";

/// A znode in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contender {
    pub(crate) path: Box<str>,
    /// `None` if it is no ephemeral.
    pub(crate) session: Option<SessionId>,
    pub(crate) form: Form,
    pub(crate) tag: Option<RecipeTag>,
    pub(crate) number: Option<i32>,
}

impl Contender {
    /// `None` if no recipe names its znodes so.
    pub(crate) fn of(path: &str, session: Option<SessionId>) -> Option<Contender> {
        let name = patterns::read(path::name(path))?;
        Some(Contender { path: path.into(), session, form: name.form, tag: name.tag, number: name.number })
    }

    pub(crate) fn maker(&self) -> Maker {
        patterns::read(path::name(&self.path)).map_or(Maker::Unknown, |name| name.maker())
    }

    /// Whether its name has this word right before the number.
    fn has_word(&self, word: &str) -> bool {
        let name = path::name(&self.path);
        let before = name.trim_end_matches(|c: char| c.is_ascii_digit());
        before.ends_with(word)
    }

    /// Whether its name has its own session in it.
    fn names_its_session(&self) -> bool {
        let named = patterns::read(path::name(&self.path)).and_then(|name| name.session);
        named.zip(self.session).is_some_and(|(named, session)| patterns::is_session(named, session.0))
    }
}

/// The facts of a znode that recognition needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) czxid: Zxid,
    pub(crate) mzxid: Zxid,
    pub(crate) data: Vec<u8>,
}

/// Contenders by the path of their parent.
pub(crate) type Queues = BTreeMap<Box<str>, Vec<Contender>>;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) path: Box<str>,
    pub(crate) kind: Kind,
    pub(crate) confidence: Confidence,
    /// The form that decided.
    pub(crate) form: Form,
    /// The znodes whose children the queue is.
    pub(crate) parents: Vec<Box<str>>,
    /// In order; the first [`Group::holding`] hold.
    pub(crate) queue: Vec<Contender>,
    pub(crate) holding: usize,
    /// The last lease of a semaphore waits, see [`Group::count_leases`].
    lease_waits: bool,
}

impl Group {
    /// The first of those that hold.
    pub(crate) fn holder(&self) -> Option<&Contender> {
        self.queue.first().filter(|_| self.holding > 0)
    }

    /// Whether the numbers do not order the queue, so that the czxids are needed.
    pub(crate) fn needs_czxids(&self) -> bool {
        let is_negative = |one: &Contender| one.number.is_some_and(|number| number < 0);
        let is_tied = |pair: &[Contender]| pair[0].number == pair[1].number;
        self.queue.iter().any(is_negative) || self.queue.windows(2).any(is_tied)
    }

    /// The library of the holder, or of the first in the queue.
    pub(crate) fn maker(&self) -> Maker {
        self.queue.first().map_or(Maker::Unknown, Contender::maker)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() - self.holding
    }

    /// The rule by which it was recognised, in words.
    pub(crate) fn rule(&self) -> String {
        let mut rule = match (self.queue.first().and_then(|first| first.tag), self.kind) {
            (Some(tag), _) => of_ostler(tag).to_owned(),
            (None, Kind::Selector) => format!(
                "{} The data is an id, as LeaderSelector writes it. A mutex whose program writes its own data looks the \
                 same.",
                self.form.rule()
            ),
            (None, Kind::Semaphore) if self.form == Form::Lock => Form::Lease.rule().to_owned(),
            (None, Kind::Semaphore) if self.form == Form::KazooLock => Form::KazooLease.rule().to_owned(),
            (None, Kind::Election) if self.form == Form::KazooLock => {
                format!("{} By the path it is an election.", self.form.rule())
            }
            (None, _) => self.form.rule().to_owned(),
        };
        let makers: BTreeSet<Maker> = self.queue.iter().map(Contender::maker).collect();
        if makers.len() > 1 {
            let names: Vec<&str> = makers.iter().map(|maker| maker.name()).collect();
            rule += &format!(" Programs of several libraries contend: {}.", names.join(", "));
        }
        rule
    }

    /// Puts the queue in order, and counts those that hold. `czxid` orders what the numbers do not.
    pub(crate) fn arrange(&mut self, czxid: impl Fn(&Contender) -> Option<Zxid>) {
        let counts_up = self.queue.iter().all(|one| one.number.is_none_or(|number| number >= 0));
        self.queue.sort_by_cached_key(|one| {
            let first = self.kind != Kind::Semaphore || is_lease(one);
            let number = if counts_up { one.number } else { None };
            (!first, number, czxid(one), one.number)
        });
        self.holding = match self.kind {
            Kind::Semaphore => self.count_leases(),
            // A znode that is no ephemeral is nobody's, and all others wait for it.
            _ if self.queue.first().is_none_or(|first| first.session.is_none()) => 0,
            Kind::ReadWrite => self.count_readers(),
            _ => 1,
        };
    }

    fn count_readers(&self) -> usize {
        let readers = self.queue.iter().take_while(|one| one.form.is_shared()).count();
        if readers > 0 {
            return readers;
        }
        // A writer of Ostler's that becomes a reader has both znodes for a moment, with one number.
        let writer = &self.queue[0];
        let is_reader_of = |one: &&Contender| {
            one.form.is_shared() && one.number == writer.number && one.session == writer.session
        };
        1 + self.queue.iter().skip(1).take_while(is_reader_of).count()
    }

    /// In Curator the next one creates its lease and waits until the leases are few enough. Meanwhile it has a znode in
    /// both parents. Its lease stands for it.
    fn count_leases(&mut self) -> usize {
        let leases = self.queue.iter().take_while(|one| is_lease(one)).count();
        if self.lease_waits {
            return leases.saturating_sub(1);
        }
        let (last, next) = (leases.checked_sub(1).map(|at| &self.queue[at]), self.queue.get(leases));
        let is_waiting = |last: &Contender, next: &Contender| {
            last.form == Form::Lease && last.session.is_some() && last.session == next.session
        };
        if last.zip(next).is_some_and(|(last, next)| is_waiting(last, next)) {
            self.queue.remove(leases);
            self.lease_waits = true;
            return leases - 1;
        }
        leases
    }

    /// Decides between kinds whose znodes have one form, by the data of the first znode in the queue.
    pub(crate) fn refine(&mut self, data: &[u8]) {
        let is_undecided =
            self.form == Form::Lock && self.kind == Kind::Mutex && self.confidence != Confidence::Sure;
        if is_undecided && !data.is_empty() && !is_address(data) && data != REVOKED {
            self.kind = Kind::Selector;
        }
    }
}

fn is_lease(one: &Contender) -> bool {
    matches!(one.form, Form::Lease | Form::KazooLease)
}

/// The data that asks a holder to release its lock.
pub(crate) const REVOKED: &[u8] = b"__REVOKE__";

/// Whether data is an address: Curator writes that of the client if the program gives no data.
fn is_address(data: &[u8]) -> bool {
    str::from_utf8(data)
        .is_ok_and(|text| text.split('%').next().is_some_and(|ip| ip.parse::<std::net::IpAddr>().is_ok()))
}

/// The rule of Ostler's tags.
fn of_ostler(tag: RecipeTag) -> &'static str {
    match tag {
        RecipeTag::LeaderLatch => {
            "The id in the name of the first znode has the tag of Ostler's LeaderLatch."
        }
        RecipeTag::LeaderSelector => {
            "The id in the name of the first znode has the tag of Ostler's LeaderSelector."
        }
        RecipeTag::Mutex => {
            "The id in the name of the first znode has the tag of Ostler's InterProcessMutex."
        }
        RecipeTag::ReadWriteLock => {
            "The id in the name of the first znode has the tag of Ostler's InterProcessReadWriteLock."
        }
        RecipeTag::Semaphore => {
            "The id in the name of the first znode has the tag of Ostler's InterProcessSemaphore."
        }
    }
}

/// The paths of znodes whose [`Facts`] recognition needs.
pub(crate) fn wanted(queues: &Queues) -> Vec<Box<str>> {
    let mut paths = Vec::new();
    for (parent, queue) in queues {
        match place(parent) {
            Place::Leases(_) | Place::Itself => {}
            Place::Locks(above) => paths.push(join(above, LEASES).into()),
            Place::KazooQueue(base) => paths.push(base.into()),
        }
        if queue.iter().any(|one| matches!(one.form, Form::KazooLease | Form::Leader)) {
            paths.push(parent.clone());
        }
        paths.extend(queue.iter().filter(|one| one.form == Form::Leader).map(|one| one.path.clone()));
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The part of a recipe that a parent can be, by its path.
enum Place<'a> {
    /// `leases` below this path.
    Leases(&'a str),
    /// `locks` below this path.
    Locks(&'a str),
    /// The queue for the semaphore at this path.
    KazooQueue(&'a str),
    Itself,
}

fn place(parent: &str) -> Place<'_> {
    let above = || path::parent(parent).unwrap_or("/");
    match path::name(parent) {
        LEASES => Place::Leases(above()),
        LOCKS => Place::Locks(above()),
        _ => match parent.strip_suffix(KAZOO_QUEUE) {
            Some(base) if !base.ends_with('/') => Place::KazooQueue(base),
            _ => Place::Itself,
        },
    }
}

/// The groups of these queues. `facts` has what is known of the [`wanted`] znodes.
pub(crate) fn recognise<'f>(queues: Queues, facts: impl Fn(&str) -> Option<&'f Facts>) -> Vec<Group> {
    let mut groups: BTreeMap<Box<str>, Group> = BTreeMap::new();
    for (parent, queue) in queues {
        let (path, part) = match place(&parent) {
            Place::Leases(above) => (above.into(), of_form(queue, |form| form == Form::Lease)),
            Place::Locks(above) if facts(&join(above, LEASES)).is_some() => {
                (above.into(), of_form(queue, |form| form == Form::Lock))
            }
            Place::KazooQueue(base) if facts(base).is_some_and(|base| is_count(&base.data)) => {
                (base.into(), of_form(queue, |form| form == Form::KazooLock))
            }
            _ => {
                groups.extend(alone(&parent, queue, &facts).map(|group| (parent, group)));
                continue;
            }
        };
        if part.is_empty() {
            continue;
        }
        let form = part[0].form;
        let group = groups.entry(path).or_insert_with_key(|path| semaphore(path.clone(), form));
        if group.kind == Kind::Semaphore {
            group.parents.push(parent);
            group.queue.extend(part);
        }
    }
    let arranged = groups.into_values().map(|mut group| {
        group.arrange(|_| None);
        group
    });
    arranged.collect()
}

fn of_form(queue: Vec<Contender>, wanted: impl Fn(Form) -> bool) -> Vec<Contender> {
    queue.into_iter().filter(|one| wanted(one.form)).collect()
}

fn semaphore(path: Box<str>, form: Form) -> Group {
    let confidence = Confidence::Sure;
    let (parents, queue) = (Vec::new(), Vec::new());
    Group { path, kind: Kind::Semaphore, confidence, form, parents, queue, holding: 0, lease_waits: false }
}

fn is_count(data: &[u8]) -> bool {
    str::from_utf8(data).is_ok_and(|text| text.parse::<u32>().is_ok_and(|count| count > 0))
}

/// The group of one parent.
fn alone<'f>(
    parent: &str,
    queue: Vec<Contender>,
    facts: &impl Fn(&str) -> Option<&'f Facts>,
) -> Option<Group> {
    let is = |form: Form| queue.iter().any(|one| one.form == form);
    // The forms of one recipe. Names of other forms below the same parent are no part of its queue.
    let (forms, kind): (&[Form], Kind) = if is(Form::Reader) || is(Form::Writer) {
        (&[Form::Reader, Form::Writer], Kind::ReadWrite)
    } else if is(Form::Latch) {
        (&[Form::Latch], Kind::Latch)
    } else if is(Form::Lock) {
        (&[Form::Lock], Kind::Mutex)
    } else if is(Form::KazooReader) {
        (&[Form::KazooReader, Form::KazooLock], Kind::ReadWrite)
    } else if is(Form::KazooLock) {
        (&[Form::KazooLock], if names_election(parent) { Kind::Election } else { Kind::Mutex })
    } else if is(Form::KazooLease) {
        facts(parent).filter(|parent| is_count(&parent.data))?;
        (&[Form::KazooLease], Kind::Semaphore)
    } else if is(Form::WriteLock) {
        (&[Form::WriteLock], Kind::WriteLock)
    } else if is(Form::Offer) {
        (&[Form::Offer], Kind::Election)
    } else if is(Form::Leader) {
        is_unfair_leader(parent, &queue, facts).then_some((&[Form::Leader] as &[Form], Kind::Election))?
    } else if is(Form::Other) {
        let says_lock = |one: &Contender| path::name(&one.path).to_ascii_lowercase().contains("lock");
        (&[Form::Other], if queue.iter().any(says_lock) { Kind::Mutex } else { Kind::Election })
    } else {
        // A lease that is not below `leases` is none.
        return None;
    };
    let word = match forms[0] {
        Form::Latch => Some("latch-"),
        Form::Lock => Some("lock-"),
        _ => None,
    };
    // Programs of other libraries take part in the queue if their names have the word and the number.
    let takes_part = |one: &Contender| one.form == Form::Other && word.is_some_and(|word| one.has_word(word));
    let queue: Vec<Contender> =
        queue.into_iter().filter(|one| forms.contains(&one.form) || takes_part(one)).collect();
    let tag = queue.iter().find_map(|one| one.tag);
    let kind = match tag {
        Some(RecipeTag::LeaderSelector) if kind == Kind::Mutex => Kind::Selector,
        _ => kind,
    };
    let confidence = match forms[0] {
        _ if tag.is_some() => Confidence::Sure,
        Form::Lock | Form::KazooLock | Form::KazooLease => Confidence::Likely,
        Form::WriteLock if queue.iter().all(Contender::names_its_session) => Confidence::Sure,
        Form::WriteLock | Form::Offer | Form::Other => Confidence::Guess,
        _ => Confidence::Sure,
    };
    let parents = vec![parent.into()];
    let (path, form) = (parent.into(), forms[0]);
    Some(Group { path, kind, confidence, form, parents, queue, holding: 0, lease_waits: false })
}

fn names_election(path: &str) -> bool {
    let name = path::name(path).to_ascii_lowercase();
    name.contains("elect") || name.contains("leader")
}

/// The leader's znode was created by the transaction that has written a random id into its parent.
fn is_unfair_leader<'f>(
    parent: &str,
    queue: &[Contender],
    facts: &impl Fn(&str) -> Option<&'f Facts>,
) -> bool {
    let (above, leader) = (facts(parent), queue.iter().find(|one| one.form == Form::Leader));
    let leader = leader.and_then(|leader| facts(&leader.path));
    above.zip(leader).is_some_and(|(above, leader)| {
        above.mzxid == leader.czxid && str::from_utf8(&above.data).is_ok_and(patterns::is_uuid)
    })
}

#[cfg(test)]
mod tests;
