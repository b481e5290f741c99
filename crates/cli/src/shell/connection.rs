//! A connection with its session, and the options to open one.

use super::{error::ShellError, kerberos::KerberosUser, output::Teller, watches::Watches};
use crate::tls_options::PemContents;
use ostler_client::{Client, ClientBuilder};
use ostler_tls::settings::TlsSettings;
use std::time::Duration;

/// The options of connections, without the servers.
#[derive(Debug, Clone)]
pub(crate) struct ConnectOptions {
    pub(crate) session_timeout: Duration,
    pub(crate) connection_timeout: Duration,
    pub(crate) read_only: bool,
    /// Scheme and secret.
    pub(crate) identities: Vec<(String, Vec<u8>)>,
    pub(crate) sasl: Option<SaslUser>,
    pub(crate) tls: Option<Tls>,
}

/// As whom the shell logs in by SASL.
#[derive(Clone)]
pub(crate) enum SaslUser {
    Digest { user: String, password: String },
    Kerberos(KerberosUser),
}

/// Without the password.
impl std::fmt::Debug for SaslUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SaslUser::Digest { user, .. } => write!(f, "Digest({user:?}, ..)"),
            SaslUser::Kerberos(login) => f.debug_tuple("Kerberos").field(login).finish(),
        }
    }
}

/// The certificates of TLS.
#[derive(Clone)]
pub(crate) enum Tls {
    /// In PEM.
    Pem(PemContents),
    /// In the stores of a Java client.
    Stores(TlsSettings),
}

/// Without the key.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Tls::Pem(_) => "Pem(..)",
            Tls::Stores(_) => "Stores(..)",
        })
    }
}

impl ConnectOptions {
    fn builder(&self, hosts: &str) -> Result<ClientBuilder, ShellError> {
        let builder = Client::builder(hosts)
            .session_timeout(self.session_timeout)
            .connection_timeout(self.connection_timeout)
            .can_be_read_only(self.read_only);
        let builder = self
            .identities
            .iter()
            .fold(builder, |builder, (scheme, secret)| builder.auth(scheme, secret.clone()));
        let builder = match &self.sasl {
            Some(SaslUser::Digest { user, password }) => builder.sasl_digest_md5(user, password),
            Some(SaslUser::Kerberos(user)) => user.log_in(builder)?,
            None => builder,
        };
        match &self.tls {
            Some(Tls::Stores(settings)) => Ok(builder.tls_stores(settings)?),
            Some(Tls::Pem(pem)) => Ok(pem.apply(builder)?),
            None => Ok(builder),
        }
    }
}

/// A session, with its clients and watches.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The servers as the user has named them.
    pub(crate) servers: String,
    /// The client whose paths are below the root (chroot) that was named with the servers.
    pub(crate) client: Client,
    /// The client without a root.
    pub(crate) unrooted: Client,
    pub(crate) watches: Watches,
}

impl Connection {
    /// Opens a session. With `wait` it fails if no server answers in time; otherwise the commands wait for a server.
    pub(crate) async fn open(
        servers: &str,
        options: &ConnectOptions,
        teller: &Teller,
        wait: bool,
    ) -> Result<Connection, ShellError> {
        let (hosts, root) = servers.find('/').map_or((servers, ""), |at| servers.split_at(at));
        let builder = options.builder(hosts)?;
        let unrooted = if wait { builder.connect().await? } else { builder.connect_lazy()? };
        let client =
            if matches!(root, "" | "/") { unrooted.clone() } else { unrooted.using_namespace(root)? };
        let watches = Watches::start(unrooted.states(), teller.clone());
        Ok(Connection { servers: servers.to_owned(), client, unrooted, watches })
    }

    /// Ends the session. The events of its end are not printed.
    pub(crate) async fn close(self) {
        self.watches.end().await;
        self.client.close().await;
    }
}
