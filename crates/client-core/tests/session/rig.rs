//! A session, and a server that the test plays message by message.

use ostler_client_core::{
    AttemptId, Config, ConnectionState, Effect, Effects, EventKind, Failure, Input, Mono, RequestId, Session,
    WatchId,
};
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    event::EventType,
    frame::{Split, split},
    id::{SessionId, Xid, Zxid},
    jute::Writer,
    request::{PathWatch, Request, RequestHeader},
};
use std::time::Duration;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const SESSION: SessionId = SessionId(0x1234);
pub(crate) const PASSWORD: [u8; 16] = [7; 16];

/// The effects of the steps, besides bytes and attempts to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RigEvent {
    Reply(u64, i32),
    Failed(u64, Failure),
    Event(Vec<u64>, EventKind, String),
    WatchesEnded(Vec<u64>),
    WatchesRemoved(Vec<u64>),
    State(ConnectionState, Option<SessionId>),
    Probe(usize),
    SaslToken(Option<Vec<u8>>),
    Ended,
}

pub(crate) struct Rig {
    pub(crate) session: Session,
    pub(crate) now: Mono,
    effects: Effects,
    /// The connection or attempt that the session wants.
    pub(crate) wanted: Option<(AttemptId, usize)>,
    pub(crate) heard: Vec<RigEvent>,
    /// The zxid of the last event.
    pub(crate) event_zxid: Option<Zxid>,
    /// How often each server had failed.
    pub(crate) rounds_failed: usize,
    last_request: u64,
    last_watch: u64,
}

/// A configuration for tests: three servers, 30 s.
pub(crate) fn config() -> Config {
    Config { session_timeout: TIMEOUT, ..Config::new(3, 1) }
}

impl Rig {
    pub(crate) fn new(config: Config) -> Rig {
        let session = Session::new(config, Mono::START);
        let effects = Effects::default();
        Rig {
            session,
            now: Mono::START,
            effects,
            wanted: None,
            heard: Vec::new(),
            event_zxid: None,
            rounds_failed: 0,
            last_request: 0,
            last_watch: 0,
        }
    }

    /// A rig that is attached to session [`SESSION`]. Effects and bytes so far are discarded.
    pub(crate) fn online() -> Rig {
        Rig::online_with(config())
    }

    pub(crate) fn online_with(config: Config) -> Rig {
        let mut rig = Rig::new(config);
        rig.deadline();
        rig.attach();
        rig.take_events();
        rig.sent();
        rig
    }

    /// A rig at a server that is cut off, which has given it session 8.
    pub(crate) fn read_only(config: Config) -> Rig {
        let mut rig = Rig::new(Config { read_only: true, ..config });
        rig.deadline();
        rig.connect();
        rig.grant(SessionId(8), TIMEOUT, true);
        rig
    }

    pub(crate) fn step(&mut self, input: Input<'_>) {
        self.session.step(self.now, input, &mut self.effects);
        for effect in std::mem::take(&mut self.effects.list) {
            let heard = match effect {
                Effect::Connect { attempt, host } => {
                    self.wanted = Some((attempt, host));
                    continue;
                }
                Effect::Hangup(attempt) => {
                    assert_eq!(self.wanted.take().map(|(wanted, _)| wanted), Some(attempt));
                    continue;
                }
                Effect::Reply { id, error, .. } => RigEvent::Reply(id.0, error),
                Effect::Failed { id, failure } => RigEvent::Failed(id.0, failure),
                Effect::Event { watchers, kind, path, zxid } => {
                    self.event_zxid = zxid;
                    RigEvent::Event(watchers.into_iter().map(|watch| watch.0).collect(), kind, path)
                }
                Effect::WatchesEnded(watches) => {
                    RigEvent::WatchesEnded(watches.into_iter().map(|watch| watch.0).collect())
                }
                Effect::WatchesRemoved(watches) => {
                    RigEvent::WatchesRemoved(watches.into_iter().map(|watch| watch.0).collect())
                }
                Effect::State(next) => RigEvent::State(next.state, next.session),
                Effect::ProbeReadWrite { host } => RigEvent::Probe(host),
                Effect::SaslToken { token, .. } => RigEvent::SaslToken(token),
                Effect::EachServerFailed => {
                    self.rounds_failed += 1;
                    continue;
                }
                Effect::Ended { .. } => RigEvent::Ended,
            };
            self.heard.push(heard);
        }
    }

    pub(crate) fn wait(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    /// Lets time pass up to the session's next deadline.
    pub(crate) fn deadline(&mut self) {
        let at = self.session.next_deadline().unwrap();
        self.now = self.now.max(at);
        self.step(Input::Deadline);
    }

    /// The effects since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<RigEvent> {
        std::mem::take(&mut self.heard)
    }

    pub(crate) fn attempt(&self) -> AttemptId {
        self.wanted.expect("the session wants a connection").0
    }

