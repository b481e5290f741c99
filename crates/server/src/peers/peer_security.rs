//! TLS between servers, and the names that their certificates must have.
//!
//! Upstream checks no names by default, or asks the DNS for the name of an address (CVE-2026-24281). Here the names of a
//! certificate are compared with the server.N lines: the server that connects knows whom it calls; the server that is
//! called accepts the names of all servers, and those of one server once the caller has said its id.

use super::{
    address_book::AddressBook,
    peer_stream::{PeerCertificate, PeerStream},
};
use crate::{
    config::{EnsembleSettings, QuorumSasl, QuorumTls},
    error::ServerError,
    handshake_turns::HandshakeTurns,
    listener::counted,
    sasl_files::QuorumLogins,
    tls_files::TlsFiles,
    tls_handshake::{HandshakeError, first_bytes, refusal},
};
use ostler_kerberos::KerberosError;
use ostler_proto::{id::ServerId, membership::Member};
use ostler_sasl::quorum::QuorumLoginError;
use ostler_tls::{
    detect::FirstBytes,
    log_text,
    material::{TlsFileError, TlsMaterial},
    settings::TlsSettings,
};
use rustls::{ClientConfig, ServerConfig, pki_types::ServerName};
use std::{
    io,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// IPv6 addresses with this number of first bits in common take turns as one.
const NETWORK_BITS: u8 = 64;

/// Why a connection to another server cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecurityError {
    #[error(
        "it is plain text, and this server takes TLS only (sslQuorum); set sslQuorum=true there, or portUnification=true \
         here for the time of the change"
    )]
    PlainText,
    #[error("the TLS handshake was not done within {0:?}")]
    Late(Duration),
    #[error("the login by SASL was not done within {0:?}; with Kerberos, can the KDC be reached?")]
    LateLogin(Duration),
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
    #[error(
        "the certificate of {subject} is for {names}, and no server.N line has such a host: issue one for the host of the \
         server.N line, as it is written there"
    )]
    NoServer { subject: String, names: String },
    #[error(
        "the certificate of {subject} is for {names}, and server.{} is {hosts}: issue one for the host of the server.N line, \
         as it is written there", .id.0
    )]
    OtherServer { subject: String, names: String, id: ServerId, hosts: String },
    #[error("SASL between the servers: {}", log_text(&.0.to_string()))]
    Login(#[from] QuorumLoginError),
    #[error("SASL between the servers: {0}")]
    Kerberos(#[from] KerberosError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<HandshakeError> for SecurityError {
    fn from(error: HandshakeError) -> SecurityError {
        match error {
            HandshakeError::PlainText => SecurityError::PlainText,
            HandshakeError::Io(error) => SecurityError::Io(error),
            other => SecurityError::Handshake(other.to_string()),
        }
    }
}

/// The other servers, as the election port and the quorum port know them.
#[derive(Debug, Clone)]
pub(crate) struct OtherServers {
    pub(crate) settings: EnsembleSettings,
    pub(crate) book: Arc<AddressBook>,
    pub(crate) security: Arc<PeerSecurity>,
}

/// The configurations of both directions.
pub(crate) struct PeerConfigs {
    incoming: Arc<ServerConfig>,
    outgoing: Arc<ClientConfig>,
}

/// How connections between servers begin.
#[derive(Debug)]
pub(crate) struct PeerSecurity {
    tls: Option<Tls>,
    pub(super) logins: Option<Logins>,
}

/// Logins of servers at each other.
#[derive(Debug)]
pub(super) struct Logins {
    pub(super) settings: QuorumSasl,
    pub(super) known: QuorumLogins,
}

struct Tls {
    settings: QuorumTls,
    configs: RwLock<Arc<PeerConfigs>>,
    /// Not those of clients: a crowd of them must not keep servers waiting.
    turns: Arc<HandshakeTurns>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn configs(material: &TlsMaterial, settings: &TlsSettings) -> Result<PeerConfigs, TlsFileError> {
    // The names are checked here, against all hosts of a server.
    let without_names = TlsSettings { hostname_verification: false, ..settings.clone() };
    Ok(PeerConfigs {
        incoming: Arc::new(material.server_config(settings)?),
        outgoing: Arc::new(material.client_config(&without_names)?),
    })
}

impl PeerSecurity {
    /// Plain connections.
    #[cfg(test)]
    pub(crate) fn plain() -> Arc<PeerSecurity> {
        Arc::new(PeerSecurity { tls: None, logins: None })
    }

    /// Reads the files of TLS and of the logins. Returns those of TLS, which are to be watched, too.
    pub(crate) fn open(
        ensemble: Option<&EnsembleSettings>,
    ) -> Result<(Arc<PeerSecurity>, Option<TlsFiles<PeerConfigs>>), ServerError> {
        let logins = match ensemble.and_then(|ensemble| ensemble.sasl.as_ref()) {
            None => None,
            Some(settings) => {
                Some(Logins { settings: settings.clone(), known: QuorumLogins::read(settings)? })
            }
        };
        let Some(settings) = ensemble.and_then(|ensemble| ensemble.tls.as_ref()) else {
            return Ok((Arc::new(PeerSecurity { tls: None, logins }), None));
        };
        let (files, first) = TlsFiles::open(settings.tls.clone(), "ssl.quorum.*", configs)?;
        let tls = Some(Tls {
            settings: settings.clone(),
            configs: RwLock::new(Arc::new(first)),
            turns: HandshakeTurns::new(),
        });
        Ok((Arc::new(PeerSecurity { tls, logins }), Some(files)))
    }

    /// Uses these for new connections.
    pub(crate) fn replace(&self, changed: PeerConfigs) {
        if let Some(tls) = &self.tls {
            // A panic aborts the process, so a poisoned lock is never met.
            *tls.configs.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(changed);
        }
    }

    /// Begins a connection that another server has made.
    pub(super) async fn accept(
        &self,
        tcp: TcpStream,
        book: &AddressBook,
    ) -> Result<PeerStream, SecurityError> {
        let Some(tls) = &self.tls else { return Ok(PeerStream::plain(tcp)) };
        let within = tls.settings.detection_timeout;
        match timeout(within, first_bytes(&tcp)).await {
            Ok(Ok(FirstBytes::Tls)) => {}
            // As upstream, silence is plain text where that is allowed: a server that waits to be greeted.
            Err(_) | Ok(Ok(_)) if tls.settings.port_unification => return Ok(PeerStream::plain(tcp)),
            Ok(Ok(_)) => return Err(SecurityError::PlainText),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(SecurityError::Late(within)),
        }
        let from = counted(tcp.peer_addr()?.ip(), NETWORK_BITS);
        let acceptor = TlsAcceptor::from(tls.configs().incoming.clone());
        let accepted = timeout(within, tls.turns.in_turns(from, acceptor.accept(tcp)))
            .await
            .map_err(|_| SecurityError::Late(within))?;
        let stream = PeerStream::tls(TlsStream::Server(accepted.map_err(handshake_error)?));
        if tls.settings.checks_callers()
            && let Some(PeerCertificate { subject, names }) = stream.certificate()
            && !book.all_hosts().iter().any(|host| names.cover(host))
        {
            return Err(SecurityError::NoServer { subject, names: names.text() });
        }
        Ok(stream)
    }

    /// Begins a connection that this server has made.
    pub(super) async fn connect(
        &self,
        tcp: TcpStream,
        (id, server): (ServerId, &Member),
        within: Duration,
    ) -> Result<PeerStream, SecurityError> {
        let Some(tls) = self.tls.as_ref().filter(|tls| tls.settings.ssl_quorum) else {
            return Ok(PeerStream::plain(tcp));
        };
        let connector = TlsConnector::from(tls.configs().outgoing.clone());
        let host = server.addresses.first().map_or("", |address| &*address.host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .unwrap_or_else(|_| ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into()));
        let connected =
            timeout(within, connector.connect(name, tcp)).await.map_err(|_| SecurityError::Late(within))?;
        let stream = PeerStream::tls(TlsStream::Client(connected.map_err(handshake_error)?));
        if tls.settings.tls.hostname_verification
            && let Some(certificate) = stream.certificate()
        {
            certificate.check(id, server)?;
        }
        Ok(stream)
    }

    /// Checks that a caller is the server that it says it is. `server` is the configured one; `None` if no configuration
    /// has this id, and then the names of the other servers are good enough.
    pub(super) fn check_caller(
        &self,
        certificate: Option<&PeerCertificate>,
        id: ServerId,
        server: Option<&Member>,
    ) -> Result<(), SecurityError> {
        let is_checked = self.tls.as_ref().is_some_and(|tls| tls.settings.checks_callers());
        match (certificate, server) {
            (Some(certificate), Some(server)) if is_checked => certificate.check(id, server),
            _ => Ok(()),
        }
    }
}

impl Tls {
    fn configs(&self) -> Arc<PeerConfigs> {
        self.configs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PeerCertificate {
    fn check(&self, id: ServerId, server: &Member) -> Result<(), SecurityError> {
        let mut hosts = server.addresses.iter().map(|address| &*address.host);
        if hosts.clone().any(|host| self.names.cover(host)) {
            return Ok(());
        }
        let hosts = hosts.by_ref().collect::<Vec<_>>().join(", ");
        Err(SecurityError::OtherServer { subject: self.subject.clone(), names: self.names.text(), id, hosts })
    }
}

fn handshake_error(error: io::Error) -> SecurityError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(refused) => SecurityError::Handshake(refusal(refused)),
        None => SecurityError::Io(error),
    }
}
