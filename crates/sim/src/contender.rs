//! Clients that want one lock, over the session of a client proper.
//!
//! A reference form of the recipe: an ephemeral sequential znode each, whoever has the lowest number holds the lock, and
//! everybody else watches the one before. The znode's czxid is the holder's token. What is guarded takes a token only if
//! it is above all before it, so the lock is held by one at a time if and only if each holder's token is above the last.

use crate::{
    chance::Chance,
    network::{Caller, Parcel},
    world::{Event, Shape, TICK_MS, World},
};
use ostler_client_core::{
    AttemptId, Config, ConnectionState, Effect, Effects, Failure, Input, Mono, RequestId, Session, WatchId,
};
use ostler_proto::{
    acl::{Perms, RawAcl},
    error::ErrorCode,
    event,
    frame::{Split, split},
    id::SessionId,
    jute::Reader,
    op::Op,
    reply::{Reply, ReplyHeader},
    request::{Create, PathVersion, PathWatch, Request},
    stat::Stat,
};
use ostler_server_core::ConnId;
use std::time::Duration;

const LOCK: &str = "/lock";
/// How long somebody holds the lock, and waits before wanting it again, at most.
const HELD_MS: u64 = 300;
/// A connection's frame is smaller.
const FRAME_MAX: usize = 1 << 20;

/// What a contender is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    /// Does not want the lock before then.
    Resting { until: u64 },
    /// Makes the znode below which the contenders' are.
    Founding,
    /// Makes its own.
    Entering,
    /// Does not know whether its own was made.
    Searching,
    /// Looks who is before it.
    Looking { own: String },
    /// Looks whether the one before it is there.
    Watching { own: String },
    /// Waits for the one before it to go.
    Waiting { own: String },
    /// Is the first, and asks for its token.
    Proving { own: String },
    /// Has the lock.
    Holding { own: String, until: u64 },
    /// Takes its own znode away.
    Leaving { own: String },
}

/// A client that wants the lock now and then.
pub(crate) struct Contender {
    number: usize,
    session: Session,
    conn: Option<(AttemptId, ConnId)>,
    /// The first frame of the connection is sent.
    greeted: bool,
    wake: Option<u64>,
    requests: u64,
    watches: u64,
    /// How often it has wanted the lock: part of its znode's name, so that it finds it again.
    tries: u64,
    doing: Doing,
    bound: Option<SessionId>,
    asked: Option<RequestId>,
}

fn at(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

impl Contender {
    pub(crate) fn new(number: usize, shape: &Shape, chance: &mut Chance) -> Contender {
        let hosts = (shape.voters + shape.observers) as usize;
        let mut config = Config::new(hosts, chance.below(1 << 30));
        config.session_timeout = Duration::from_millis(chance.between(8, 30) * 100);
        config.connection_timeout = Duration::from_secs(5);
        config.tick_time = Duration::from_millis(TICK_MS);
        Contender {
            number,
            session: Session::new(config, at(0)),
            conn: None,
            greeted: false,
            wake: None,
            requests: 0,
            watches: 0,
            tries: 0,
            doing: Doing::Founding,
            bound: None,
            asked: None,
        }
    }

    fn prefix(&self) -> String {
        format!("c{}-{}-", self.number, self.tries)
    }
}

/// The number at the end of a contender's name.
fn place(name: &str) -> i64 {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(i64::MAX)
}

fn create<'a>(path: &'a str, flags: i32) -> Request<'a> {
    let open = RawAcl { perms: Perms::ALL, scheme: Some("world".into()), id: Some("anyone".into()) };
    let (op, path) = (Op::Create, path.into());
    Request::Create(Create { op, path, data: Some(b""), acl: Some(vec![open]), flags, ttl_ms: -1 })
}

