//! The options of a client.

use crate::{
    client::{Client, Handle},
    connect_string::HostPort,
    connection_task::ConnectionTask,
    dial::{CustomStream, Dialer, Transport, system_resolver},
    ensemble::Following,
    error::{Error, Result},
    kerberos::{KerberosLogin, KerberosSession},
    protected::Ids,
    retry::RetryPolicy,
    server_list::ServerList,
    server_source::{self, ServerSource},
    servers::{RankOf, Servers},
    shared::Shared,
    tls,
};
use ostler_client_core::{AuthInfo, Config, RetryBudget};
#[cfg(feature = "sasl")]
use ostler_client_core::{SaslCredentials, SaslLogin};
use ostler_proto::acl::Acl;
use std::{
    future::{Future, IntoFuture},
    io,
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::spawn_blocking,
    time::timeout,
};
use uuid::Uuid;

/// Options of a client: set them, then await it. It has the same result as [`connect`](ClientBuilder::connect).
///
/// ```
/// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
/// # let server = server::TestServer::start();
/// # let servers = server.address.to_string();
/// use ostler_client::Client;
/// use std::time::Duration;
///
/// let client = Client::builder(&servers).session_timeout(Duration::from_secs(10)).await?;
/// # client.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is connected until it is awaited"]
pub struct ClientBuilder {
    servers: String,
    config: Config,
    transport: Transport,
    ids: Ids,
    pub(crate) tls: Option<tls::TlsConfig>,
    kerberos: Option<KerberosLogin>,
    retry: RetryPolicy,
    pub(crate) budget: Option<RetryBudget>,
    pub(crate) rank: Option<RankOf>,
    pub(crate) source: Option<ServerSource>,
    pub(crate) following: Option<Following>,
    default_acl: Vec<Acl>,
    reply_max: usize,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// [`connect`](ClientBuilder::connect).
impl IntoFuture for ClientBuilder {
    type Output = Result<Client>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Client>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}

impl ClientBuilder {
    pub(crate) fn new(servers: &str) -> ClientBuilder {
        let seed = Uuid::new_v4().as_u64_pair().0;
        ClientBuilder {
            servers: servers.to_owned(),
            config: Config::new(1, seed),
            transport: Transport::Tcp(system_resolver()),
            ids: Ids::default(),
            tls: None,
            kerberos: None,
            retry: RetryPolicy::default(),
            budget: None,
            rank: None,
            source: None,
            following: None,
            default_acl: vec![Acl::open_unsafe()],
            reply_max: 64 << 20,
        }
    }

    /// The session timeout to ask for; 40 s by default. The server may grant another one: see
    /// [`Client::session_timeout`].
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.config.session_timeout = timeout;
        self
    }

