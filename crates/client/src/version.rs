//! The version that a znode must have for an operation.

/// The number that matches any version, on the wire.
const ANY: i32 = -1;

/// The version that a znode must have for a write or a check. Otherwise the operation fails with `BadVersion`.
///
/// ```
/// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
/// # let server = server::TestServer::start();
/// # let client = server.client().await;
/// # client.create("/config", b"v1").await?;
/// use ostler_client::Version;
///
/// let (data, stat) = client.get_data("/config").await?;
/// client.set_data("/config", b"v2").version(Version::Exactly(stat.version)).await?;
/// // Another client's write has changed the version meanwhile: nothing is deleted.
/// let refused = client.delete("/config").version(Version::Exactly(stat.version)).await;
/// assert!(refused.is_err_and(|error| error.is_bad_version()));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Version {
    /// Any version.
    #[default]
    Any,
    /// This version. -1 fails with `BadVersion` without a request, because servers take it for any version. Servers count
    /// over it, from -2 to -1 and 0, after 4,294,967,295 writes; ZooKeeper 3.10 leaves it out. A write of
    /// [`Version::Any`] ends this state.
    Exactly(i32),
}

impl Version {
    /// The version for a number of ZooKeeper's protocol, in which -1 is any version.
    pub fn from_wire(number: i32) -> Version {
        match number {
            ANY => Version::Any,
            version => Version::Exactly(version),
        }
    }

    /// Whether a request can ask for this version.
    pub(crate) fn is_possible(self) -> bool {
        self != Version::Exactly(ANY)
    }

    /// The number for a request.
    pub(crate) fn number(self) -> i32 {
        match self {
            Version::Any => ANY,
            Version::Exactly(version) => version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_one_is_any_version_on_the_wire() {
        assert_eq!(
            [-1, 0, -2].map(Version::from_wire),
            [Version::Any, Version::Exactly(0), Version::Exactly(-2)]
        );
    }

    #[test]
    fn only_any_version_can_ask_for_the_number_of_any_version() {
        assert_eq!((Version::default().number(), Version::default().is_possible()), (-1, true));
        for (version, possible) in [(0, true), (7, true), (i32::MIN, true), (-1, false)] {
            let exactly = Version::Exactly(version);
            assert_eq!((exactly.number(), exactly.is_possible()), (version, possible));
        }
    }
}
