//! All clients of a storm, on one thread: their sockets, their timers, and what they have met.

use super::{
    super::{
        error::{Result, While},
        tally::Tally,
    },
    client::{Client, Outcome, Stage},
};
use mio::{Events, Interest, Poll, Token, net::TcpStream};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore, SeedableRng},
};
use socket2::{Domain, Socket, Type};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::Range,
    time::{Duration, Instant},
};

/// The longest pause of a client before its next connection, in nanoseconds.
const PAUSE_MAX: u64 = 1_000_000_000;
/// Clients that share one address of loopback.
const PER_ADDRESS: usize = 10_000;
/// The ports of the clients that share an address. The system takes long to find one that is free among thousands.
const FIRST_PORT: usize = 34_000;
/// Each client has this number of ports, in turn: one may be waiting for the end of an earlier connection.
const PORTS_EACH: usize = 3;
const EVENTS: usize = 4096;
/// Bytes that are not asked for come in small pieces.
const READ_BUFFER: usize = 16 << 10;

pub(super) struct Crowd {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    /// The number of the first client among those of all programs.
    first: usize,
    servers: Vec<SocketAddr>,
    /// When clients act by themselves. An entry whose time is not the client's any more is void.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    chance: Xoshiro256PlusPlus,
    start: Instant,
    buffer: Vec<u8>,
    counts: Counts,
}

#[derive(Debug)]
struct Counts {
    attached: usize,
    lost: usize,
    tried: u64,
    /// Connections that were begun since the start.
    dialled: u64,
    given_up: u64,
    pings: Tally,
    /// When the storm began.
    storm: Option<u64>,
    attached_after: Tally,
}

impl Crowd {
    /// Clients that have not begun. `numbers`: theirs among the clients of all programs.
    pub(super) fn new(numbers: Range<usize>, servers: Vec<SocketAddr>, timeout: Duration) -> Result<Crowd> {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let clients = numbers.clone().map(|number| Client::new(number % servers.len(), nanos)).collect();
        Ok(Crowd {
            poll: Poll::new().during("cannot create an event queue")?,
            events: Events::with_capacity(EVENTS),
            clients,
            first: numbers.start,
            servers,
            timers: BinaryHeap::new(),
            chance: Xoshiro256PlusPlus::seed_from_u64(numbers.start as u64 + 1),
            start: Instant::now(),
            buffer: vec![0; READ_BUFFER],
            counts: Counts {
                attached: 0,
                lost: 0,
                tried: 0,
                dialled: 0,
                given_up: 0,
                pings: Tally::new(),
                storm: None,
                attached_after: Tally::new(),
            },
        })
    }

    pub(super) fn attached(&self) -> usize {
        self.counts.attached
    }

    /// Sessions that have expired.
    pub(super) fn lost(&self) -> usize {
        self.counts.lost
    }

    /// Connections that were begun since the storm.
    pub(super) fn tried(&self) -> u64 {
        self.counts.tried
    }

    /// Connections since the storm that ended before their session was attached.
    pub(super) fn given_up(&self) -> u64 {
        self.counts.given_up
    }

    /// The times from the beginning of the storm until each session was attached again.
    pub(super) fn attached_after(&self) -> &Tally {
        &self.counts.attached_after
    }

    /// The pings since the last call.
    pub(super) fn take_pings(&mut self) -> Tally {
        std::mem::replace(&mut self.counts.pings, Tally::new())
    }

    /// Whether all sessions are attached or lost, and the storm has come to all.
    pub(super) fn is_over(&self) -> bool {
        let Counts { attached, lost, attached_after, .. } = &self.counts;
        let came = attached_after.ops() as usize + lost >= self.clients.len();
        came && attached + lost == self.clients.len()
    }

    /// From now on the times are counted.
    pub(super) fn storm_begins(&mut self) {
        self.counts.storm = Some(self.now());
        self.counts.tried = 0;
        self.counts.given_up = 0;
    }

    /// Opens a session for each client, at most `at_once` handshakes at a time.
    pub(super) fn open_all(&mut self, at_once: usize, patience: Duration) -> Result<()> {
        let mut begun = 0;
        let mut last = (0, Instant::now());
        while self.counts.attached < self.clients.len() {
            while begun < self.clients.len() && begun < self.counts.attached + at_once {
                self.set_timer(begun, 0);
                self.clients[begun].stage = Stage::Away;
                begun += 1;
            }
            self.turn(Duration::from_millis(20))?;
            if self.counts.attached != last.0 {
                last = (self.counts.attached, Instant::now());
            } else if last.1.elapsed() > patience {
                return Err(super::super::error::BenchError::Silent(patience));
            }
        }
        Ok(())
    }

    /// Goes on for a time.
    pub(super) fn run_for(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.turn(left.min(Duration::from_millis(20)))?;
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn set_timer(&mut self, number: usize, due: u64) {
        self.clients[number].due = due;
        self.timers.push(Reverse((due, number)));
    }

    fn turn(&mut self, timeout: Duration) -> Result<()> {
        self.run_timers()?;
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(cause) if cause.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other.during("cannot wait for events")?,
        }
        let happened: Vec<(usize, bool, bool)> = self
            .events
            .iter()
            .map(|event| {
                (
                    event.token().0,
                    event.is_writable() || event.is_error(),
                    event.is_readable() || event.is_read_closed(),
                )
            })
            .collect();
        for (number, writes, reads) in happened {
            self.event(number, writes, reads);
        }
        Ok(())
    }

