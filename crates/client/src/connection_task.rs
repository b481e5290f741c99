//! The client's only task: it connects, reads, writes, and waits for deadlines.

use crate::{
    dial::{Conn, Dialer},
    error::DialError,
    kerberos::KerberosSession,
    outcome::Deliveries,
    shared::{SHARED_WRITE_MIN, SaslToken, Shared, TaskCommand},
    tracing,
};
use ostler_client_core::{AttemptId, ConnectionState, Mono};
use ostler_proto::frame::{Split, split};
use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::yield_now,
    time::{Instant, Sleep, sleep_until},
};

/// Bytes that one read takes at most.
const READ_SIZE: usize = 64 << 10;
/// A buffer that has grown beyond this many bytes is freed after its use.
const BUFFER_KEPT_MAX: usize = 1 << 20;

type Dialing = Pin<Box<dyn Future<Output = Result<Conn, DialError>> + Send>>;

/// A future that ends when the client is closed.
pub(crate) struct ConnectionTask {
    shared: Arc<Shared>,
    dialer: Dialer,
    /// The login by Kerberos, if the client has one.
    login: Option<Arc<KerberosSession>>,
    /// The name of the server that was dialed last.
    host: String,
    /// The largest frame that is taken from a server, bytes.
    reply_max: usize,
    phase: Phase,
    /// Other tasks have had their chance to submit requests since the last write.
    waited: bool,
    /// Requests that the last read has answered.
    answered: usize,
    sleep: Pin<Box<Sleep>>,
    /// The time to which `sleep` is set. It may be earlier than the deadline, which does no harm.
    alarm: Option<Instant>,
    deliveries: Deliveries,
}

enum Phase {
    Idle,
    Dialing { attempt: AttemptId, conn: Dialing },
    Linked(Box<Linked>),
}

struct Linked {
    attempt: AttemptId,
    conn: Conn,
    input: Input,
    out: Vec<u8>,
    written: usize,
    flushed: bool,
}

impl ConnectionTask {
    pub(crate) fn new(
        shared: Arc<Shared>,
        dialer: Dialer,
        login: Option<Arc<KerberosSession>>,
        reply_max: usize,
    ) -> ConnectionTask {
        let sleep = Box::pin(sleep_until(Instant::now()));
        let phase = Phase::Idle;
        ConnectionTask {
            shared,
            dialer,
            login,
            host: String::new(),
            reply_max,
            phase,
            waited: false,
            answered: 0,
            sleep,
            alarm: None,
            deliveries: Vec::new(),
        }
    }
}

impl Future for ConnectionTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = &mut *self;
        // The first caller that submits a request wakes this task, which then runs before other callers that are ready
        // to submit. Callers whose replies have just come are likely to submit again. So if many requests are under
        // way, this task yields to the callers once, and their requests share a write.
        let mut may_wait = !std::mem::take(&mut task.waited);
        loop {
            let out = match &mut task.phase {
                Phase::Linked(linked) => Some(&mut linked.out),
                Phase::Idle | Phase::Dialing { .. } => None,
            };
            let work = task.shared.work(out, std::mem::take(&mut may_wait), cx.waker());
            if work.others_first {
                return task.yield_to_others(cx);
            }
            match work.order {
                Some(TaskCommand::Connect { attempt, host }) => {
                    task.host = task.dialer.hosts.get(host).map(|server| server.host).unwrap_or_default();
                    if let Some(login) = &task.login {
                        login.begin(attempt);
                    }
                    let conn = Box::pin(task.dialer.clone().dial(host, attempt.0));
                    task.phase = Phase::Dialing { attempt, conn };
                }
                Some(TaskCommand::Hangup) => task.phase = Phase::Idle,
                Some(TaskCommand::Stop) => return Poll::Ready(()),
                None => {}
            }
            if let Some(token) = work.sasl {
                task.log_in(token);
            }
            if let Some(host) = work.probe {
                task.probe(host);
            }
            let moved = task.poll_phase(cx);
            if std::mem::take(&mut task.answered) >= SHARED_WRITE_MIN {
                task.poll_alarm(cx, work.deadline);
                return task.yield_to_others(cx);
            }
            // Pending is returned only if the connection, the timer and the session all have nothing to do.
            if !moved && !task.poll_alarm(cx, work.deadline) && work.order.is_none() {
                return Poll::Pending;
            }
        }
    }
}

impl ConnectionTask {
    /// Lets other ready tasks run first.
    fn yield_to_others(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.waited = true;
        // The first poll of `yield_now` schedules this task behind the others that are ready.
        pin!(yield_now()).poll(cx)
    }

