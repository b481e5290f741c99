//! The identities of a client, and the permissions that ACLs give to them.

use crate::{requests::auth::user_name, work::Work};
use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};
use core::{
    cell::{OnceCell, RefCell},
    hash::BuildHasher,
    net::IpAddr,
};
use hashbrown::HashTable;
use ostler_proto::acl::{Id, Perms};
use ostler_tree::{AclList, acl_list::is_of_addresses};
use rustc_hash::FxBuildHasher;

/// Up to this product of entries and identities a check is simply repeated each time.
const FEW: usize = 16;
/// The number of ACLs whose results are kept.
const REMEMBERED: usize = 16;

/// The most characters of a user name in an audit record.
const AUDITED_NAME_MAX: usize = 256;

/// The serials of ACLs, and the permissions that they give.
type Verdicts = [(u64, Perms); REMEMBERED];

/// The identities of a connection, or of a learner's client with its forwarded request.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    ids: Vec<Id>,
    /// About how many bytes they take.
    size: usize,
    /// Whether one of them is `super`, which may do everything.
    is_super: bool,
    addresses: Vec<IpAddr>,
    sasl: SaslUser,
    /// The position of each id, if there are more than a few.
    by_id: HashTable<u32>,
    /// A cache of the permissions that ACLs give. The serial of an ACL decides its place.
    verdicts: RefCell<Option<Box<Verdicts>>>,
    /// The user names for the audit log, once they were needed.
    users: OnceCell<Arc<[String]>>,
}

/// Whether a client has logged in by SASL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SaslUser {
    #[default]
    None,
    Some,
    /// The user named `super`: every entry of the scheme `sasl` is for this one.
    Super,
}

/// Cuts a long name.
fn shortened(mut name: String) -> String {
    if let Some((end, _)) = name.char_indices().nth(AUDITED_NAME_MAX) {
        let count = name.chars().count();
        name.truncate(end);
        name += &format!("…({count} characters)");
        name.shrink_to_fit();
    }
    name
}

/// Adds an item. Nearly every client has one identity, its address, so there is room for one only at first.
fn push<T>(all: &mut Vec<T>, one: T) {
    if all.is_empty() {
        all.reserve_exact(1);
    }
    all.push(one);
}

fn hash(id: &Id) -> u64 {
    FxBuildHasher.hash_one((&*id.scheme, &*id.id))
}

impl Identities {
    pub(crate) fn new(ids: impl IntoIterator<Item = Id>) -> Identities {
        let mut all = Identities::default();
        for id in ids {
            all.add(id);
        }
        all
    }

    /// Adds an identity, unless it is there already.
    pub(crate) fn add(&mut self, id: Id) {
        if self.contains(&id) {
            return;
        }
        *self.verdicts.get_mut() = None;
        self.users.take();
        self.size += id.size();
        self.is_super |= id.scheme == "super";
        if id.scheme == "sasl" && self.sasl != SaslUser::Super {
            self.sasl = if id.id == "super" { SaslUser::Super } else { SaslUser::Some };
        }
        if is_of_addresses(&id.scheme)
            && let Ok(address) = id.id.parse()
        {
            push(&mut self.addresses, address);
        }
        push(&mut self.ids, id);
        let ids = &self.ids;
        // From this number on they are looked up. The earlier ones go in with the first that is.
        let first = if ids.len() == FEW { 0 } else { ids.len() - 1 };
        if ids.len() >= FEW {
            for (at, id) in ids.iter().enumerate().skip(first) {
                self.by_id.insert_unique(hash(id), at as u32, |other| hash(&ids[*other as usize]));
            }
        }
    }

    fn contains(&self, id: &Id) -> bool {
        if self.ids.len() < FEW {
            return self.ids.contains(id);
        }
        self.by_id.find(hash(id), |at| self.ids[*at as usize] == *id).is_some()
    }

