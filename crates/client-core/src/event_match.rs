//! Which watches get an event, as in ZooKeeper's watch manager.

use crate::watch_table::{EventKind, WatchKind};

/// The kinds of watches on the event's own path that get it. Recursive ones are apart, because those on the paths above
/// get it as well.
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

/// Whether recursive watches on the path and above get the event. They do not get changes of lists of children, because
/// they get each child's own event.
pub(crate) fn reaches_recursive(kind: EventKind) -> bool {
    matches!(kind, EventKind::NodeCreated | EventKind::NodeDeleted | EventKind::NodeDataChanged)
}
