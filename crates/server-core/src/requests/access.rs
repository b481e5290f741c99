//! Checks of ACLs, and the ACL that is stored for the one that a client sends.

use crate::{config::CoreConfig, connections::identities::Identities, requests::auth, work::Work};
use alloc::vec::Vec;
use hashbrown::HashSet;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::{Acl, Id, Perms, RawAcl},
    error::ErrorCode,
    jute::Writer,
};
use ostler_tree::{AclList, AclRef};
use rustc_hash::FxBuildHasher;

/// The most bytes that the `auth` entries of one ACL may become: a short ACL with many permissions and a long id could
/// take all memory.
const EXPANDED_MAX: usize = 1 << 20;
/// The same for all ACLs of one request. All servers take transactions of 64 MiB.
const EXPANDED_IN_REQUEST_MAX: usize = 16 << 20;

/// The bytes that the `auth` entries of a request have become so far.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    bytes: usize,
}

impl Expanded {
    /// Counts the bytes. Fails with INVALIDACL if the ACL or the request would be too large to log.
    fn add(&mut self, in_list: usize, ids: usize) -> Result<(), ErrorCode> {
        self.bytes += ids;
        let is_too_much = in_list > EXPANDED_MAX || self.bytes > EXPANDED_IN_REQUEST_MAX;
        if is_too_much { Err(ErrorCode::InvalidAcl) } else { Ok(()) }
    }
}

/// Whether a caller with these identities has one of the permissions. An open or empty ACL allows everything, and
/// `super` may do everything.
pub(crate) fn allows(
    config: &CoreConfig,
    acl: &AclRef,
    needed: Perms,
    ids: &Identities,
    work: &Work,
) -> bool {
    let Some(list) = acl else { return true };
    config.skip_acl
        || list.is_empty()
        || ids.is_super()
        || ids.granted(list, work).any_of(needed)
        || is_for_any_sasl_user(config, list, ids, needed)
}

/// Upstream compares the name with the entry's id, not with the user's.
fn is_for_any_sasl_user(config: &CoreConfig, list: &AclList, ids: &Identities, needed: Perms) -> bool {
    let Some(any) = config.let_any_sasl_user.as_ref().filter(|_| ids.has_sasl_user()) else { return false };
    list.perms_of_id(&Id::new("sasl", any.clone())).any_of(needed)
}

/// Fails with NOAUTH if [`allows`] is false.
pub(crate) fn check(
    config: &CoreConfig,
    acl: &AclRef,
    needed: Perms,
    ids: &Identities,
    work: &Work,
) -> Result<(), ErrorCode> {
    if allows(config, acl, needed, ids, work) { Ok(()) } else { Err(ErrorCode::NoAuth) }
}

/// The ACL to store for the one that a client sent: without duplicates, and with the caller's identities in the place
/// of `auth`. Every other entry must be well formed.
pub(crate) fn fix_up(
    config: &CoreConfig,
    sent: Option<&[RawAcl<'_>]>,
    ids: &[Id],
    expanded: &mut Expanded,
) -> Result<Vec<Acl>, ErrorCode> {
    let mut fixed: Vec<Acl> = Vec::new();
    let sent = sent.unwrap_or_default();
    let mut seen = HashSet::with_capacity_and_hasher(sent.len(), FxBuildHasher);
    let mut in_list = 0;
    for entry in sent {
        if !seen.insert((entry.perms.0, entry.scheme.as_deref(), entry.id.as_deref())) {
            continue;
        }
        let scheme = entry.scheme.as_deref().ok_or(ErrorCode::InvalidAcl)?;
        match scheme {
            // The id does not matter here; kazoo sends null for an empty one.
            "auth" => {
                let before = fixed.len();
                let most = if planted::is(Bug::AuthIsTheFirst) { 1 } else { usize::MAX };
                let proven = || ids.iter().filter(|id| auth::is_proven(id)).take(most);
                let size = proven().map(Id::size).sum::<usize>();
                in_list += size;
                expanded.add(in_list, size)?;
                fixed.extend(proven().map(|id| Acl { perms: entry.perms, id: id.clone() }));
                if fixed.len() == before {
                    return Err(ErrorCode::InvalidAcl);
                }
            }
            "world" | "digest" | "ip" | "x509" | "sasl" => {
                // Upstream fails on a null id of a scheme that it knows.
                let id = entry.id.as_deref().ok_or(ErrorCode::MarshallingError)?;
                let valid = (scheme == "world" && id == "anyone") || auth::is_valid_id(config, scheme, id);
                if !valid {
                    return Err(ErrorCode::InvalidAcl);
                }
                fixed.push(Acl { perms: entry.perms, id: Id::new(scheme, id) });
            }
            _ => return Err(ErrorCode::InvalidAcl),
        }
    }
    if fixed.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(fixed) }
}

