//! Commands about watches.

use super::super::{
    answer::Answer,
    error::ShellError,
    session::{ShellSession, now_ms},
    watches::Watched,
};
use ostler_client::{AddWatchMode, Error, EventKind, WatcherType};

impl ShellSession {
    /// Shows changes when they happen, until `count` were shown.
    pub(super) async fn watch(
        &mut self,
        path: &str,
        recursive: bool,
        count: Option<u64>,
    ) -> Result<(), ShellError> {
        let mode = if recursive { AddWatchMode::PersistentRecursive } else { AddWatchMode::Persistent };
        let mut changes = self.client()?.add_watch(path, mode).await?;
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(event) = changes.next().await else {
                return Err(ShellError::Refused(format!("the watch of {path} was removed")));
            };
            // A gap has no path of its own: it concerns the whole watch.
            let path = if event.kind == EventKind::Gap { path.to_owned() } else { event.path };
            self.answer(&Answer::Event { at_ms: now_ms(), kind: event.kind, path, zxid: event.zxid })?;
            self.output.flush()?;
            left -= 1;
        }
        Ok(())
    }

    pub(super) async fn add_watch(&mut self, path: &str, mode: AddWatchMode) -> Result<(), ShellError> {
        let changes = self.client()?.add_watch(path, mode).await?;
        let recursive = mode == AddWatchMode::PersistentRecursive;
        self.connected()?.watches.stream(path, Watched::All { recursive }, changes);
        Ok(())
    }

    /// Removes watches at the server; with `here` also in this shell if there is no connection.
    pub(super) async fn remove_watches(
        &mut self,
        path: &str,
        kind: WatcherType,
        here: bool,
    ) -> Result<(), ShellError> {
        let client = self.client()?;
        if client.is_connected() || !here {
            match client.remove_watches(path, kind).await {
                // The watch was there a moment ago.
                Err(Error::ConnectionLoss { .. } | Error::NotConnected { .. }) if here => {}
                removed => return Ok(removed?),
            }
        }
        self.connected()?.watches.forget(path, kind);
        Ok(())
    }

    pub(super) fn print_watches(&mut self, wanted: Option<bool>) -> Result<(), ShellError> {
        if let Some(wanted) = wanted {
            self.teller.want_changes(wanted);
            return Ok(());
        }
        let state = if self.teller.changes_wanted() { "on" } else { "off" };
        self.answer(&Answer::said("printwatches", format!("printwatches is {state}")))
    }
}
