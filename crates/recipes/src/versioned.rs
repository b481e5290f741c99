//! A value together with the Stat of its znode.

use ostler_client::{Stat, Version, Zxid};

/// A value, and the Stat of its znode when the value was read or written. Curator's `VersionedValue`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionedValue<T> {
    /// The value.
    pub value: T,
    /// The znode's Stat.
    pub stat: Stat,
}

impl<T> VersionedValue<T> {
    /// The znode's version, for a write that must not overwrite a later one.
    pub fn version(&self) -> Version {
        Version::Exactly(self.stat.version)
    }

    /// The zxid of the transaction that wrote the value. It grows from write to write, also if the znode's version
    /// overflows or the znode is created again.
    pub fn zxid(&self) -> Zxid {
        self.stat.mzxid
    }

    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> VersionedValue<U> {
        VersionedValue { value: map(self.value), stat: self.stat }
    }
}
