//! What a client is told before it connects.

use crate::{
    client::{Client, Handle},
    connect_string,
    connection_task::ConnectionTask,
    dial::{Dialer, OwnStream, Way, by_the_system},
    error::{Error, Result},
    protected::Ids,
    retry::RetryPolicy,
    shared::Shared,
    tls,
};
use ostler_client_core::{AuthInfo, Config, SaslCredentials};
use std::{future::Future, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use uuid::Uuid;

/// Describes a client; [`connect`](ClientBuilder::connect) makes it.
#[derive(Clone)]
#[must_use = "nothing is connected until connect"]
pub struct ClientBuilder {
    servers: String,
    config: Config,
    way: Way,
    ids: Ids,
    tls: Option<Arc<rustls::ClientConfig>>,
    retry: RetryPolicy,
    reply_max: usize,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn new(servers: &str) -> ClientBuilder {
        let seed = Uuid::new_v4().as_u64_pair().0;
        ClientBuilder {
            servers: servers.to_owned(),
            config: Config::new(1, seed),
            way: Way::Tcp(by_the_system()),
            ids: Ids::default(),
            tls: None,
            retry: RetryPolicy::default(),
            reply_max: 64 << 20,
        }
    }

    /// Session timeout to ask for; 40 s unless said. The server has the last word
    /// ([`Client::session_timeout`]).
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.config.session_timeout = timeout;
        self
    }

    /// The servers' `tickTime`, or longer. It says how late a leader can hear of what a follower has answered, and so
    /// how long before the session's timeout `LOST` is told. Without it the client goes by 2 s, which is the servers'
    /// default, and by half the session's timeout where that is shorter: say it where `minSessionTimeout` is below two
    /// ticks, or `LOST` may come after the servers have ended the session. Sessions shorter than a tick are not to be
    /// relied on.
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.config.tick_time = Some(tick);
        self
    }

    /// Whether a session by which something is held is proven by writes, which take a quorum; true unless said.
    ///
    /// A follower that is cut off from its leader, or a leader that has been replaced, answers pings for up to
    /// `syncLimit` ticks, while the session may expire. So while a recipe holds something, the client asks for a
    /// transaction that only checks, after each quarter of the session's timeout, and takes the session for lost in
    /// time even if nothing but pings is answered. With very many holders these writes may be too many; without them a
    /// lock can seem to be held for so long after another has it, and what goes through its fence is refused all the
    /// same.
    pub fn prove_holding(mut self, prove: bool) -> Self {
        self.config.prove_holding = prove;
        self
    }

    /// How long `connect` tries, and how long an operation waits for a connection before it fails with
    /// [`Error::NotConnected`]; 15 s unless said.
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.config.connection_timeout = timeout;
        self
    }

    /// How reads, and writes that can be repeated, are tried again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// An identity to show on every connection: `digest` and `user:password`, say.
    pub fn auth(mut self, scheme: &str, auth: impl Into<Vec<u8>>) -> Self {
        self.config.auth.push(AuthInfo { scheme: scheme.to_owned(), auth: auth.into() });
        self
    }

    /// Who to be by SASL DIGEST-MD5, on every connection and before anything else.
    pub fn sasl_digest_md5(mut self, user: &str, password: &str) -> Self {
        self.config.sasl = Some(SaslCredentials { user: user.to_owned(), password: password.to_owned() });
        self
    }

    /// Whether a server that is cut off from its ensemble will do: it answers reads. The client goes on looking for one
    /// that can write. Such a server does not show that a session of the ensemble lives: that is lost in time all the
    /// same. Off unless said.
    pub fn read_only(mut self, allowed: bool) -> Self {
        self.config.read_only = allowed;
        self
    }

    /// Whether a lost session is followed by a new one; on unless said. Without it the client ends with its
    /// session.
    pub fn new_session_after_loss(mut self, wanted: bool) -> Self {
        self.config.new_session_after_loss = wanted;
        self
    }

    /// TLS, with the certificates that `config` trusts and shows.
    pub fn tls(mut self, config: impl Into<Arc<rustls::ClientConfig>>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// TLS with certificates in PEM: those of the authorities to trust, and, where servers want to know who this is,
    /// this client's own chain and key.
    ///
    /// # Errors
    /// [`Error::Tls`].
    pub fn tls_pem(self, authorities: &[u8], own: Option<(&[u8], &[u8])>) -> Result<Self> {
        Ok(self.tls(tls::config(authorities, own)?))
    }

    /// The largest request, bytes, which should be the servers' `jute.maxbuffer`; 1,048,575 unless said. A larger
    /// one fails with [`Error::TooLarge`] instead of the connection.
    pub fn max_packet(mut self, bytes: usize) -> Self {
        self.config.packet_max = bytes;
        self
    }

    /// The largest reply that is taken, bytes; 64 MiB unless said.
    pub fn max_reply(mut self, bytes: usize) -> Self {
        self.reply_max = bytes;
        self
    }

    /// Chance that decides on the order of the servers and the waits; drawn unless said.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Where the ids in the names of [`protected`](crate::Create::protected) znodes come from; drawn by the system
    /// unless said.
    ///
    /// For tests that must repeat, together with [`seed`](ClientBuilder::seed). An id is how a client knows what it has
    /// created: of two clients with the same seed either would take the other's znodes for its own.
    pub fn seed_of_ids(mut self, seed: u64) -> Self {
        self.ids = Ids::from_seed(seed);
        self
    }

    /// Connections are made like this, instead of by TCP to the addresses of a server's name: through a proxy, over a
    /// unix socket, or within the process. `connect` is given a server's name and port as the connect string has them,
    /// for every attempt anew. What it returns carries the protocol's bytes, or, with [`tls`](ClientBuilder::tls),
    /// those of TLS for that name. An attempt that takes too long is dropped.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let proxy = server.address;
    /// use ostler_client::Client;
    /// use tokio::net::TcpStream;
    ///
    /// let client = Client::builder("zoo.example:2181")
    ///     .connector(move |_host, _port| TcpStream::connect(proxy))
    ///     .connect()
    ///     .await?;
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn connector<C, F, S>(mut self, connect: C) -> Self
    where
        C: Fn(String, u16) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.way = Way::Own(Arc::new(move |server| {
            let connecting = connect(server.host, server.port);
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn OwnStream>) })
        }));
        self
    }

    /// Names are resolved like this instead.
    #[cfg(test)]
    pub(crate) fn resolver(mut self, resolver: crate::dial::Resolver) -> Self {
        self.way = Way::Tcp(resolver);
        self
    }

    /// Opens a session with one of the servers. Must be called within a tokio runtime, which the client's task
    /// then runs on.
    ///
    /// # Errors
    /// [`Error::ConnectString`]; [`Error::Unreachable`] if there is no session within the connection timeout;
    /// [`Error::AuthFailed`] if the server refuses an identity.
    pub async fn connect(self) -> Result<Client> {
        let (servers, limit) = (self.servers.clone(), self.config.connection_timeout);
        let client = self.start()?;
        match timeout(limit, client.wait_connected()).await {
            Ok(Ok(_)) => Ok(client),
            Ok(Err(_)) => Err(Error::AuthFailed),
            Err(_) => {
                let trouble =
                    client.shared().trouble().unwrap_or_else(|| "no server has answered".to_owned());
                Err(Error::Unreachable { servers: servers.into(), waited: limit, trouble: trouble.into() })
            }
        }
    }

    /// Begins to connect and does not wait for a session. Operations wait for it, each for the connection
    /// timeout. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::ConnectString`].
    pub fn start(self) -> Result<Client> {
        let parsed = connect_string::parse(&self.servers)?;
        let config = Config { hosts: parsed.hosts.len(), ..self.config };
        let shared = Arc::new(Shared::new(config, self.ids));
        let dialer = Dialer { hosts: parsed.hosts.into(), way: self.way, tls: self.tls };
        let task = ConnectionTask::new(shared.clone(), dialer, self.reply_max);
        shared.runtime.spawn(task);
        let handle = Arc::new(Handle { shared });
        Ok(Client { handle, chroot: parsed.chroot, session: None, retry: self.retry })
    }
}
