//! The rights of an operator who asks at the admin server.

use crate::{requests::auth, server::Server};
use alloc::vec::Vec;
use core::net::IpAddr;
use ostler_proto::acl::{Id, Perms};
use ostler_tree::AclList;

/// An operator's identity, as it was shown with a request of the admin server.
#[derive(Debug, Clone, Copy)]
pub struct OperatorLogin<'a> {
    /// The caller's address.
    pub address: IpAddr,
    /// The scheme of the header `Authorization`, such as `digest`.
    pub scheme: &'a str,
    /// The rest of the header, such as `user:password`.
    pub auth: Option<&'a [u8]>,
    /// The identity that a certificate proves.
    pub certificate: Option<&'a Id>,
}

impl Server {
    /// The identities that a login proves; `None` if it fails.
    pub fn operator_ids(&self, login: OperatorLogin<'_>) -> Option<Vec<Id>> {
        if login.scheme != "x509" {
            return auth::authenticate(&self.config, login.address, Some(login.scheme), login.auth);
        }
        let id = login.certificate?.clone();
        let is_super = self.config.x509_super_user.as_deref() == Some(&*id.id);
        let mut ids = Vec::from([id]);
        if is_super {
            ids.push(Id::new("super", ""));
        }
        Some(ids)
    }

    /// Whether these identities may do this to the server as a whole: a super user may, and an identity that an entry of
    /// the root's ACL names with all of these permissions. Unlike upstream, an entry for everybody or for an address
    /// gives nothing here: a new ensemble has one, and with it everybody could take and replace all data.
    pub fn operator_may(&self, ids: &[Id], needed: Perms) -> bool {
        let acl = self.tree.get("/").and_then(|root| self.tree.acl(root));
        may(acl.as_deref(), ids, needed)
    }
}

fn may(root: Option<&AclList>, ids: &[Id], needed: Perms) -> bool {
    if ids.iter().any(|id| id.scheme == "super") {
        return true;
    }
    let Some(list) = root else { return false };
    let proven = ids.iter().filter(|id| auth::is_proven(id));
    let granted = proven.fold(Perms(0), |granted, id| granted.with(list.perms_of_id(id)));
    granted.0 & needed.0 == needed.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::CoreConfig,
        input::{Mono, Now},
    };
    use ostler_proto::acl::Acl;
    use ostler_tree::Tree;

    fn ids(scheme: &str, auth: &str) -> Option<Vec<Id>> {
        let config =
            CoreConfig { super_digest: Some(auth::digest_id("super:secret")), ..CoreConfig::default() };
        let server =
            Server::new(config, Tree::fresh(Default::default()), 0, Now { mono: Mono(0), us: 0, wall_ms: 0 });
        let address = IpAddr::from([127, 0, 0, 1]);
        server.operator_ids(OperatorLogin { address, scheme, auth: Some(auth.as_bytes()), certificate: None })
    }

    #[test]
    fn only_a_super_user_or_an_entry_with_a_name_gives_rights() {
        let entry = |perms, scheme, id: &str| Acl { perms, id: Id::new(scheme, id) };
        let list = |entries: Vec<Acl>| AclList::new(entries.into(), 0);
        let open = list(Vec::from([entry(Perms::ALL, "world", "anyone")]));
        let named = list(Vec::from([
            entry(Perms::ALL, "digest", &auth::digest_id("ann:pw")),
            entry(Perms::READ, "digest", &auth::digest_id("bob:pw")),
            entry(Perms::ALL, "ip", "127.0.0.1"),
        ]));
        let all = |root: Option<&AclList>, scheme, auth| may(root, &ids(scheme, auth).unwrap(), Perms::ALL);
        assert!(all(None, "digest", "super:secret") && all(Some(&open), "digest", "super:secret"));
        assert!(!all(None, "digest", "a:b"));
        for (scheme, auth) in [("digest", "super:wrong"), ("digest", "a:b"), ("ip", "")] {
            assert!(!all(Some(&open), scheme, auth), "{scheme} {auth}");
            assert!(!all(Some(&named), scheme, auth), "{scheme} {auth}");
        }
        assert!(all(Some(&named), "digest", "ann:pw"));
        assert!(!all(Some(&named), "digest", "bob:pw"));
        assert!(ids("x509", "").is_none(), "there is no certificate");
        assert!(ids("world", "anyone").is_none());
    }
}
