//! How much of a path a caller of the admin server may see.

use crate::{connections::identities::Identities, requests::access, server::Server};
use alloc::{borrow::Cow, format};
use ostler_proto::acl::{Id, Perms};

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
    /// A path as this caller may see it. The name of a znode can be read at its parent, and whoever may not read there does not
    /// learn what is below. So the path ends at the first ancestor that the caller may not read, or that does not exist
    /// (any more), with `/...` behind it. A super user sees all.
    pub fn seen_path<'p>(&self, reader: &PathReader, path: &'p str) -> Cow<'p, str> {
        if path == "/" || self.config.skip_acl || reader.ids.is_super() {
            return Cow::Borrowed(path);
        }
        for (number, (at, _)) in path.match_indices('/').enumerate() {
            let parent = if at == 0 { "/" } else { &path[..at] };
            if number == ANCESTORS_MAX || at > LENGTH_MAX || !self.may_list(reader, parent) {
                return Cow::Owned(format!("{}/{HIDDEN}", &path[..at]));
            }
        }
        Cow::Borrowed(path)
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