impl World {
    /// Time has come for something.
    pub(crate) fn contender_acts(&mut self, contender: usize) {
        let now = self.now;
        if contender >= self.contenders.len() {
            return;
        }
        let of = &mut self.contenders[contender];
        if of.wake.is_some_and(|wake| wake > now) {
            return;
        }
        of.wake = None;
        if of.session.next_deadline().is_some_and(|due| due <= at(now)) {
            self.contender_steps(contender, Input::Deadline);
        }
        self.contend(contender);
        self.mind_contender(contender);
    }

    fn mind_contender(&mut self, contender: usize) {
        let now = self.now;
        let of = &mut self.contenders[contender];
        let own = match of.doing {
            Doing::Resting { until } | Doing::Holding { until, .. } => Some(until),
            _ => None,
        };
        let session = of.session.next_deadline().map(|due| due.0.as_nanos().div_ceil(1_000_000) as u64);
        let Some(due) = session.into_iter().chain(own).min().map(|due| due.max(now + 1)) else { return };
        if of.wake.is_none_or(|wake| wake > due) {
            of.wake = Some(due);
            self.after(due - now, Event::Contender(contender));
        }
    }

    /// Does what is next, unless an answer is waited for.
    fn contend(&mut self, contender: usize) {
        let now = self.now;
        let quiet = self.quiet || self.quiet_until > now;
        let of = &mut self.contenders[contender];
        if of.asked.is_some() || !of.session.state().state.is_connected() {
            return;
        }
        let path = |name: &str| format!("{LOCK}/{name}");
        match of.doing.clone() {
            _ if quiet && !matches!(of.doing, Doing::Holding { .. } | Doing::Leaving { .. }) => {}
            Doing::Founding => self.contender_asks(contender, &create(LOCK, 0), false),
            Doing::Resting { until } if until <= now => {
                of.tries += 1;
                of.bound = of.session.session_at(at(now));
                let path = path(&of.prefix());
                of.doing = Doing::Entering;
                self.contender_asks(contender, &create(&path, 3), false);
            }
            Doing::Searching | Doing::Looking { .. } => {
                let children = PathWatch { path: LOCK.into(), watch: false };
                self.contender_asks(contender, &Request::GetChildren(children), false);
            }
            Doing::Proving { own } => {
                let own = PathWatch { path: path(&own).into(), watch: false };
                self.contender_asks(contender, &Request::Exists(own), false);
            }
            Doing::Holding { own, until } if until <= now => {
                of.doing = Doing::Leaving { own };
                self.contend(contender);
            }
            Doing::Leaving { own } => {
                let delete = PathVersion { path: path(&own).into(), version: -1 };
                self.contender_asks(contender, &Request::Delete(delete), false);
            }
            _ => {}
        }
    }

    fn contender_asks(&mut self, contender: usize, request: &Request<'_>, watched: bool) {
        let of = &mut self.contenders[contender];
        of.requests += 1;
        of.watches += u64::from(watched);
        let (id, watch) = (RequestId(of.requests), watched.then_some(WatchId(of.watches)));
        of.asked = Some(id);
        let session = of.bound.filter(|_| of.doing != Doing::Founding);
        self.contender_steps(contender, Input::Request { id, session, request, watch });
    }

