//! The kind of a znode as the options of a create choose it.

use super::CreateMode;
use crate::error::{Error, Result};
use std::time::Duration;

/// The options that were set so far. Each setter adds one; [`mode`](ModeChoice::mode) replaces all of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ModeChoice {
    mode: CreateMode,
    /// Two options that no znode has both.
    conflict: Option<(&'static str, &'static str)>,
}

impl ModeChoice {
    pub(crate) fn mode(mode: CreateMode) -> ModeChoice {
        ModeChoice { mode, conflict: None }
    }

    fn add(
        self,
        option: &'static str,
        combined: std::result::Result<CreateMode, &'static str>,
    ) -> ModeChoice {
        match combined {
            Ok(mode) => ModeChoice { mode, ..self },
            Err(other) => ModeChoice { conflict: self.conflict.or(Some((other, option))), ..self },
        }
    }

    pub(crate) fn ephemeral(self) -> ModeChoice {
        let combined = match self.mode {
            CreateMode::Persistent | CreateMode::Ephemeral => Ok(CreateMode::Ephemeral),
            CreateMode::PersistentSequential | CreateMode::EphemeralSequential => {
                Ok(CreateMode::EphemeralSequential)
            }
            CreateMode::Container => Err("container"),
            CreateMode::PersistentWithTtl(_) | CreateMode::PersistentSequentialWithTtl(_) => Err("ttl"),
        };
        self.add("ephemeral", combined)
    }

    pub(crate) fn sequential(self) -> ModeChoice {
        let combined = match self.mode {
            CreateMode::Persistent => Ok(CreateMode::PersistentSequential),
            CreateMode::Ephemeral => Ok(CreateMode::EphemeralSequential),
            CreateMode::PersistentWithTtl(ttl) => Ok(CreateMode::PersistentSequentialWithTtl(ttl)),
            CreateMode::Container => Err("container"),
            sequential @ (CreateMode::PersistentSequential
            | CreateMode::EphemeralSequential
            | CreateMode::PersistentSequentialWithTtl(_)) => Ok(sequential),
        };
        self.add("sequential", combined)
    }

    pub(crate) fn container(self) -> ModeChoice {
        let combined = match self.mode {
            CreateMode::Persistent | CreateMode::Container => Ok(CreateMode::Container),
            CreateMode::Ephemeral | CreateMode::EphemeralSequential => Err("ephemeral"),
            CreateMode::PersistentSequential => Err("sequential"),
            CreateMode::PersistentWithTtl(_) | CreateMode::PersistentSequentialWithTtl(_) => Err("ttl"),
        };
        self.add("container", combined)
    }

    pub(crate) fn ttl(self, ttl: Duration) -> ModeChoice {
        let combined = match self.mode {
            CreateMode::Persistent | CreateMode::PersistentWithTtl(_) => {
                Ok(CreateMode::PersistentWithTtl(ttl))
            }
            CreateMode::PersistentSequential | CreateMode::PersistentSequentialWithTtl(_) => {
                Ok(CreateMode::PersistentSequentialWithTtl(ttl))
            }
            CreateMode::Ephemeral | CreateMode::EphemeralSequential => Err("ephemeral"),
            CreateMode::Container => Err("container"),
        };
        self.add("ttl", combined)
    }

    /// The kind of znode that has all the options.
    ///
    /// # Errors
    /// [`Error::ModeConflict`]: there is none.
    pub(crate) fn checked(self, path: &str) -> Result<CreateMode> {
        match self.conflict {
            None => Ok(self.mode),
            Some((first, second)) => Err(Error::ModeConflict { first, second, path: path.into() }),
        }
    }

    /// The kind of znode, once it is [`checked`](ModeChoice::checked).
    pub(crate) fn get(self) -> CreateMode {
        self.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_millis(5);

    /// Each option, by its name.
    fn with(choice: ModeChoice, option: &str) -> ModeChoice {
        match option {
            "ephemeral" => choice.ephemeral(),
            "sequential" => choice.sequential(),
            "container" => choice.container(),
            _ => choice.ttl(TTL),
        }
    }

    #[test]
    fn two_options_are_both_kept_in_either_order_or_refused() {
        use CreateMode::{EphemeralSequential, PersistentSequentialWithTtl};
        for (one, other, mode) in [
            ("ephemeral", "sequential", Some(EphemeralSequential)),
            ("sequential", "ttl", Some(PersistentSequentialWithTtl(TTL))),
            ("ephemeral", "container", None),
            ("ephemeral", "ttl", None),
            ("container", "sequential", None),
            ("container", "ttl", None),
        ] {
            for (first, second) in [(one, other), (other, one)] {
                let chosen = with(with(ModeChoice::default(), first), second).checked("/a");
                match (chosen, mode) {
                    (Ok(chosen), Some(mode)) => assert_eq!(chosen, mode),
                    (Err(error), None) => {
                        let text = error.to_string();
                        assert!([one, other].iter().all(|name| text.contains(*name)), "{text}");
                    }
                    (chosen, _) => panic!("{first} and {second}: {chosen:?}"),
                }
            }
        }
    }

    #[test]
    fn a_mode_replaces_all_options_and_is_kept_by_later_ones() {
        use CreateMode::*;
        for mode in [
            Persistent,
            PersistentSequential,
            Ephemeral,
            EphemeralSequential,
            Container,
            PersistentWithTtl(TTL),
            PersistentSequentialWithTtl(TTL),
        ] {
            assert_eq!(ModeChoice::mode(mode).checked("/a").unwrap(), mode);
        }
        let sequential = ModeChoice::mode(Ephemeral).sequential();
        assert_eq!(sequential.checked("/a").unwrap(), EphemeralSequential);
        let refused = ModeChoice::default().ephemeral().container();
        assert!(refused.sequential().checked("/a").is_err());
    }
}
