//! The commands of the admin server, under the names of ZooKeeper 3.9.

use super::access::Right;
use crate::admin::four_letter::Word;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Configuration,
    ConnectionStatReset,
    Connections,
    Dirs,
    Dump,
    /// Ostler's own: how this server found its leaders.
    Elections,
    Environment,
    GetTraceMask,
    Hash,
    /// Ostler's own.
    HotPaths,
    InitialConfiguration,
    IsReadOnly,
    LastSnapshot,
    Leader,
    Monitor,
    ObserverConnectionStatReset,
    Observers,
    Restore,
    Ruok,
    ServerStats,
    /// Ostler's own: why connections and sessions ended.
    SessionEnds,
    SetTraceMask,
    /// Of 3.10.
    ShedConnections,
    /// Ostler's own.
    SlowRequests,
    Snapshot,
    StatReset,
    Stats,
    SystemProperties,
    VotingView,
    WatchSummary,
    Watches,
    WatchesByPath,
    Zabstate,
}

use Command::*;

impl Command {
    /// In the order of their names.
    pub(crate) const ALL: [Command; 33] = [
        Configuration,
        ConnectionStatReset,
        Connections,
        Dirs,
        Dump,
        Elections,
        Environment,
        GetTraceMask,
        Hash,
        HotPaths,
        InitialConfiguration,
        IsReadOnly,
        LastSnapshot,
        Leader,
        Monitor,
        ObserverConnectionStatReset,
        Observers,
        Restore,
        Ruok,
        ServerStats,
        SessionEnds,
        SetTraceMask,
        ShedConnections,
        SlowRequests,
        Snapshot,
        StatReset,
        Stats,
        SystemProperties,
        VotingView,
        WatchSummary,
        Watches,
        WatchesByPath,
        Zabstate,
    ];

    /// The primary name first.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Configuration => &["configuration", "conf", "config"],
            ConnectionStatReset => &["connection_stat_reset", "crst"],
            Connections => &["connections", "cons"],
            Dirs => &["dirs"],
            Dump => &["dump"],
            Elections => &["elections", "elec"],
            Environment => &["environment", "env", "envi"],
            GetTraceMask => &["get_trace_mask", "gtmk"],
            Hash => &["hash"],
            HotPaths => &["hot_paths"],
            InitialConfiguration => &["initial_configuration", "icfg"],
            IsReadOnly => &["is_read_only", "isro"],
            LastSnapshot => &["last_snapshot", "lsnp"],
            Leader => &["leader", "lead"],
            Monitor => &["monitor", "mntr"],
            ObserverConnectionStatReset => &["observer_connection_stat_reset", "orst"],
            Observers => &["observers", "obsr"],
            Restore => &["restore", "rest"],
            Ruok => &["ruok"],
            ServerStats => &["server_stats", "srvr"],
            SessionEnds => &["session_ends"],
            SetTraceMask => &["set_trace_mask", "stmk"],
            ShedConnections => &["shed_connections", "shed"],
            SlowRequests => &["slow_requests"],
            Snapshot => &["snapshot", "snap"],
            StatReset => &["stat_reset", "srst"],
            Stats => &["stats", "stat"],
            SystemProperties => &["system_properties", "sysp"],
            VotingView => &["voting_view"],
            WatchSummary => &["watch_summary", "wchs"],
            Watches => &["watches", "wchc"],
            WatchesByPath => &["watches_by_path", "wchp"],
            Zabstate => &["zabstate"],
        }
    }

    /// The primary name.
    pub(crate) fn name(self) -> &'static str {
        self.names()[0]
    }

    pub(crate) fn find(name: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.names().contains(&name))
    }

    /// Whether the command asks by POST.
    pub(crate) fn is_post(self) -> bool {
        matches!(self, Restore | ShedConnections)
    }

    /// Whether the command answers while no tree is served.
    pub(crate) fn answers_without_tree(self) -> bool {
        matches!(
            self,
            Elections
                | Environment
                | HotPaths
                | SessionEnds
                | SlowRequests
                | GetTraceMask
                | SetTraceMask
                | Monitor
                | SystemProperties
                | Zabstate
        )
    }

    pub(crate) fn right(self) -> Right {
        match self {
            Ruok => Right::Health,
            ConnectionStatReset | ObserverConnectionStatReset | SetTraceMask | StatReset => Right::Change,
            Restore | ShedConnections | Snapshot => Right::Whole,
            _ => Right::Read,
        }
    }

    /// Whether the answer grows with the number of connections, watches or ephemerals.
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Connections | Dump | Stats | Watches | WatchesByPath)
    }

    /// The word whose report has what the command shows.
    pub(crate) fn word(self) -> Word {
        match self {
            Configuration => Word::Conf,
            ConnectionStatReset => Word::Crst,
            Connections => Word::Cons,
            Dirs => Word::Dirs,
            Dump => Word::Dump,
            Elections => Word::Elec,
            Environment => Word::Envi,
            GetTraceMask => Word::Gtmk,
            Hash => Word::Hash,
            Monitor | Observers => Word::Mntr,
            SetTraceMask => Word::Stmk,
            StatReset => Word::Srst,
            Stats => Word::Stat,
            WatchSummary => Word::Wchs,
            Watches => Word::Wchc,
            WatchesByPath => Word::Wchp,
            HotPaths
            | InitialConfiguration
            | IsReadOnly
            | LastSnapshot
            | Leader
            | ObserverConnectionStatReset
            | Restore
            | Ruok
            | ServerStats
            | SessionEnds
            | ShedConnections
            | SlowRequests
            | Snapshot
            | SystemProperties
            | VotingView
            | Zabstate => Word::Srvr,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_listed_once_and_in_order() {
        let names: Vec<&str> = Command::ALL.into_iter().map(Command::name).collect();
        assert!(names.is_sorted());
        let all: BTreeSet<&str> = Command::ALL.into_iter().flat_map(Command::names).copied().collect();
        let count: usize = Command::ALL.into_iter().map(|command| command.names().len()).sum();
        assert_eq!(all.len(), count);
        assert_eq!(Command::find("mntr"), Some(Monitor));
        assert_eq!(Command::find("nothing"), None);
    }
}
