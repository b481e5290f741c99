//! Which watches an event is for: the table of upstream's watch manager.

use crate::watch_table::{EventKind, WatchKind};

/// Kinds of watches on the event's own path that hear of it; recursive ones are apart, because those above
/// hear of it as well.
pub(crate) fn kinds_on_path(kind: EventKind) -> &'static [WatchKind] {
    match kind {
        EventKind::NodeCreated | EventKind::NodeDataChanged => {
            &[WatchKind::Data, WatchKind::Exist, WatchKind::Persistent]
        }
        EventKind::NodeDeleted => {
            &[WatchKind::Data, WatchKind::Exist, WatchKind::Child, WatchKind::Persistent]
        }
        EventKind::NodeChildrenChanged => &[WatchKind::Child, WatchKind::Persistent],
        EventKind::Gap => &[],
    }
}

/// Whether recursive watches on the path and above hear of it: each child's own event comes to them, so that
/// the change of the list of children says nothing new.
pub(crate) fn reaches_recursive(kind: EventKind) -> bool {
    matches!(kind, EventKind::NodeCreated | EventKind::NodeDeleted | EventKind::NodeDataChanged)
}