    fn event(&mut self, number: usize, writes: bool, reads: bool) {
        let now = self.now();
        let client = &mut self.clients[number];
        let mut outcomes = Vec::new();
        let mut done = if writes { client.writable() } else { Ok(()) };
        if done.is_ok() && reads {
            done = client.readable(now, &mut self.buffer, |outcome| outcomes.push(outcome));
        }
        for outcome in outcomes {
            self.came(number, now, outcome);
        }
        if done.is_err() && self.clients[number].stage != Stage::Lost {
            self.go_away(number, now);
        }
    }

    fn came(&mut self, number: usize, now: u64, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Pinged(sent) => self.counts.pings.count(now.saturating_sub(sent), 0),
            Outcome::Expired => {
                self.counts.lost += 1;
                self.clients[number].stream = None;
            }
            Outcome::Attached => {
                self.counts.attached += 1;
                if let Some(storm) = self.counts.storm {
                    self.counts.attached_after.count(now.saturating_sub(storm), 0);
                }
                let period = self.clients[number].timeout / 3;
                // The pings of clients that have come at once spread over the time.
                let jitter =
                    if self.counts.storm.is_none() { self.chance.next_u64() % period.max(1) } else { period };
                self.set_timer(number, now + jitter);
            }
        }
    }

    /// The connection is gone, or the client gives it up: the next server has its turn after a pause.
    fn go_away(&mut self, number: usize, now: u64) {
        let client = &mut self.clients[number];
        match client.stage {
            Stage::Attached => self.counts.attached -= 1,
            Stage::Greeting => self.counts.given_up += 1,
            Stage::Idle | Stage::Away | Stage::Lost => return,
        }
        client.leave();
        client.server = (client.server + 1) % self.servers.len();
        let pause = self.chance.next_u64() % PAUSE_MAX;
        self.set_timer(number, now + pause);
    }

    fn run_timers(&mut self) -> Result<()> {
        let now = self.now();
        while let Some(Reverse((due, number))) =
            self.timers.peek().copied().filter(|Reverse((due, _))| *due <= now)
        {
            self.timers.pop();
            if self.clients[number].due == due {
                self.acts(number, now)?;
            }
        }
        Ok(())
    }

    /// Lets a client do what is due. A client that is about to give up looks at its socket first: this program may have
    /// been busy with the others while the answer came, which a client by itself would not have been.
    fn acts(&mut self, number: usize, now: u64) -> Result<()> {
        let is_late = |client: &Client| match client.stage {
            Stage::Greeting => true,
            Stage::Attached => now.saturating_sub(client.heard) >= client.timeout / 3 * 2,
            Stage::Idle | Stage::Away | Stage::Lost => false,
        };
        let stage = self.clients[number].stage;
        if is_late(&self.clients[number]) {
            self.event(number, true, true);
        }
        let client = &mut self.clients[number];
        if client.stage != stage {
            return Ok(());
        }
        match client.stage {
            Stage::Idle | Stage::Lost => {}
            Stage::Away => return self.connect(number, now),
            Stage::Greeting => self.go_away(number, now),
            Stage::Attached if now.saturating_sub(client.heard) >= client.timeout / 3 * 2 => {
                self.go_away(number, now)
            }
            Stage::Attached => {
                if client.ping(now).is_err() {
                    self.go_away(number, now);
                } else {
                    let due = (now + client.timeout / 3).min(client.heard + client.timeout / 3 * 2);
                    self.set_timer(number, due.max(now + 1_000_000));
                }
            }
        }
        Ok(())
    }

    fn connect(&mut self, number: usize, now: u64) -> Result<()> {
        self.counts.tried += 1;
        let share = self.clients[number].timeout / self.servers.len() as u64;
        let turn = self.counts.dialled as usize;
        self.counts.dialled += 1;
        match dial(self.servers[self.clients[number].server], self.first + number, turn) {
            Ok(mut stream) => {
                self.poll
                    .registry()
                    .register(&mut stream, Token(number), Interest::READABLE | Interest::WRITABLE)
                    .during("cannot watch a socket")?;
                self.clients[number].begin(stream);
                self.set_timer(number, now + share);
                // On loopback the connection is there already.
                self.event(number, true, false);
            }
            Err(_) => {
                self.clients[number].stage = Stage::Greeting;
                self.go_away(number, now);
            }
        }
        Ok(())
    }
}

/// Begins a connection.
fn dial(server: SocketAddr, number: usize, turn: usize) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
    if server.ip().is_loopback() && server.is_ipv4() {
        let last = u8::try_from(1 + number / PER_ADDRESS).unwrap_or(u8::MAX);
        let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        let port = FIRST_PORT + number % PER_ADDRESS * PORTS_EACH + turn % PORTS_EACH;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::new(address, u16::try_from(port).unwrap_or(0)).into())?;
    }
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&server.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}
