//! Watch events and states of the connection, which are printed when they happen.

use super::{answer::OutputStyle, stat_text::epoch_and_counter};
use crossterm::style::Stylize;
use ostler_client::{ConnectionState, SessionId, WatchedEvent};
use serde_json::json;

/// An event that is printed when it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Announcement {
    Changed(WatchedEvent),
    /// The connection was lost: changes of what is watched at this path may have gone unreported.
    Missed {
        path: String,
    },
    /// A watch was removed. The kind is in the words of zkCli.sh.
    Removed {
        path: String,
        kind: &'static str,
    },
    /// The session was lost, and the watch ended with it.
    Ended {
        path: String,
    },
    State {
        state: ConnectionState,
        session: Option<SessionId>,
    },
}

impl Announcement {
    /// The text to write for it.
    pub(crate) fn shown(&self, style: OutputStyle) -> String {
        match style {
            OutputStyle::Plain => {
                let (state, kind, path, zxid) = self.as_upstream();
                let path = path.unwrap_or("null");
                format!("\nWATCHER::\n\nWatchedEvent state:{state} type:{kind} path:{path} zxid: {zxid}\n")
            }
            OutputStyle::Notes { colour: true } => {
                format!("{} {}\n", "WATCHER::".dark_yellow(), self.sentence())
            }
            OutputStyle::Notes { colour: false } => format!("WATCHER:: {}\n", self.sentence()),
            OutputStyle::Json => {
                let (state, kind, path, zxid) = self.as_upstream();
                let zxid = (zxid >= 0).then(|| format!("0x{zxid:x}"));
                let event = json!({ "state": state, "type": kind, "path": path, "zxid": zxid });
                format!("{}\n", json!({ "watch": event }))
            }
        }
    }

    /// State, type, path and zxid of the event that zkCli.sh would print.
    fn as_upstream(&self) -> (&'static str, String, Option<&str>, i64) {
        let connected = "SyncConnected";
        match self {
            Announcement::Changed(event) => {
                let zxid = event.zxid.map_or(-1, |zxid| zxid.to_wire());
                (connected, format!("{:?}", event.kind), Some(&event.path), zxid)
            }
            Announcement::Missed { path } => (connected, "Gap".into(), Some(path), -1),
            Announcement::Removed { path, kind } => {
                (connected, format!("{kind}WatchRemoved"), Some(path), -1)
            }
            Announcement::Ended { path } => ("Expired", "None".into(), Some(path), -1),
            Announcement::State { state, .. } => (upstream_state(*state), "None".into(), None, -1),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Announcement::Changed(event) => {
                let zxid = event.zxid.map(|zxid| format!("  zxid {zxid} ({})", epoch_and_counter(zxid)));
                format!("{:?} {}{}", event.kind, event.path, zxid.unwrap_or_default())
            }
            Announcement::Missed { path } => {
                format!(
                    "changes below {path} may have gone unreported while there was no connection: look again"
                )
            }
            Announcement::Removed { path, kind } => format!("{kind} watch of {path} removed"),
            Announcement::Ended { path } => format!("the watch of {path} has ended with its session"),
            Announcement::State { state, session } => state_sentence(*state, *session),
        }
    }
}

fn upstream_state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Connected | ConnectionState::Reconnected => "SyncConnected",
        ConnectionState::ReadOnly => "ConnectedReadOnly",
        ConnectionState::Connecting | ConnectionState::Suspended => "Disconnected",
        ConnectionState::Lost => "Expired",
        ConnectionState::Closed => "Closed",
        _ => "Unknown",
    }
}

fn state_sentence(state: ConnectionState, session: Option<SessionId>) -> String {
    let session = session.map_or_else(String::new, |session| format!(" {session}"));
    match state {
        ConnectionState::Connected | ConnectionState::Reconnected => format!("connected, session{session}"),
        ConnectionState::ReadOnly => format!("connected to a server that takes no writes, session{session}"),
        ConnectionState::Connecting => "connecting".into(),
        ConnectionState::Suspended => {
            format!("connection lost, looking for another server; session{session} may live")
        }
        ConnectionState::Lost => format!("session{session} is lost, and with it its ephemeral znodes"),
        ConnectionState::Closed => "closed".into(),
        other => format!("{other:?}, session{session}"),
    }
}

/// The state as the prompt shows it.
pub(crate) fn prompt_state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Connected | ConnectionState::Reconnected => "CONNECTED",
        ConnectionState::ReadOnly => "CONNECTEDREADONLY",
        ConnectionState::Connecting => "CONNECTING",
        ConnectionState::Suspended => "SUSPENDED",
        ConnectionState::Lost => "LOST",
        ConnectionState::Closed => "CLOSED",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_watch_is_printed_as_in_zkcli() {
        let removed = Announcement::Removed { path: "/a".into(), kind: "Data" };
        let upstream =
            "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:DataWatchRemoved path:/a zxid: -1\n";
        assert_eq!(removed.shown(OutputStyle::Plain), upstream);
        assert_eq!(
            removed.shown(OutputStyle::Notes { colour: false }),
            "WATCHER:: Data watch of /a removed\n"
        );
    }

    #[test]
    fn a_state_is_printed_with_its_consequence() {
        let lost = Announcement::State { state: ConnectionState::Lost, session: Some(SessionId(0x17)) };
        let said = "WATCHER:: session 0x17 is lost, and with it its ephemeral znodes\n";
        assert_eq!(lost.shown(OutputStyle::Notes { colour: false }), said);
        let json = r#"{"watch":{"state":"Expired","type":"None","path":null,"zxid":null}}"#;
        assert_eq!(lost.shown(OutputStyle::Json).trim_end(), json);
    }
}
