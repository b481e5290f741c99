//! A client's root (chroot): translates between paths of the application and paths of the server.

use alloc::{borrow::Cow, string::String, sync::Arc};
use core::fmt;
use ostler_proto::path;

/// The root of an application: its paths are relative to this znode.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Chroot(Arc<str>);

impl Chroot {
    /// The servers' own root: no chroot.
    pub fn none() -> Chroot {
        Chroot(Arc::from(""))
    }

    /// The root at this path; `None` if the path is not valid.
    pub fn new(root: &str) -> Option<Chroot> {
        match root {
            "" | "/" => Some(Chroot::none()),
            _ => path::is_valid(root).then(|| Chroot(root.into())),
        }
    }

    /// A root below this one. `name` may have several parts, and may begin with a slash.
    pub fn join(&self, name: &str) -> Option<Chroot> {
        let name = name.trim_matches('/');
        match name {
            "" => Some(self.clone()),
            _ => Chroot::new(&alloc::format!("{}/{name}", self.0)),
        }
    }

    /// Whether this is the servers' root.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The root's own path at the servers.
    pub fn root(&self) -> &str {
        match self.is_none() {
            true => "/",
            false => &self.0,
        }
    }

    /// The server's path for a path of the application.
    pub fn absolute<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if self.is_none() {
            return Cow::Borrowed(path);
        }
        let mut whole = String::with_capacity(self.0.len() + path.len());
        whole.push_str(&self.0);
        if path != "/" {
            whole.push_str(path);
        }
        Cow::Owned(whole)
    }

    /// Whether a path of the server is this root or below it.
    pub fn contains(&self, path: &str) -> bool {
        path::is_within(path, self.root())
    }

    /// The application's path for a path of the server. A path outside of this root stays as it is.
    pub fn relative<'a>(&self, path: &'a str) -> &'a str {
        match path.strip_prefix(&*self.0) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        }
    }
}

impl fmt::Debug for Chroot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chroot").field(&self.root()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_translated_in_both_directions() {
        for (root, inside, outside) in [
            ("", "/a", "/a"),
            ("/", "/", "/"),
            ("/r", "/", "/r"),
            ("/r", "/a/b", "/r/a/b"),
            ("/r/s", "/a", "/r/s/a"),
        ] {
            let chroot = Chroot::new(root).unwrap();
            assert_eq!(chroot.absolute(inside), outside);
            assert_eq!(chroot.relative(outside), inside);
        }
    }

    #[test]
    fn paths_outside_of_the_root_stay_as_they_are() {
        let chroot = Chroot::new("/r").unwrap();
        assert_eq!(chroot.relative("/rs/a"), "/rs/a");
        assert_eq!(chroot.relative("/"), "/");
        for (path, inside) in [("/r", true), ("/r/a", true), ("/rs/a", false), ("/", false)] {
            assert!(chroot.contains(path) == inside && Chroot::none().contains(path), "{path}");
        }
    }

    #[test]
    fn roots_are_joined_and_invalid_ones_refused() {
        let chroot = Chroot::new("/r").unwrap();
        assert_eq!(chroot.join("a/b").unwrap().root(), "/r/a/b");
        assert_eq!(chroot.join("/a").unwrap().root(), "/r/a");
        assert_eq!(Chroot::none().join("").unwrap().root(), "/");
        assert!(Chroot::new("r").is_none() && Chroot::new("/r/").is_none() && chroot.join("a//b").is_none());
    }
}
