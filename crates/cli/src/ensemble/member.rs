//! One server of the ensemble: its process, and its state as seen from this program.

use super::{
    folders::ServerSetup,
    inquiry::{Mode, ServerState, Serving},
    journal::LogTail,
    process::ServerProcess,
};
use std::{fmt, time::Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Down,
    Paused,
    /// The server does not listen yet.
    Starting,
    /// The server listens, and has no leader.
    Looking,
    /// The server has not answered for some time.
    Silent,
    Serving(Mode),
}

impl State {
    pub(super) fn is_serving(self) -> bool {
        matches!(self, State::Serving(_))
    }

    /// Whether the server can take part in an election.
    pub(super) fn is_up(self) -> bool {
        !matches!(self, State::Down | State::Paused)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Down => "down",
            State::Paused => "paused",
            State::Starting => "starting",
            State::Looking => "looking",
            State::Silent => "silent",
            State::Serving(Mode::Leader) => "leader",
            State::Serving(Mode::Follower) => "follower",
            State::Serving(Mode::Observer) => "observer",
            State::Serving(Mode::Standalone) => "alone",
            State::Serving(Mode::ReadOnly) => "readonly",
        })
    }
}

/// The number of missing answers after which a server counts as silent.
const MISSING_MAX: u32 = 3;

/// A server's state, with its last answer.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) state: State,
    pub(super) since: Instant,
    /// The answer of the time when it last served, in this run of its process.
    pub(super) serving: Option<Serving>,
    /// The current epoch in the server's folder.
    pub(super) noted_epoch: Option<u64>,
    missing: u32,
}

impl Health {
    pub(super) fn new(now: Instant) -> Health {
        Health { state: State::Down, since: now, serving: None, noted_epoch: None, missing: 0 }
    }

    fn turn(&mut self, state: State, now: Instant) {
        if self.state != state {
            (self.state, self.since) = (state, now);
        }
        self.missing = 0;
    }

    pub(super) fn started(&mut self, now: Instant) {
        self.serving = None;
        self.turn(State::Starting, now);
    }

    pub(super) fn ended(&mut self, now: Instant) {
        self.turn(State::Down, now);
    }

    /// The process is stopped. The server counts as paused until it answers again.
    pub(super) fn paused(&mut self, now: Instant) {
        self.turn(State::Paused, now);
    }

    pub(super) fn answered(&mut self, answer: ServerState, now: Instant) {
        match answer {
            // After a start the port opens late. The port of a paused server stays open.
            ServerState::Refused if self.state == State::Starting => {}
            ServerState::Refused | ServerState::Silent => {
                self.missing += 1;
                if self.missing >= MISSING_MAX {
                    self.turn(State::Silent, now);
                }
            }
            ServerState::NotServing => self.turn(State::Looking, now),
            ServerState::Serving(serving) => {
                self.turn(State::Serving(serving.mode), now);
                self.serving = Some(serving);
            }
        }
    }

    /// The server's epoch: that of its last zxid, or a later one in its folder. Until a server has applied a
    /// transaction of
    /// a new leader, only its folder has the new epoch.
    pub(super) fn epoch(&self) -> Option<u64> {
        let of_zxid = self.serving.as_ref().map(|serving| serving.zxid >> 32);
        of_zxid.max(self.noted_epoch)
    }
}

/// A server: its files, its process while there is one, and its state.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) place: ServerSetup,
    pub(super) process: Option<ServerProcess>,
    pub(super) health: Health,
    /// The exit status of the last process.
    pub(super) last_end: Option<String>,
    /// The user has paused the server.
    pub(super) paused: bool,
    /// The server was asked to end.
    pub(super) killed: bool,
    pub(super) log: LogTail,
    /// The server is being asked for its state.
    pub(super) asked: bool,
}

impl Member {
    pub(super) fn new(place: ServerSetup) -> Member {
        let log = LogTail::new(&place.log);
        let health = Health::new(Instant::now());
        Member {
            place,
            process: None,
            health,
            last_end: None,
            paused: false,
            killed: false,
            log,
            asked: false,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::pid)
    }

    pub(super) fn is_leader(&self) -> bool {
        self.health.state == State::Serving(Mode::Leader)
    }
}

/// The leader. Of two, the one with the later epoch: the other one does not know yet that it was replaced.
pub(super) fn leader(members: &[Member]) -> Option<&Member> {
    members.iter().filter(|member| member.is_leader()).max_by_key(|member| member.health.epoch())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(mode: Mode) -> ServerState {
        ServerState::Serving(Serving { mode, zxid: 0x2_0000_0001, connections: 0, sessions: Some(0) })
    }

    #[test]
    fn the_state_follows_from_process_and_answer() {
        let now = Instant::now();
        let mut health = Health::new(now);
        health.started(now);
        for _ in 0..2 * MISSING_MAX {
            health.answered(ServerState::Refused, now);
        }
        assert_eq!(health.state, State::Starting);
        health.answered(ServerState::NotServing, now);
        assert_eq!((health.state, health.epoch()), (State::Looking, None));
        health.answered(serving(Mode::Leader), now);
        assert_eq!((health.state, health.epoch()), (State::Serving(Mode::Leader), Some(2)));
        for _ in 1..MISSING_MAX {
            health.answered(ServerState::Silent, now);
        }
        assert!(health.state.is_serving(), "one that is late is not silent yet");
        health.answered(ServerState::Silent, now);
        assert_eq!(health.state, State::Silent);
        health.paused(now);
        health.answered(serving(Mode::Follower), now);
        assert_eq!(health.state, State::Serving(Mode::Follower));
        health.ended(now);
        assert_eq!((health.state, health.epoch()), (State::Down, Some(2)));
        health.started(now);
        assert_eq!(health.epoch(), None);
        health.answered(serving(Mode::Follower), now);
        health.noted_epoch = Some(3);
        assert_eq!(health.epoch(), Some(3), "nothing of the new leader is applied yet");
    }

    #[test]
    fn the_time_in_a_state_begins_when_it_begins() {
        let (now, later) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(5));
        let mut health = Health::new(now);
        health.answered(ServerState::NotServing, now);
        health.answered(ServerState::NotServing, later);
        assert_eq!(health.since, now);
        health.answered(serving(Mode::Follower), later);
        assert_eq!(health.since, later);
    }
}
