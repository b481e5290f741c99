//! Immutable bytes that a znode, a reply and a connection share: one pointer, one allocation.

use core::{fmt, ops::Deref};
use triomphe::ThinArc;

/// Immutable shared bytes. The pointer is thin, since each of a million znodes can have one.
#[derive(Clone)]
pub struct SharedBytes(ThinArc<(), u8>);

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.slice
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        SharedBytes(ThinArc::from_header_and_slice((), bytes))
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

const _: () = assert!(size_of::<Option<SharedBytes>>() == size_of::<usize>());