    /// True if something was done.
    fn poll_phase(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.phase {
            Phase::Idle => false,
            Phase::Dialing { attempt, conn } => {
                let attempt = *attempt;
                let Poll::Ready(result) = conn.as_mut().poll(cx) else { return false };
                match result {
                    Ok(conn) => {
                        self.phase = Phase::Linked(Box::new(Linked::new(attempt, conn)));
                        self.shared.connected(attempt);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "cannot connect");
                        self.shared.note_error(error.to_string());
                        self.phase = Phase::Idle;
                        self.shared.disconnected(attempt);
                    }
                }
                true
            }
            Phase::Linked(linked) => {
                let attempt = linked.attempt;
                match linked.poll(cx, &self.shared, self.reply_max, &mut self.deliveries) {
                    Ok(PollProgress { progressed, answered }) => {
                        self.answered = answered;
                        progressed
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the connection is lost");
                        self.shared.note_error(format!("the connection was lost: {error}"));
                        self.phase = Phase::Idle;
                        self.shared.disconnected(attempt);
                        true
                    }
                }
            }
        }
    }

    /// True if the deadline has come.
    fn poll_alarm(&mut self, cx: &mut Context<'_>, deadline: Option<Mono>) -> bool {
        let Some(deadline) = deadline.map(|at| self.shared.instant(at)) else { return false };
        // A timer that is set too early fires once in vain. That costs less than setting it at each poll.
        if self.alarm.is_none_or(|alarm| alarm > deadline) {
            self.sleep.as_mut().reset(deadline);
            self.alarm = Some(deadline);
        }
        if self.sleep.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.alarm = None;
        self.shared.deadline();
        true
    }

    /// Lets the mechanism work at a token, on a thread of its own.
    fn log_in(&self, token: SaslToken) {
        let Some(login) = self.login.clone() else { return };
        let (shared, host) = (Arc::downgrade(&self.shared), self.host.clone());
        self.shared.runtime.spawn_blocking(move || {
            let attempt = token.attempt;
            let Some(step) = login.step(&host, token) else { return };
            let Some(shared) = shared.upgrade() else { return };
            let step = step.unwrap_or_else(|failed| {
                tracing::warn!(error = %failed.problem, %host, "the login by Kerberos has failed");
                shared.note_error(failed.problem);
                failed.step
            });
            shared.sasl_step(attempt, step);
        });
    }

    fn probe(&self, host: usize) {
        let (shared, dialer) = (Arc::downgrade(&self.shared), self.dialer.clone());
        self.shared.runtime.spawn(async move {
            if dialer.can_write(host).await {
                if let Some(shared) = shared.upgrade() {
                    shared.found_read_write(host);
                }
            }
        });
    }
}

impl Drop for ConnectionTask {
    /// The runtime may end before the client. Then all waiting callers get an error.
    fn drop(&mut self) {
        if self.shared.state_now().0.state == ConnectionState::Closed {
            return;
        }
        drop(self.shared.close());
        if let Phase::Linked(linked) = &self.phase {
            self.shared.disconnected(linked.attempt);
        }
    }
}

/// The result of one poll of a connection.
struct PollProgress {
    progressed: bool,
    answered: usize,
}

impl Linked {
    fn new(attempt: AttemptId, conn: Conn) -> Linked {
        Linked { attempt, conn, input: Input::default(), out: Vec::new(), written: 0, flushed: true }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        shared: &Shared,
        reply_max: usize,
        deliveries: &mut Deliveries,
    ) -> io::Result<PollProgress> {
        let wrote = self.poll_write(cx)?;
        let Poll::Ready(count) = self.input.poll_read(cx, &mut self.conn) else {
            return Ok(PollProgress { progressed: wrote, answered: 0 });
        };
        if count? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut frames = Frames { bytes: self.input.filled(), used: 0, limit: reply_max, broken: None };
        let answered = shared.frames(self.attempt, &mut frames, deliveries);
        let (used, broken) = (frames.used, frames.broken);
        self.input.consume(used);
        match broken {
            None => Ok(PollProgress { progressed: true, answered }),
            Some(length) => Err(io::Error::other(format!(
                "the server sent a frame of {length} bytes; the limit is {reply_max}"
            ))),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut moved = false;
        while self.written < self.out.len() {
            match Pin::new(&mut self.conn).poll_write(cx, &self.out[self.written..]) {
                Poll::Ready(count) => match count? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => self.written += count,
                },
                Poll::Pending => return Ok(moved),
            }
            (moved, self.flushed) = (true, false);
        }
        self.out.clear();
        if self.out.capacity() > BUFFER_KEPT_MAX {
            self.out = Vec::new();
        }
        self.written = 0;
        if !self.flushed && Pin::new(&mut self.conn).poll_flush(cx)?.is_ready() {
            self.flushed = true;
        }
        Ok(moved)
    }
}

/// Received bytes that are not processed yet.
struct Input {
    buffer: Vec<u8>,
    filled: usize,
}

impl Default for Input {
    fn default() -> Self {
        Input { buffer: vec![0; READ_SIZE], filled: 0 }
    }
}

impl Input {
    fn poll_read(&mut self, cx: &mut Context<'_>, conn: &mut Conn) -> Poll<io::Result<usize>> {
        if self.filled == self.buffer.len() {
            // The buffer grows with the bytes received. A length that a server only announces allocates nothing.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let mut into = ReadBuf::new(&mut self.buffer[self.filled..]);
        std::task::ready!(Pin::new(conn).poll_read(cx, &mut into))?;
        let count = into.filled().len();
        self.filled += count;
        Poll::Ready(Ok(count))
    }

    fn filled(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    fn consume(&mut self, used: usize) {
        self.buffer.copy_within(used..self.filled, 0);
        self.filled -= used;
        if self.filled < READ_SIZE && self.buffer.len() > BUFFER_KEPT_MAX {
            self.buffer.truncate(READ_SIZE);
            self.buffer.shrink_to_fit();
        }
    }
}

/// The payloads of the complete frames in `bytes`.
struct Frames<'a> {
    bytes: &'a [u8],
    used: usize,
    limit: usize,
    /// The length of a frame that is negative or above the limit; it ends the iteration.
    broken: Option<i32>,
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match split(&self.bytes[self.used..], self.limit) {
            Split::Frame { payload, used } => {
                self.used += used;
                Some(payload)
            }
            Split::Incomplete { .. } => None,
            Split::BadLength(length) => {
                self.broken = Some(length);
                None
            }
        }
    }
}
