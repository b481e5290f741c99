//! The ports for clients: the plain one, the one for TLS, or both.

use super::options;
use crate::{
    client_conn::ClientService,
    config::ClientPortSettings,
    error::ServerError,
    listener::{self, Admission, ClientPort, Own},
    tls_files::{self, TlsFiles},
    tls_handshake::{PortSecurity, TlsConfig},
};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};
use tokio::{net::TcpListener, task::JoinSet};

/// A port that is bound. Nothing is accepted yet.
struct BoundPort {
    socket: std::net::TcpListener,
    /// The address of the configuration.
    address: SocketAddr,
    security: PortSecurity,
}

/// All ports for clients, bound: at least one.
pub(super) struct ClientPorts {
    plain: Option<BoundPort>,
    secure: Option<BoundPort>,
    tls: Option<(TlsFiles<rustls::ServerConfig>, TlsConfig)>,
    backlog: i32,
}

impl ClientPorts {
    /// Reads the files of TLS, and takes the ports.
    pub(super) fn bind(clients: &ClientPortSettings) -> Result<ClientPorts, ServerError> {
        let backlog = options::backlog(clients);
        let secure = clients.secure.as_deref();
        let tls = secure.map(|secure| tls_files::client_port(&secure.tls)).transpose()?;
        let config = tls.as_ref().map(|(_, config)| config.clone());
        let of_plain = match config.clone().filter(|_| secure.is_some_and(|secure| secure.unification)) {
            Some(config) => PortSecurity::Either(config),
            None => PortSecurity::Plain,
        };
        let plain = clients.client_address.map(|address| BoundPort::bind(address, backlog, of_plain));
        let secure = secure.and_then(|secure| secure.address).zip(config);
        let secure =
            secure.map(|(address, config)| BoundPort::bind(address, backlog, PortSecurity::Tls(config)));
        Ok(ClientPorts { plain: plain.transpose()?, secure: secure.transpose()?, tls, backlog })
    }

    /// The bound address of the plain port; of the other one if there is no plain port.
    pub(super) fn address(&self) -> Result<SocketAddr, ServerError> {
        let first = self.plain.iter().chain(&self.secure).next().expect("a configuration has a port");
        first.socket.local_addr().map_err(|source| ServerError::Listen { address: first.address, source })
    }

    /// Accepts clients. A reconfiguration moves the plain port only: it names no other.
    pub(super) fn serve(
        self,
        clients: &ClientPortSettings,
        own: Own,
        service: &ClientService,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), ServerError> {
        let admission = Admission::new(options::conn_counts(clients));
        for (bound, own) in [(self.plain, own), (self.secure, None)] {
            let Some(bound) = bound else { continue };
            let service = ClientService { security: bound.security.clone(), ..service.clone() };
            tasks.spawn(listener::run(bound.listen(self.backlog)?, own, service, admission.clone()));
        }
        if let Some((files, config)) = self.tls {
            tasks.spawn(files.watch(move |changed| config.replace(changed)));
        }
        Ok(())
    }
}

impl BoundPort {
    fn bind(address: SocketAddr, backlog: i32, security: PortSecurity) -> Result<BoundPort, ServerError> {
        let bound = listener::bind(address, backlog).or_else(|error| {
            // A machine without IPv6 has no "all addresses" of IPv6.
            let is_all = address.is_ipv6() && address.ip().is_unspecified();
            if is_all && error.kind() != io::ErrorKind::AddrInUse {
                return listener::bind((Ipv4Addr::UNSPECIFIED, address.port()).into(), backlog);
            }
            Err(error)
        });
        let socket = bound.map_err(|source| ServerError::Listen { address, source })?;
        Ok(BoundPort { socket, address, security })
    }

    fn listen(self, backlog: i32) -> Result<ClientPort, ServerError> {
        let address = self.address;
        let listener =
            TcpListener::from_std(self.socket).map_err(|source| ServerError::Listen { address, source })?;
        Ok(ClientPort { listener, address, backlog })
    }
}
