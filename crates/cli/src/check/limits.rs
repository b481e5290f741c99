//! The limit of open files.

use super::finding::{Finding, Level, Topic};
use rustix::process::{Resource, getrlimit};

/// Each client takes one file, and a server takes some more for its logs and for the other members.
const COMFORTABLE: u64 = 10_000;

pub(super) fn check() -> Option<Finding> {
    Some(judge(getrlimit(Resource::Nofile).maximum))
}

/// `limit` is the hard limit: a server raises the soft one to it at its start. `None` is without end.
fn judge(limit: Option<u64>) -> Finding {
    match limit {
        Some(limit) if limit < COMFORTABLE => Finding::new(
            Level::Warning,
            Topic::Limits,
            format!(
                "this user may have {limit} files open (ulimit -Hn), so fewer than {limit} clients can be connected; \
                 raise it, for example with LimitNOFILE=65536 in the unit of systemd, or in /etc/security/limits.conf"
            ),
        ),
        Some(limit) => fact(format!("this user may have {limit} files open")),
        None => fact("this user may have any number of files open".to_owned()),
    }
}

fn fact(text: String) -> Finding {
    Finding::new(Level::Fact, Topic::Limits, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_a_warning() {
        assert_eq!(judge(Some(1024)).level, Level::Warning);
        assert_eq!(judge(Some(65536)).level, Level::Fact);
        assert_eq!(judge(None).level, Level::Fact);
    }
}
