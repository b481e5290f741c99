//! Asks the system whether the other side of a TCP connection has acknowledged its end: Linux's `sock_diag` over
//! netlink, which looks one connection up. Needs no rights.

use ostler_server_core::sessions::ends::HostState;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicU64, Ordering},
};

/// The most probes in a second. Sessions can expire by the thousand; the first ones tell what there is to tell.
const PROBES_MAX: u64 = 200;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// The length of a netlink header.
const HEADER: usize = 16;
/// The length of `struct inet_diag_req_v2` behind it.
const REQUEST: usize = 56;
/// An error, as the type of a netlink message.
const NLMSG_ERROR: u16 = 2;
/// `-ENOENT`: the system has no such connection any more.
const NO_ENTRY: i32 = -2;

/// States of TCP in which this side has sent its end and the other has not acknowledged it.
const FIN_WAIT1: u8 = 4;
const CLOSING: u8 = 11;
const LAST_ACK: u8 = 9;
/// The other side has acknowledged, and has not closed its side.
const FIN_WAIT2: u8 = 5;
/// Both sides have closed.
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;

/// Limits the probes.
#[derive(Debug, Default)]
pub(crate) struct HostProbe {
    /// The second of the last probes, and their number in it in the lowest 16 bits.
    used: AtomicU64,
}

impl HostProbe {
    /// The acts of the host of `peer` after this side of the connection had been closed. `now_ms` is on any clock.
    pub(crate) fn ask(&self, local: SocketAddr, peer: SocketAddr, now_ms: u64) -> HostState {
        if !self.take_turn(now_ms / 1000) {
            return HostState::Unknown;
        }
        state_of(local, peer).map_or(HostState::Unknown, host_state)
    }

    fn take_turn(&self, second: u64) -> bool {
        let next = |used: u64| {
            let count = if used >> 16 == second { used & 0xffff } else { 0 };
            (count < PROBES_MAX).then_some(second << 16 | (count + 1))
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

fn host_state(tcp: u8) -> HostState {
    match tcp {
        FIN_WAIT2 => HostState::Acknowledged,
        FIN_WAIT1 | CLOSING | LAST_ACK => HostState::Silent,
        TIME_WAIT | CLOSE => HostState::Closed,
        _ => HostState::Unknown,
    }
}

/// The state of a TCP connection, as the system numbers them.
fn state_of(local: SocketAddr, peer: SocketAddr) -> io::Result<u8> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG))?;
    // To the kernel, which answers before this call returns.
    send(&socket, &request(local, peer), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, size) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let answer = answer.get(..size).unwrap_or(&answer);
    read(answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the system's answer is too short"))
}

/// A netlink header, then the family, the protocol and the addresses of one connection.
fn request(local: SocketAddr, peer: SocketAddr) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    let mut at = 0;
    let mut put = |part: &[u8]| {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    };
    put(&((HEADER + REQUEST) as u32).to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    put(&[0; 8]);
    // A socket of IPv6 with a client of IPv4 is found under the address of IPv4.
    let (from, to) = (local.ip().to_canonical(), peer.ip().to_canonical());
    put(&[if from.is_ipv4() { AF_INET } else { AF_INET6 }, IPPROTO_TCP, 0, 0]);
    // All states.
    put(&u32::MAX.to_ne_bytes());
    put(&local.port().to_be_bytes());
    put(&peer.port().to_be_bytes());
    put(&octets(from));
    put(&octets(to));
    // Any interface, and no cookie.
    put(&0u32.to_ne_bytes());
    put(&[0xff; 8]);
    bytes
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V6(ip) => ip.octets(),
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
    }
}

fn read(answer: &[u8]) -> Option<u8> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let body = answer.get(HEADER..)?;
    if kind != NLMSG_ERROR {
        // `struct inet_diag_msg`: the family, then the state.
        return body.get(1).copied();
    }
    let error = i32::from_ne_bytes(body.get(..4)?.try_into().ok()?);
    (error == NO_ENTRY).then_some(CLOSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::{Ipv6Addr, Shutdown, TcpListener, TcpStream},
        thread,
        time::{Duration, Instant},
    };

    fn pair(at: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(at).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        (listener.accept().unwrap().0, client)
    }

    fn ask(server: &TcpStream) -> HostState {
        HostProbe::default().ask(server.local_addr().unwrap(), server.peer_addr().unwrap(), 0)
    }

    #[test]
    fn a_kernel_acknowledges_for_a_program_that_does_nothing() {
        for at in ["127.0.0.1:0", "[::]:0"] {
            let (server, client) = pair(at);
            // A connection that has ended on both sides has no addresses to be asked for.
            let (local, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
            assert_eq!(ask(&server), HostState::Unknown, "the connection is open");
            server.shutdown(Shutdown::Write).unwrap();
            // The acknowledgement of an end alone may come some 40 ms later.
            let begun = Instant::now();
            while ask(&server) != HostState::Acknowledged {
                assert!(begun.elapsed() < Duration::from_secs(10), "{at}");
                thread::sleep(Duration::from_millis(10));
            }
            drop(client);
            drop(server);
            assert_eq!(HostProbe::default().ask(local, peer, 0), HostState::Closed, "{at}");
        }
    }

    #[test]
    fn probes_are_limited_by_the_second() {
        let probe = HostProbe::default();
        assert_eq!((0..1000).filter(|_| probe.take_turn(7)).count() as u64, PROBES_MAX);
        assert!(probe.take_turn(8));
    }

    #[test]
    fn answers_that_are_too_short_are_refused() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0; HEADER + 1]), None);
        assert_eq!(octets(Ipv6Addr::LOCALHOST.into())[15], 1);
    }
}