    /// The connection stands; gives what the session asks for.
    pub(crate) fn connect(&mut self) -> (SessionId, i64, Vec<u8>) {
        self.step(Input::Connected(self.attempt()));
        let bytes = std::mem::take(&mut self.effects.bytes);
        let Split::Frame { payload, used } = split(&bytes, 1 << 20) else { panic!("a handshake") };
        assert_eq!(used, bytes.len(), "nothing follows the handshake");
        let request = ConnectRequest::read(payload).unwrap();
        (request.session, request.last_zxid_seen, request.password.unwrap().to_vec())
    }

    pub(crate) fn grant(&mut self, session: SessionId, timeout: Duration, read_only: bool) {
        let response = ConnectResponse {
            timeout_ms: i32::try_from(timeout.as_millis()).unwrap(),
            session,
            password: PASSWORD,
            read_only: Some(read_only),
        };
        let mut frame = Vec::new();
        response.write_frame(&mut frame);
        self.frame(&frame[4..]);
    }

    /// Connects and grants [`SESSION`].
    pub(crate) fn attach(&mut self) {
        self.connect();
        self.grant(SESSION, TIMEOUT, false);
    }

    /// Loses the connection and comes back to the same session; gives what was sent then.
    pub(crate) fn reattach(&mut self) -> Vec<(i32, Request<'static>)> {
        self.lose();
        self.deadline();
        self.attach();
        self.sent()
    }

    pub(crate) fn lose(&mut self) {
        self.step(Input::Disconnected(self.attempt()));
    }

    pub(crate) fn frame(&mut self, payload: &[u8]) {
        let attempt = self.attempt();
        self.step(Input::Frame { attempt, payload });
    }

    /// The requests that were sent since the last call, with their xids.
    pub(crate) fn sent(&mut self) -> Vec<(i32, Request<'static>)> {
        // The bytes are leaked, which is harmless in short tests.
        let bytes: &'static [u8] = std::mem::take(&mut self.effects.bytes).leak();
        let (mut rest, mut sent) = (bytes, Vec::new());
        while !rest.is_empty() {
            let Split::Frame { payload, used } = split(rest, 1 << 20) else { panic!("whole frames") };
            let (header, body) = RequestHeader::read(payload).unwrap();
            sent.push((header.xid.0, Request::read(header.code, body)));
            rest = &rest[used..];
        }
        sent
    }

    pub(crate) fn ask(&mut self, request: &Request<'_>) -> u64 {
        self.ask_as(request, None, None)
    }

    pub(crate) fn ask_as(
        &mut self,
        request: &Request<'_>,
        session: Option<SessionId>,
        watch: Option<u64>,
    ) -> u64 {
        let id = self.next_id();
        self.step(Input::Request { id: RequestId(id), session, request, watch: watch.map(WatchId) });
        id
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    pub(crate) fn next_watch(&mut self) -> u64 {
        self.last_watch += 1;
        self.last_watch
    }

    /// Forgets what was sent.
    pub(crate) fn clear_bytes(&mut self) {
        self.effects.bytes.clear();
    }

    pub(crate) fn get(&mut self, path: &str) -> u64 {
        self.ask(&get(path, false))
    }

    /// A server's reply without a body.
    pub(crate) fn reply(&mut self, xid: i32, zxid: i64, error: i32) {
        let mut payload = Vec::new();
        payload.i32(xid);
        payload.i64(zxid);
        payload.i32(error);
        self.frame(&payload);
    }

    pub(crate) fn event(&mut self, kind: EventType, path: &str) {
        self.event_at(None, kind, path);
    }

    pub(crate) fn event_at(&mut self, zxid: Option<Zxid>, kind: EventType, path: &str) {
        let mut frame = Vec::new();
        ostler_proto::event::write_frame(&mut frame, zxid, kind, path);
        self.frame(&frame[4..]);
    }

    /// Registers a watch by `request`, answered with `error`; gives the xid.
    pub(crate) fn watch(&mut self, watch: u64, request: &Request<'_>, error: i32) {
        self.ask_as(request, None, Some(watch));
        // Requests after the registration are the session's own.
        for (n, (xid, _)) in self.sent().into_iter().enumerate() {
            self.reply(xid, 0, if n == 0 { error } else { 0 });
        }
        self.take_events();
    }
}

pub(crate) fn read(path: &str, watch: bool) -> PathWatch<'_> {
    PathWatch { path: path.into(), watch }
}

pub(crate) fn get(path: &str, watch: bool) -> Request<'_> {
    Request::GetData(read(path, watch))
}

pub(crate) fn exists(path: &str) -> Request<'_> {
    Request::Exists(read(path, true))
}

pub(crate) fn children(path: &str) -> Request<'_> {
    Request::GetChildren2(read(path, true))
}

pub(crate) fn add_watch(path: &str, recursive: bool) -> Request<'_> {
    Request::AddWatch { path: path.into(), mode: recursive.into() }
}

pub(crate) const PING: i32 = Xid::PING.0;
pub(crate) const NO_NODE: i32 = -101;
