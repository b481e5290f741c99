//! Fuzzes a client's session: arbitrary frames from the server, mixed with requests, watches and the passage of time.

mod ledger;

use crate::script::Script;
use ledger::Ledger;
use ostler_client_core::{
    AttemptId, AuthInfo, Config, Input, Mono, OnChange, RankedHost, RequestId, SaslCredentials, SaslLogin,
    SaslStep, Session, WatchId,
};
use ostler_proto::{
    connect::ConnectResponse,
    event::{self, EventType},
    id::{SessionId, Zxid},
    jute::Writer,
    request::{PathVersion, PathWatch, Request},
};
use std::time::Duration;

const SASL: u8 = 1;
const ONE_SESSION: u8 = 2;
const READ_ONLY: u8 = 4;
const IDENTITY: u8 = 8;
const PATHS: [&str; 5] = ["/a", "/a/b", "/", "", "a"];
/// Longer scripts find nothing new.
const STEPS_MAX: usize = 400;
/// After the end of the connection a closed session must end within this many deadlines.
const DEADLINES_MAX: usize = 10;

/// The first byte sets the client's configuration. The rest is a script of what the application, the server and the
/// clock do. `Ledger` checks the session after every step.
pub fn check(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut client = Client::new(script.byte());
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        client.one_step(&mut script);
    }
    client.end();
}

struct Client {
    session: Session,
    now: Mono,
    asked: u64,
    watches: u64,
    ledger: Ledger,
}

impl Client {
    fn new(flags: u8) -> Client {
        let mut config = Config::new(usize::from(flags >> 6), u64::from(flags));
        config.sasl = (flags & SASL != 0).then(|| match flags & IDENTITY {
            0 => SaslLogin::DigestMd5(SaslCredentials { user: "u\"".into(), password: "p".into() }),
            _ => SaslLogin::OfCaller,
        });
        config.new_session_after_loss = flags & ONE_SESSION == 0;
        config.read_only = flags & READ_ONLY != 0;
        if flags & IDENTITY != 0 {
            config.auth.push(identity());
        }
        config.packet_max = 4096;
        let now = Mono::START;
        Client { session: Session::new(config, now), now, asked: 0, watches: 0, ledger: Ledger::default() }
    }

    fn one_step(&mut self, script: &mut Script<'_>) {
        let attempt = AttemptId(self.ledger.attempt().0.saturating_sub(u64::from(script.byte() == 255)));
        match script.byte() % 12 {
            0 => self.ask(script),
            1 => self.unwatch(script),
            2 => {
                let id = self.next_id();
                self.step(Input::AddAuth { id, auth: identity() });
            }
            3 if script.byte() < 16 => {
                let id = self.next_id();
                self.step(Input::Close(id));
            }
            3 | 4 => self.step(Input::Connected(attempt)),
            5 => {
                let size = usize::from(script.byte());
                self.step(Input::Frame { attempt, payload: script.take(size) });
            }
            6 => self.step(Input::Disconnected(attempt)),
            7 => self.wait(Duration::from_millis(u64::from(script.short()))),
            8 => self.granted(attempt, script),
            9 => self.answered(attempt, script),
            10 => self.notified(attempt, script),
            _ => self.seldom(attempt, script),
        }
    }

    fn seldom(&mut self, attempt: AttemptId, script: &mut Script<'_>) {
        let step = match script.byte() % 8 {
            0 => SaslStep::Complete,
            1 => SaslStep::Refused,
            2 => SaslStep::Unavailable,
            3 | 4 => SaslStep::Send(script.take(3).to_vec()),
            5 => return self.servers(script),
            6 => return self.step(Input::MoveOff),
            _ => return self.step(Input::FoundReadWrite { host: 0 }),
        };
        self.step(Input::SaslStep { attempt, step });
    }

    fn servers(&mut self, script: &mut Script<'_>) {
        let flags = script.byte();
        let on_change = if flags & 1 == 0 { OnChange::Stay } else { OnChange::Rebalance };
        let ranked = |host| RankedHost { host: usize::from(host % 4), rank: flags & host };
        let mut servers: Vec<RankedHost> = script.take(3).iter().copied().map(ranked).collect();
        servers.sort_unstable_by_key(|server| server.host);
        servers.dedup_by_key(|server| server.host);
        self.step(Input::Servers { servers: &servers, on_change });
    }

