//! How much of a path a caller of the admin server may see.

use crate::{connections::identities::Identities, requests::access, server::Server};
use alloc::{borrow::Cow, format};
use ostler_proto::{
    acl::{Id, Perms},
    path,
};

/// The identities of a caller who looks at paths.
#[derive(Debug)]
pub struct PathReader {
    ids: Identities,
}

impl PathReader {
    /// A caller with these identities.
    pub fn new(ids: &[Id]) -> PathReader {
        PathReader { ids: Identities::new(ids.iter().cloned()) }
    }
}

/// The most ancestors that are looked at, and the longest of them: a path may have half a million.
const ANCESTORS_MAX: usize = 64;
const LENGTH_MAX: usize = 4096;

/// The text that stands for the rest of a path.
pub const HIDDEN: &str = "...";

impl Server {
    /// A path as this caller may see it. The name of a znode can be read at its parent: where that is not allowed, or where
    /// the parent does not exist (any more), the path ends at the nearest ancestor that may be seen, with `/...` behind it. A
    /// super user sees all.
    pub fn seen_path<'p>(&self, reader: &PathReader, path: &'p str) -> Cow<'p, str> {
        if self.config.skip_acl || reader.ids.is_super() {
            return Cow::Borrowed(path);
        }
        let is_seen = |path: &str| path::parent(path).is_none_or(|parent| self.may_list(reader, parent));
        if is_seen(path) {
            return Cow::Borrowed(path);
        }
        let mut above = path::ancestors(path).filter(|above| above.len() <= LENGTH_MAX).take(ANCESTORS_MAX);
        let seen = above.find(|above| is_seen(above)).unwrap_or("/");
        let above = if seen == "/" { "" } else { seen };
        Cow::Owned(format!("{above}/{HIDDEN}"))
    }

    fn may_list(&self, reader: &PathReader, path: &str) -> bool {
        let schemes = &self.config.enforced_auth_schemes;
        if !schemes.is_empty() && !reader.ids.all().iter().any(|id| schemes.contains(&id.scheme)) {
            return false;
        }
        let Some(node) = self.tree.get(path) else { return false };
        access::allows(&self.config, &self.tree.acl(node), Perms::READ, &reader.ids, &self.work)
    }
}