    /// The servers' `tickTime`, or a longer time. A leader hears of a follower's answers up to half a tick later, so
    /// the client reports `Lost` that much before the session's timeout. By default the client assumes 2 s, which is
    /// the servers' default, or half the session's timeout if that is shorter. Set this if the servers' tick is longer,
    /// or if their `minSessionTimeout` is below two ticks: otherwise `Lost` may come after the servers have ended the
    /// session. Do not rely on sessions that are shorter than a tick.
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.config.tick_time = Some(tick);
        self
    }

    /// Whether the client proves by writes, which need a quorum, that a session lives while a recipe holds something in
    /// it; true by default.
    ///
    /// A follower that is cut off from its leader, or a leader that has been replaced, answers pings for up to
    /// `syncLimit` ticks. The session may expire meanwhile. So while a recipe holds something, the client asks for a
    /// transaction that only checks after each quarter of the session's timeout, and answers to pings do not count.
    /// With very many holders these writes may be too many. Without them a lock can seem to be held for up to
    /// `syncLimit` ticks after another process has acquired it. Writes through its fence are refused in any case.
    pub fn prove_holding(mut self, prove: bool) -> Self {
        self.config.prove_holding = prove;
        self
    }

    /// How long `connect` tries, and how long each try of an operation waits for a connection before it fails with
    /// [`Error::NotConnected`]; 15 s by default. The [retry policy](ClientBuilder::retry) repeats a read, and a write that
    /// can be repeated, after that error too. So such an operation may wait this long for each of its tries;
    /// [`RetryPolicy::at_most`] limits when the last try begins, `tokio::time::timeout` the whole.
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.config.connection_timeout = timeout;
        self
    }

    /// How reads, and writes that can be repeated, are tried again after connection trouble. By default ten times, with
    /// waits from 50 ms up to 2 s.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How many retries all operations of the client may do together; without a budget by default.
    ///
    /// In an outage every request of every client fails and is tried again, and that load can keep the servers down. With
    /// a budget the retries are at most a share of the requests. A retry that is not covered is not done: the operation
    /// fails with the error of its last try. The clones of a client share its budget. Background deletes are outside of
    /// it: they wait up to 5 s between tries.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let servers = server.address.to_string();
    /// use ostler_client::{Client, RetryBudget};
    ///
    /// let client = Client::builder(&servers).retry_budget(RetryBudget::new().percent(10)).await?;
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Adds an identity for every connection, for example `digest` and `user:password`.
    pub fn auth(mut self, scheme: &str, auth: impl Into<Vec<u8>>) -> Self {
        self.config.auth.push(AuthInfo { scheme: scheme.to_owned(), auth: auth.into() });
        self
    }

    /// The ACL of creates that name none, and of the parents that they create; by default everybody may do everything
    /// (`OPEN_ACL_UNSAFE`). The znodes of recipes have it too. Curator's `aclProvider`.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let servers = server.address.to_string();
    /// use ostler_client::{Acl, Client};
    ///
    /// let builder = Client::builder(&servers).auth("digest", "app:secret").default_acl([Acl::creator_all()]);
    /// let client = builder.await?;
    /// client.create("/app/config", b"").creating_parents().await?;
    /// assert_eq!(client.get_acl("/app").await?.0[0].id.scheme, "digest");
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn default_acl(mut self, acl: impl IntoIterator<Item = Acl>) -> Self {
        self.default_acl = acl.into_iter().collect();
        self
    }

    /// Authenticates by SASL DIGEST-MD5 on every connection, before any other request.
    #[cfg(feature = "sasl")]
    pub fn sasl_digest_md5(mut self, user: &str, password: &str) -> Self {
        let credentials = SaslCredentials { user: user.to_owned(), password: password.to_owned() };
        self.config.sasl = Some(SaslLogin::DigestMd5(credentials));
        self.kerberos = None;
        self
    }

    /// Authenticates by SASL GSSAPI (Kerberos) on every connection, before any other request. Needs the feature
    /// `gssapi`.
    #[cfg(feature = "gssapi")]
    pub fn sasl_gssapi(mut self, login: KerberosLogin) -> Self {
        self.config.sasl = Some(SaslLogin::OfCaller);
        self.kerberos = Some(login);
        self
    }

    /// Whether the client may use a server that is cut off from its ensemble and answers reads only; off by default.
    /// The client goes on looking for a server that can write. Answers of a read-only server do not show that a session
    /// of the ensemble lives, so that session is lost after its timeout. ZooKeeper's `canBeReadOnly`.
    pub fn can_be_read_only(mut self, allowed: bool) -> Self {
        self.config.read_only = allowed;
        self
    }

    /// Whether the client opens a new session after a lost one; on by default. Otherwise the client ends with its session:
    /// each later operation fails with [`Error::SessionExpired`].
    pub fn new_session_after_loss(mut self, wanted: bool) -> Self {
        self.config.new_session_after_loss = wanted;
        self
    }

    /// The size of the largest request, in bytes; 1,048,575 by default. It should be the servers' `jute.maxbuffer`. A
    /// larger request fails with [`Error::TooLarge`], and the connection stays up.
    pub fn max_packet(mut self, bytes: usize) -> Self {
        self.config.packet_max = bytes;
        self
    }

    /// The size of the largest reply that the client accepts, in bytes; 64 MiB by default.
    pub fn max_reply(mut self, bytes: usize) -> Self {
        self.reply_max = bytes;
        self
    }

    /// The seed for the order of the servers and for the waits between attempts; random by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// The seed for the ids in the names of [`protected`](crate::Create::protected) znodes; random by default.
    ///
    /// For tests that must be repeatable, together with [`seed`](ClientBuilder::seed). A client recognizes its znodes
    /// by these ids: of two clients with the same seed, each would take the other's znodes for its own.
    pub fn seed_of_ids(mut self, seed: u64) -> Self {
        self.ids = Ids::from_seed(seed);
        self
    }

    /// Lets `connect` make the connections, instead of TCP to the addresses of a server's name: through a proxy, over a
    /// unix socket, or within the process. `connect` is called for each attempt, with a server as it is in the connect
    /// string. The stream that it returns carries the protocol's bytes or, with
    /// `tls`, TLS for that name. The future of an attempt that takes too long is dropped.
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
    ///     .connector(move |_server| TcpStream::connect(proxy))
    ///     .connect()
    ///     .await?;
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn connector<C, F, S>(mut self, connect: C) -> Self
    where
        C: Fn(HostPort) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.transport = Transport::Custom(Arc::new(move |server| {
            let connecting = connect(server);
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn CustomStream>) })
        }));
        self
    }

    /// Resolves names by this function.
    #[cfg(test)]
    pub(crate) fn resolver(mut self, resolver: crate::dial::Resolver) -> Self {
        self.transport = Transport::Tcp(resolver);
        self
    }

    /// Opens a session with one of the servers. The client's task runs in the tokio runtime of this call.
    ///
    /// # Errors
    /// [`Error::ConnectString`]; [`Error::Unreachable`] if there is no session within the connection timeout;
    /// [`Error::AuthFailed`] if the server refuses an identity; [`Error::Kerberos`] if there are no keys or tickets.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(self) -> Result<Client> {
        if let Some(login) = self.kerberos.clone() {
            let checked = spawn_blocking(move || KerberosSession::new(login)?.check()).await;
            checked.map_err(|_| Error::Closed)??;
        }
        let (servers, limit) = (self.servers.clone(), self.config.connection_timeout);
        let client = self.connect_lazy()?;
        match timeout(limit, client.wait_connected()).await {
            Ok(Ok(_)) => Ok(client),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let last_error =
                    client.shared().last_error().unwrap_or_else(|| "no server has answered".to_owned());
                Err(Error::Unreachable {
                    servers: servers.into(),
                    waited: limit,
                    last_error: last_error.into(),
                })
            }
        }
    }

    /// Begins to connect, without a wait for a session. Each operation waits for it, at most for the connection
    /// timeout. The client's task runs in the tokio runtime of this call.
    ///
    /// # Errors
    /// [`Error::ConnectString`]; [`Error::Kerberos`] if there are no keys.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect_lazy(self) -> Result<Client> {
        let (parsed, source) = server_source::parse(&self.servers, self.source)?;
        let following =
            self.following.map(|following| following.checked(&self.servers, &parsed, self.tls.is_some()));
        let following = following.transpose()?;
        let hosts = Arc::new(Servers::new(parsed.hosts, self.rank));
        let config = Config { hosts: hosts.len(), ranks: hosts.ranks(), ..self.config };
        let connection_timeout = config.connection_timeout;
        let shared = Arc::new(Shared::new(config, self.ids).with_budget(self.budget));
        let dialer = Dialer { hosts: hosts.clone(), transport: self.transport, tls: self.tls };
        let login = self.kerberos.map(KerberosSession::new).transpose()?.map(Arc::new);
        let task = ConnectionTask::new(shared.clone(), dialer.clone(), login, self.reply_max);
        shared.runtime.spawn(task);
        let list = ServerList { shared: shared.clone(), servers: hosts };
        if let Some(source) = source {
            shared.runtime.spawn(server_source::run(list.clone(), source));
        }
        if let Some(following) = following {
            shared.runtime.spawn(following.run(list));
        }
        let handle = Arc::new(Handle { shared, dialer, connection_timeout, default_acl: self.default_acl });
        Ok(Client { handle, chroot: parsed.chroot, session: None, retry: self.retry })
    }
}