/// Writes an ACL for a caller without ADMIN: the hashes of digest ids are hidden.
pub(crate) fn write_masked(out: &mut Vec<u8>, acls: &[Acl]) {
    out.length(acls.len());
    acls.iter().for_each(|entry| masked(entry).write(out));
}

/// An entry for a caller without ADMIN: the hash of a digest id is hidden.
pub(crate) fn masked(entry: &Acl) -> Acl {
    let id = match entry.id.id.split_once(':') {
        Some((user, _)) if entry.id.scheme == "digest" => alloc::format!("{user}:x"),
        _ => entry.id.id.clone(),
    };
    Acl { perms: entry.perms, id: Id::new(entry.id.scheme.clone(), id) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_tree::acl_table::to_ref;

    fn raw(perms: i32, scheme: &'static str, id: &'static str) -> RawAcl<'static> {
        RawAcl { perms: Perms(perms), scheme: Some(scheme.into()), id: Some(id.into()) }
    }

    #[test]
    fn a_short_list_does_not_become_a_long_one() {
        let ids = [Id::new("digest", "x".repeat(64 << 10))];
        let list: Vec<RawAcl<'_>> = (0..1000).map(|perms| raw(perms, "auth", "")).collect();
        let fix =
            |list: &[RawAcl<'_>]| fix_up(&CoreConfig::default(), Some(list), &ids, &mut Expanded::default());
        assert_eq!(fix(&list[..10]).unwrap().len(), 10);
        assert_eq!(fix(&list), Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn lists_are_fixed_up() {
        let config = CoreConfig::default();
        let ids = [Id::new("ip", "127.0.0.1"), Id::new("digest", "bob:h")];
        let fix = |list: &[RawAcl<'_>]| fix_up(&config, Some(list), &ids, &mut Expanded::default());
        let world = raw(31, "world", "anyone");
        assert_eq!(fix(&[world.clone(), world.clone()]).unwrap(), [Acl::world(Perms::ALL)]);
        assert_eq!(fix(&[raw(1, "auth", "")]).unwrap()[0].id, Id::new("digest", "bob:h"));
        assert_eq!(fix(&[]), Err(ErrorCode::InvalidAcl));
        assert_eq!(fix_up(&config, None, &ids, &mut Expanded::default()), Err(ErrorCode::InvalidAcl));
        assert_eq!(fix(&[raw(1, "world", "me")]), Err(ErrorCode::InvalidAcl));
        let nobody = fix_up(&config, Some(&[raw(1, "auth", "")]), &ids[..1], &mut Expanded::default());
        assert_eq!(nobody, Err(ErrorCode::InvalidAcl));
        let null = RawAcl { perms: Perms(1), scheme: None, id: Some("x".into()) };
        assert_eq!(fix(&[null]), Err(ErrorCode::InvalidAcl));
        let null_id = |scheme| RawAcl { id: None, ..raw(1, scheme, "") };
        assert_eq!(fix(&[null_id("auth")]).unwrap()[0].id, Id::new("digest", "bob:h"));
        assert_eq!(fix(&[null_id("digest")]), Err(ErrorCode::MarshallingError));
    }

    #[test]
    fn only_the_named_may() {
        let config = CoreConfig::default();
        let acl = to_ref(&[Acl { perms: Perms::READ, id: Id::new("digest", "bob:h") }], 1);
        let may = |acl: &AclRef, needed, ids: &[Id]| {
            allows(&config, acl, needed, &Identities::new(ids.iter().cloned()), &Work::default())
        };
        let bob = [Id::new("digest", "bob:h")];
        assert!(may(&acl, Perms::READ, &bob));
        assert!(!may(&acl, Perms::WRITE, &bob));
        assert!(!may(&acl, Perms::READ, &[Id::new("digest", "eve:h")]));
        assert!(may(&acl, Perms::WRITE, &[Id::new("super", "")]));
        assert!(may(&None, Perms::WRITE, &[]));
    }
}
