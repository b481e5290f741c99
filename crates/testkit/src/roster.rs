//! The running members, for waits on all members while some are killed and started.

use crate::{counts::Counts, error::TestkitError};
use ostler_proto::id::ServerId;
use ostler_server::ServerHandle;
use std::collections::BTreeMap;
use tokio::{sync::watch, task::JoinSet};

#[derive(Debug)]
pub(crate) struct Roster(watch::Sender<Running>);

#[derive(Debug, Default, Clone)]
struct Running(BTreeMap<ServerId, ServerHandle>);

impl Default for Roster {
    fn default() -> Roster {
        Roster(watch::Sender::new(Running::default()))
    }
}

impl Roster {
    pub(crate) fn add(&self, id: ServerId, handle: &ServerHandle) {
        self.0.send_modify(|running| drop(running.0.insert(id, handle.clone())));
    }

    pub(crate) fn remove(&self, id: ServerId) {
        self.0.send_modify(|running| drop(running.0.remove(&id)));
    }

    /// `None` if no member runs.
    pub(crate) fn counts(&self) -> Option<Counts> {
        Counts::together(&self.0.borrow().look())
    }

    pub(crate) fn until(
        &self,
        mut wanted: impl FnMut(&Counts) -> bool + Send + 'static,
    ) -> impl Future<Output = Result<(), TestkitError>> + Send + 'static {
        let mut running = self.0.subscribe();
        async move {
            loop {
                let now = running.borrow_and_update().clone();
                let counts = now.look();
                if Counts::together(&counts).is_some_and(|together| wanted(&together)) {
                    return Ok(());
                }
                tokio::select! {
                    () = now.change_from(counts) => {}
                    // Without a sender the ensemble is gone.
                    changed = running.changed() => changed.map_err(|_| TestkitError::Down)?,
                }
            }
        }
    }
}

impl Running {
    fn look(&self) -> Vec<Counts> {
        self.0.values().map(|handle| handle.inspect(Counts::of)).collect()
    }

    /// Waits until a member has other counts than these, which are in the order of the members.
    async fn change_from(self, counts: Vec<Counts>) {
        let mut changes = JoinSet::new();
        for (handle, seen) in self.0.into_values().zip(counts) {
            changes.spawn(async move { handle.until(move |server| Counts::of(server) != seen).await });
        }
        while let Some(changed) = changes.join_next().await {
            // A member that has ended does not change any more. It is about to be removed from the roster.
            if matches!(changed, Ok(Ok(()))) {
                return;
            }
        }
        std::future::pending().await
    }
}
