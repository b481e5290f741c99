//! Reserved ports: while a server is down, its port refuses connections, and is free for it when it starts again.

use crate::error::TestkitError;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// A port of 127.0.0.1 that is bound without a listener. Linux does not assign it to other listeners or outgoing
/// connections meanwhile. Only a listener that asks for this port with `SO_REUSEADDR`, as servers do, can use it.
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

    /// Listens on the port until the listener is dropped. Must be called within a runtime.
    pub(crate) fn listen(&self) -> Result<TcpListener, TestkitError> {
        let listen = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            socket.bind(&self.address.into())?;
            socket.listen(128)?;
            socket.set_nonblocking(true)?;
            TcpListener::from_std(socket.into())
        };
        listen().map_err(TestkitError::Port)
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
    fn a_reserved_port_refuses_connections_and_can_be_listened_on_repeatedly() {
        let port = ReservedPort::any().unwrap();
        for _ in 0..3 {
            assert_eq!(TcpStream::connect(port.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(port.address()).unwrap();
            let client = TcpStream::connect(port.address()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            // This end closes first, so it stays in TIME_WAIT.
            drop(accepted);
            drop(listener);
            drop(client);
        }
    }

    #[test]
    fn the_system_assigns_no_reserved_port() {
        let ports: Vec<ReservedPort> = (0..200).map(|_| ReservedPort::any().unwrap()).collect();
        let others: Vec<TcpListener> = (0..200).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        for other in &others {
            assert!(ports.iter().all(|port| port.address() != other.local_addr().unwrap()));
        }
    }
}