    fn next_id(&mut self) -> RequestId {
        self.asked += 1;
        let id = RequestId(self.asked);
        self.ledger.asked(id);
        id
    }

    fn ask(&mut self, script: &mut Script<'_>) {
        let id = self.next_id();
        let (kind, path) = (script.byte(), *script.one_of(&PATHS));
        let watch = kind & 0x40 != 0;
        let read = || PathWatch { path: path.into(), watch };
        let (request, watchable) = match kind % 8 {
            0 => (Request::GetData(read()), true),
            1 => (Request::Exists(read()), true),
            2 => (Request::GetChildren2(read()), true),
            3 => (Request::AddWatch { path: path.into(), mode: i32::from(kind >> 7) }, true),
            4 => {
                (Request::RemoveWatches { path: path.into(), kind: 1 + i32::from(script.byte() % 3) }, false)
            }
            5 => (Request::Delete(PathVersion { path: path.into(), version: -1 }), false),
            6 => (Request::GetAcl("/long".repeat(1000).into()), false),
            _ => (Request::Sync(Some(path.into())), false),
        };
        let watch = (watchable && (watch || kind % 8 == 3)).then(|| {
            self.watches += 1;
            WatchId(self.watches)
        });
        if let Some(watch) = watch {
            self.ledger.watched(watch, kind % 8 != 3);
        }
        let session = (script.byte() == 1).then_some(SessionId(1));
        self.step(Input::Request { id, session, request: &request, watch });
    }

    fn unwatch(&mut self, script: &mut Script<'_>) {
        let watch = WatchId(u64::from(script.byte()).min(self.watches));
        self.ledger.unwatched(watch);
        self.step(Input::Unwatch(watch));
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.step(Input::Deadline);
    }

    /// A server's answer to the handshake.
    fn granted(&mut self, attempt: AttemptId, script: &mut Script<'_>) {
        let timeout_ms = i32::from(script.short()) - 1;
        let session = SessionId(i64::from(script.byte() & 1) + 1);
        let read_only = Some(script.byte() == 1);
        let mut frame = Vec::new();
        ConnectResponse { timeout_ms, session, password: [1; 16], read_only }.write_frame(&mut frame);
        self.step(Input::Frame { attempt, payload: &frame[4..] });
    }

    /// A reply to the oldest request without one.
    fn answered(&mut self, attempt: AttemptId, script: &mut Script<'_>) {
        let error = i32::from(script.byte() as i8);
        let size = usize::from(script.byte());
        let mut payload = Vec::new();
        payload.i32(self.ledger.take_oldest_xid().unwrap_or(1));
        payload.i64(i64::from(script.byte()));
        payload.i32(error);
        payload.raw(script.take(size));
        self.step(Input::Frame { attempt, payload: &payload });
    }

    fn notified(&mut self, attempt: AttemptId, script: &mut Script<'_>) {
        let kinds = [
            EventType::NodeCreated,
            EventType::NodeDeleted,
            EventType::NodeDataChanged,
            EventType::NodeChildrenChanged,
        ];
        let (kind, path) = (*script.one_of(&kinds), *script.one_of(&PATHS));
        let mut frame = Vec::new();
        event::write_frame(&mut frame, Some(Zxid(script.byte().into())), kind, path);
        self.step(Input::Frame { attempt, payload: &frame[4..] });
    }

    fn step(&mut self, input: Input<'_>) {
        self.ledger.step(&mut self.session, self.now, input);
    }

    /// The application closes the session and the connection breaks. Then every request must have had one answer.
    fn end(&mut self) {
        let id = self.next_id();
        self.step(Input::Close(id));
        // Without this the session could wait for its whole timeout, which may be a month.
        self.step(Input::Disconnected(self.ledger.attempt()));
        for _ in 0..DEADLINES_MAX {
            let Some(next) = self.session.next_deadline() else {
                return self.ledger.assert_settled(&self.session);
            };
            self.now = self.now.max(next);
            self.step(Input::Deadline);
        }
        panic!("a closed session does not end: {:?}", self.session);
    }
}

fn identity() -> AuthInfo {
    AuthInfo { scheme: "digest".into(), auth: b"u:p".to_vec() }
}