    /// A step of its session, and what comes of it.
    fn contender_steps(&mut self, contender: usize, input: Input<'_>) {
        let frame = match &input {
            Input::Frame { payload, .. } => payload.to_vec(),
            _ => Vec::new(),
        };
        let mut effects = Effects::default();
        self.contenders[contender].session.step(at(self.now), input, &mut effects);
        for effect in effects.list {
            match effect {
                Effect::Connect { attempt, host } => {
                    let (delay, member) = (self.chance.between(1, 5), host as i64 + 1);
                    self.after(delay, Event::ContenderCalls { contender, attempt, member });
                }
                Effect::Hangup(attempt) => self.contender_hangs_up(contender, attempt),
                Effect::Reply { id, error, .. } => {
                    self.contender_answered(contender, id, Ok((error, &frame[..])))
                }
                Effect::Failed { id, failure } => self.contender_answered(contender, id, Err(failure)),
                Effect::Event { watchers, .. } => {
                    let of = &mut self.contenders[contender];
                    if watchers.contains(&WatchId(of.watches))
                        && let Doing::Waiting { own } = of.doing.clone()
                    {
                        of.doing = Doing::Looking { own };
                    }
                }
                Effect::State(state) if state.state == ConnectionState::Lost => {
                    self.count("lock session lost");
                    let until = self.now + 1;
                    let of = &mut self.contenders[contender];
                    if of.doing != Doing::Founding {
                        of.doing = Doing::Resting { until };
                    }
                }
                Effect::State(_)
                | Effect::WatchesEnded(_)
                | Effect::WatchesRemoved(_)
                | Effect::ProbeReadWrite { .. }
                | Effect::Ended { .. } => {}
            }
        }
        self.contender_sends(contender, &effects.bytes);
        self.contend(contender);
        self.mind_contender(contender);
    }

    fn contender_sends(&mut self, contender: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while let Split::Frame { payload, used } = split(rest, FRAME_MAX) {
            let of = &mut self.contenders[contender];
            let Some((_, conn)) = of.conn else { return };
            let first = !std::mem::replace(&mut of.greeted, true);
            let payload = payload.to_vec();
            let parcel = if first { Parcel::Connect(payload) } else { Parcel::Request(payload) };
            let lane = self.net.conns[&conn].up;
            self.send(lane, parcel);
            rest = &rest[used..];
        }
    }

    pub(crate) fn contender_calls(&mut self, contender: usize, attempt: AttemptId, member: i64) {
        if contender >= self.contenders.len() {
            return;
        }
        match self.open(Caller::Contender(contender), member) {
            Some((conn, _)) => {
                let of = &mut self.contenders[contender];
                (of.conn, of.greeted) = (Some((attempt, conn)), false);
                self.contender_steps(contender, Input::Connected(attempt));
            }
            None => self.contender_steps(contender, Input::Disconnected(attempt)),
        }
    }

    fn contender_hangs_up(&mut self, contender: usize, attempt: AttemptId) {
        if let Some((_, conn)) = self.contenders[contender].conn.take_if(|(of, _)| *of == attempt) {
            let up = self.net.conns[&conn].up;
            self.send(up, Parcel::End);
        }
    }

    /// Something has come on a contender's connection.
    pub(crate) fn contender_gets(&mut self, contender: usize, conn: ConnId, parcel: Parcel) {
        let of = self.contenders.get(contender).and_then(|of| of.conn);
        let Some((attempt, _)) = of.filter(|(_, of)| *of == conn) else { return };
        let mut frame = Vec::new();
        match parcel {
            Parcel::Connected(response) => response.write_frame(&mut frame),
            Parcel::Reply(reply) => Reply::write_frame(&reply, &mut frame),
            Parcel::Event { zxid, kind, path } => event::write_frame(&mut frame, zxid, kind, &path),
            _ => {
                self.contenders[contender].conn = None;
                return self.contender_steps(contender, Input::Disconnected(attempt));
            }
        }
        self.contender_steps(contender, Input::Frame { attempt, payload: &frame[4..] });
    }

