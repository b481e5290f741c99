//! Access control lists: compares the lists that clients request with the lists that are logged for them.

use ostler_proto::{
    acl::{Acl, Id},
    id::SessionId,
    txn::{Txn, TxnRecord},
};
use std::collections::BTreeMap;

/// A digest identity: its `user:password`, and its id in an ACL as ZooKeeper's own program prints it.
type Identity = (&'static str, &'static str);

pub(crate) const IDENTITIES: [Identity; 3] = [
    ("kim:one", "kim:UFwFm8z455wsD7kqS41JleStwPU="),
    ("kim:two", "kim:hHgZQZjtOnzETgr6p732dZLK9gQ="),
    ("lee:three", "lee:LphmNaiuEKmw4EZPq0AMhPuO26g="),
];

/// The ACL that must be logged for a znode. `acl` is `None` if the server must refuse the requested list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedAcl {
    /// For a sequential znode: the path without the number.
    path: String,
    acl: Option<Vec<Acl>>,
}

impl ExpectedAcl {
    /// Computes the list to log: duplicates are removed, and `auth` stands for all identities of the connection.
    pub(crate) fn new(path: &str, asked: &[Acl], identities: &[Id]) -> ExpectedAcl {
        let mut kept = Vec::new();
        for (at, entry) in asked.iter().enumerate() {
            if asked[..at].contains(entry) {
                continue;
            }
            if entry.id.scheme != "auth" {
                kept.push(entry.clone());
                continue;
            }
            if identities.is_empty() {
                return ExpectedAcl { path: path.into(), acl: None };
            }
            kept.extend(identities.iter().map(|id| Acl { perms: entry.perms, id: id.clone() }));
        }
        ExpectedAcl { path: path.into(), acl: Some(kept) }
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.acl.is_none()
    }

    fn is(&self, (path, acl): (&str, &[Acl])) -> bool {
        let number = path.strip_prefix(&*self.path);
        let same = number.is_some_and(|number| {
            number.is_empty() || (number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit()))
        });
        same && self.acl.as_deref() == Some(acl)
    }
}

/// Whether the logged lists are those of a request with these expected lists.
fn is_logged(given: &[ExpectedAcl], logged: &[(&str, &[Acl])], whole: bool) -> bool {
    let (asked, kept) = (given.len(), logged.len());
    // The record of a failed multi has only the operations before the failure.
    (if whole { asked == kept } else { asked >= kept })
        && given.iter().zip(logged).all(|(given, logged)| given.is(*logged))
}

fn lists<'a>(txn: &'a Txn<'_>, found: &mut Vec<(&'a str, &'a [Acl])>) {
    match txn {
        Txn::Create(create) => found.push((&create.path, &create.acl)),
        Txn::SetAcl { path, acl, .. } => found.push((path, acl)),
        Txn::Multi(parts) => parts.iter().for_each(|part| lists(part, found)),
        _ => {}
    }
}

/// Asserts that a record has the lists of its request.
pub(crate) fn assert_logged(given: &[ExpectedAcl], txn: &Txn<'_>) {
    let mut logged = Vec::new();
    lists(txn, &mut logged);
    assert!(
        is_logged(given, &logged, set_whole(txn)),
        "[acl] {given:?} was requested, and {logged:?} is logged"
    );
}

fn set_whole(txn: &Txn<'_>) -> bool {
    match txn {
        Txn::Multi(parts) => !parts.iter().any(|part| matches!(part, Txn::Error(_))),
        txn => !matches!(txn, Txn::Error(_)),
    }
}

/// The expected ACLs of each session's requests, by xid. A client that reuses xids has several for one xid.
#[derive(Debug, Default)]
pub(crate) struct RequestedAcls(BTreeMap<SessionId, BTreeMap<i32, Vec<Vec<ExpectedAcl>>>>);

impl RequestedAcls {
    pub(crate) fn ask(&mut self, session: SessionId, cxid: i32, given: &[ExpectedAcl]) {
        let of = self.0.entry(session).or_default();
        if !given.is_empty() {
            of.entry(cxid).or_default().push(given.into());
        }
    }

    /// Asserts that a committed transaction has the lists of its request.
    pub(crate) fn commit(&self, record: &TxnRecord<'_>) {
        // Only requests of the simulated clients are noted.
        let Some(of) = self.0.get(&record.header.session) else { return };
        let (mut logged, whole) = (Vec::new(), set_whole(&record.txn));
        lists(&record.txn, &mut logged);
        if logged.is_empty() {
            return;
        }
        let asked = of.get(&record.header.cxid).map_or(&[][..], |asked| asked);
        assert!(
            asked.iter().any(|given| is_logged(given, &logged, whole)),
            "[acl] {} has {logged:?}, and {asked:?} was requested",
            record.header.zxid
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::acl::Perms;

    #[test]
    fn a_list_is_logged_without_duplicates_and_with_identities_for_auth() {
        let read = |scheme: &str, id: &str| Acl { perms: Perms::READ, id: Id::new(scheme, id) };
        let asked = [read("auth", ""), Acl::world(Perms::ALL), read("auth", "")];
        let given = ExpectedAcl::new("/a", &asked, &IDENTITIES[..2]);
        let [one, two] = [0, 1].map(|at| read("digest", IDENTITIES[at].1));
        let kept = [one, two, Acl::world(Perms::ALL)];
        assert!(given.is(("/a", &kept)) && given.is(("/a0000000012", &kept)));
        assert!(!given.is(("/b", &kept)) && !given.is(("/ab", &kept)) && !given.is(("/a", &kept[1..])));
        assert_eq!(ExpectedAcl::new("/a", &asked, &[]).acl, None);
    }
}
