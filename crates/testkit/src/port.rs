//! Ports that stay ours while nobody listens on them: a server that is down refuses connections, and finds its port
//! free when it comes back.

use crate::error::TestkitError;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};

/// A port of 127.0.0.1, bound and not listened on. Linux gives it to nobody else meanwhile, neither for a listener on
/// a port of its choice nor for an outgoing connection; only who asks for this very port and shares addresses, as
/// servers do, can listen on it.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    _bound: Socket,
    address: SocketAddr,
}

impl ReservedPort {
    pub(crate) fn any() -> Result<ReservedPort, TestkitError> {
        let reserve = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
            let address = socket.local_addr()?.as_socket();
            let address =
                address.ok_or_else(|| std::io::Error::other("a bound socket without an address"))?;
            Ok(ReservedPort { _bound: socket, address })
        };
        reserve().map_err(TestkitError::Port)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::ErrorKind,
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn it_refuses_and_can_be_listened_on_again_and_again() {
        let port = ReservedPort::any().unwrap();
        for _ in 0..3 {
            assert_eq!(TcpStream::connect(port.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(port.address()).unwrap();
            let client = TcpStream::connect(port.address()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            // This end goes first, so it is the one that lingers in the system's tables.
            drop(accepted);
            drop(listener);
            drop(client);
        }
    }

    #[test]
    fn nobody_gets_it_by_chance() {
        let ports: Vec<ReservedPort> = (0..200).map(|_| ReservedPort::any().unwrap()).collect();
        let others: Vec<TcpListener> = (0..200).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        for other in &others {
            assert!(ports.iter().all(|port| port.address() != other.local_addr().unwrap()));
        }
    }
}