    fn contender_answered(&mut self, contender: usize, id: RequestId, answer: Result<(i32, &[u8]), Failure>) {
        let now = self.now;
        let rest = now + self.chance.between(1, HELD_MS);
        let of = &mut self.contenders[contender];
        if of.asked != Some(id) {
            return;
        }
        of.asked = None;
        let body = |frame: &'_ [u8]| frame.get(ReplyHeader::SIZE..).unwrap_or_default().to_vec();
        let answer = answer.map(|(error, frame)| match error {
            0 => Ok(body(frame)),
            code => Err(code),
        });
        of.doing = match (of.doing.clone(), answer) {
            (Doing::Founding, Ok(Err(code))) if code != ErrorCode::NodeExists.code() => Doing::Founding,
            (Doing::Founding, Err(_)) => Doing::Founding,
            (Doing::Founding, _) => Doing::Resting { until: rest },
            (Doing::Entering, Ok(Ok(body))) => match Reader::new(&body).text() {
                Ok(path) => Doing::Looking { own: path[LOCK.len() + 1..].into() },
                Err(_) => Doing::Searching,
            },
            (Doing::Entering, Err(Failure::ConnectionLoss)) => Doing::Searching,
            (Doing::Searching | Doing::Looking { .. }, Ok(Ok(body))) => {
                return self.contender_looks(contender, &body);
            }
            (Doing::Searching, _) => Doing::Searching,
            (Doing::Looking { own }, Err(_)) => Doing::Looking { own },
            (Doing::Watching { own }, Ok(Ok(_))) => Doing::Waiting { own },
            (Doing::Watching { own }, _) => Doing::Looking { own },
            (Doing::Proving { own }, Ok(Ok(body))) => {
                return self.contender_holds(contender, own, &body);
            }
            (Doing::Proving { own }, Err(_)) => Doing::Proving { own },
            (Doing::Leaving { own }, Err(_)) => Doing::Leaving { own },
            // What went was lost, maybe; what came is late.
            (doing @ (Doing::Resting { .. } | Doing::Waiting { .. } | Doing::Holding { .. }), _) => doing,
            _ => Doing::Resting { until: rest },
        };
        // A session that is over takes its znode along.
        if of.bound.is_some() && of.session.session_at(at(now)) != of.bound && of.doing != Doing::Founding {
            of.doing = Doing::Resting { until: rest };
        }
    }

    /// The names of all contenders have come.
    fn contender_looks(&mut self, contender: usize, body: &[u8]) {
        let names = Reader::new(body).vector(|r| r.text().map(|name| name.into_owned()));
        let names = names.ok().flatten().unwrap_or_default();
        let now = self.now;
        let of = &mut self.contenders[contender];
        let prefix = of.prefix();
        let Some(own) = names.iter().find(|name| name.starts_with(&prefix)).cloned() else {
            of.doing = Doing::Resting { until: now + 1 };
            return;
        };
        let before = names.iter().filter(|name| place(name) < place(&own)).max_by_key(|name| place(name));
        let Some(before) = before else {
            of.doing = Doing::Proving { own };
            return;
        };
        let path = format!("{LOCK}/{before}");
        of.doing = Doing::Watching { own };
        let watch = PathWatch { path: path.into(), watch: true };
        self.contender_asks(contender, &Request::Exists(watch), true);
    }

    /// The first in the line has its token.
    fn contender_holds(&mut self, contender: usize, own: String, body: &[u8]) {
        let Ok(stat) = Stat::read(&mut Reader::new(body)) else { return };
        let until = self.now + self.chance.between(1, HELD_MS);
        let of = &mut self.contenders[contender];
        if of.session.session_at(at(self.now)) != of.bound {
            of.doing = Doing::Resting { until };
            return;
        }
        let (token, last) = (stat.czxid, self.last_token);
        // What is guarded refuses the token of one whose session was ended while it believed to have time.
        if token < last && of.bound.is_some_and(|session| self.condemned.contains(&session)) {
            of.doing = Doing::Resting { until };
            return self.count("token too late");
        }
        of.doing = Doing::Holding { own, until };
        assert!(token > last, "[one holder] contender {contender} holds the lock with {token}, after {last}");
        self.last_token = token;
        self.trace(|| format!("contender {contender} holds the lock, token {token}"));
        self.count("lock held");
    }

    /// No contender wants anything any more.
    pub(crate) fn dismiss_contenders(&mut self) {
        for contender in 0..self.contenders.len() {
            if let Some((_, conn)) = self.contenders[contender].conn.take() {
                let up = self.net.conns[&conn].up;
                self.send(up, Parcel::End);
            }
        }
        self.contenders.clear();
    }
}