    pub(crate) fn all(&self) -> &[Id] {
        &self.ids
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The user names for the audit log, as `whoAmI` shows them, without those of scheme `super`. A client picks the names
    /// of its digests: one of more than [`AUDITED_NAME_MAX`] characters is cut, and the number of all is added.
    pub(crate) fn users(&self) -> Arc<[String]> {
        let audited = self.ids.iter().filter(|id| id.scheme != "super");
        let named = || audited.map(user_name).map(shortened).collect();
        self.users.get_or_init(named).clone()
    }

    pub(crate) fn is_super(&self) -> bool {
        self.is_super
    }

    pub(crate) fn has_sasl_user(&self) -> bool {
        self.sasl != SaslUser::None
    }

    /// The permissions that an ACL gives to these identities. They are computed once for an ACL, with as many look-ups
    /// as the shorter of the two has members.
    pub(crate) fn granted(&self, list: &AclList, work: &Work) -> Perms {
        if list.len() * self.ids.len() <= FEW {
            return self.find_out(list);
        }
        let (serial, place) = (list.serial(), list.serial() as usize % REMEMBERED);
        let known = self.verdicts.borrow().as_ref().map(|verdicts| verdicts[place]);
        if let Some((of, granted)) = known
            && of == serial
            && serial != 0
        {
            return granted;
        }
        work.add(list.len().min(self.ids.len()) + self.addresses.len());
        let granted = self.find_out(list);
        if serial != 0 {
            let mut verdicts = self.verdicts.borrow_mut();
            verdicts.get_or_insert_with(|| Box::new([(0, Perms(0)); REMEMBERED]))[place] = (serial, granted);
        }
        granted
    }

    fn find_out(&self, list: &AclList) -> Perms {
        let mut granted = list.perms_of_everybody();
        if list.len() <= self.ids.len() {
            let by_id = list.iter().filter(|entry| !is_of_addresses(&entry.id.scheme));
            for entry in by_id.filter(|entry| self.contains(&entry.id)) {
                granted = granted.with(entry.perms);
            }
        } else {
            for id in self.ids.iter().filter(|id| !is_of_addresses(&id.scheme)) {
                granted = granted.with(list.perms_of_id(id));
            }
        }
        if self.sasl == SaslUser::Super {
            for entry in list.iter().filter(|entry| entry.id.scheme == "sasl") {
                granted = granted.with(entry.perms);
            }
        }
        for address in &self.addresses {
            granted = granted.with(list.perms_of_address(*address));
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::acl::Acl;

    fn user(n: usize) -> Id {
        Id::new("digest", format!("u{n}:h"))
    }

    fn list(entries: usize, of: usize, serial: u64) -> AclList {
        let others = (1000..1000 + entries).map(|n| Acl { perms: Perms::ALL, id: user(n) });
        let one = Acl { perms: Perms::READ, id: user(of) };
        let net = Acl { perms: Perms::WRITE, id: Id::new("ip", "10.0.0.0/8") };
        AclList::new(others.chain([one, net]).collect(), serial)
    }

    #[test]
    fn long_and_short_lists_and_many_and_few_identities_say_the_same() {
        let work = Work::default();
        for count in [1, 15, 16, 17, 100] {
            let mut ids = Identities::new((0..count).map(user));
            for (entries, serial) in [(0, 0), (5, 1), (8, 2), (100, 3), (40_000, 4)] {
                for _ in 0..2 {
                    assert_eq!(ids.granted(&list(entries, 0, serial), &work), Perms::READ);
                }
                assert_eq!(ids.granted(&list(entries, 500, serial + 100), &work), Perms(0));
            }
            ids.add(Id::new("ip", "10.1.1.1"));
            assert_eq!(ids.granted(&list(100, 0, 3), &work), Perms(3), "another identity, another verdict");
            ids.add(user(0));
            assert_eq!(ids.all().len(), count + 1, "none is there twice");
        }
        assert_eq!(Identities::new([Id::new("ip", String::from("nowhere"))]).addresses.len(), 0);
    }

    #[test]
    fn long_user_names_are_cut_for_the_audit_log() {
        let of = |name: String| Identities::new([Id::new("digest", format!("{name}:h"))]).users()[0].clone();
        assert_eq!(of("ä".repeat(AUDITED_NAME_MAX)), "ä".repeat(AUDITED_NAME_MAX));
        let cut = of("ä".repeat(1_000_000));
        assert_eq!(cut, format!("{}…(1000000 characters)", "ä".repeat(AUDITED_NAME_MAX)));
    }

    #[test]
    fn a_verdict_is_found_out_once() {
        let (work, ids) = (Work::default(), Identities::new((0..100).map(user)));
        let long = list(40_000, 7, 5);
        ids.granted(&long, &work);
        assert_eq!(work.done(), 100);
        for _ in 0..1000 {
            ids.granted(&long, &work);
        }
        assert_eq!(work.done(), 100);
        // An ACL with another serial takes its place.
        ids.granted(&list(3, 7, 5 + REMEMBERED as u64), &work);
        assert_eq!(work.done(), 105);
        ids.granted(&long, &work);
        assert_eq!(work.done(), 205);
    }
}
