//! The client for programs without tokio: the same names, and [`wait`](Call::wait) in place of `.await`.
//!
//! ```
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let servers = server.address.to_string();
//! use ostler_client::{AddWatchMode, Version, blocking::Client};
//!
//! let client = Client::connect(&servers)?;
//! client.create("/config", b"v1").wait()?;
//! let ((data, stat), changed) = client.get_data("/config").watch().wait()?;
//! client.set_data("/config", b"v2").version(Version::Exactly(stat.version)).wait()?;
//! println!("{:?}", changed.wait()?);
//!
//! let changes = client.add_watch("/config", AddWatchMode::Persistent).wait()?;
//! client.multi().create("/worker", b"").ephemeral().set_data("/config", b"v3").wait()?;
//! for event in changes.take(1) {
//!     println!("{event:?}");
//! }
//! client.close();
//! # Ok(()) }
//! ```
//!
//! The client has one thread of its own, in which its tasks run; callers block in theirs. Operations on the ensemble
//! (`get_config`, `reconfig`) and `inject_session_expiration` have no method here, because few programs need them. They,
//! recipes, and the operations of a [`Session`] run by [`Client::block_on`]:
//!
//! ```
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let client = ostler_client::blocking::Client::connect(&server.address.to_string())?;
//! let (configuration, _) = client.block_on(client.as_async().get_config())?;
//! println!("{configuration:?}");
//! # Ok(()) }
//! ```
//!
//! Methods of the async client that do not wait, such as [`servers`](crate::Client::servers) and
//! [`change_server`](crate::Client::change_server), are called on [`Client::as_async`].
//!
//! # Panics
//! Everything that waits panics within a tokio runtime, which must not be blocked: use the async [`Client`](crate::Client)
//! there.

mod call;
mod runtime;
mod streams;

pub use call::{Call, WatchedRead};
pub use streams::{Events, NoItem, Watch};

use crate::{
    Acl, AddWatchMode, ClientBuilder, Id, Result, RetryPolicy, SessionId, SessionState, Stat, StateStream,
    WatchStream, WatcherType,
    create::Create,
    delete::Delete,
    multi::Multi,
    multi_read::MultiRead,
    operation::Operation,
    reads::Read,
    session::Session,
    writes::{SetAcl, SetData},
};
use bytes::Bytes;
use runtime::Runtime;
use std::{sync::Arc, time::Duration};

/// A blocking client. Clones share its session; the last one dropped closes it in the background, in the client's
/// thread. A program that ends at once should call [`close`](Client::close).
#[derive(Debug, Clone)]
pub struct Client {
    // Dropped before the runtime, in which it closes its session.
    client: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// Connects to one of the servers in `servers`, `host1:2181,host2:2181/root`, and opens a session.
    ///
    /// # Errors
    /// Those of the async [`connect`](crate::Client::connect); [`Error::Thread`](crate::Error::Thread).
    pub fn connect(servers: &str) -> Result<Client> {
        Client::connect_with(crate::Client::builder(servers))
    }

    /// [`connect`](Client::connect) with options.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let servers = server.address.to_string();
    /// use ostler_client::blocking::Client;
    /// use std::time::Duration;
    ///
    /// let options = ostler_client::Client::builder(&servers).session_timeout(Duration::from_secs(10));
    /// let client = Client::connect_with(options)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub fn connect_with(options: ClientBuilder) -> Result<Client> {
        let runtime = Runtime::start()?;
        let client = runtime.block_on(options.connect())?;
        let runtime = runtime.serve(&client);
        Ok(Client { client, runtime })
    }

    /// The async client behind this one.
    pub fn as_async(&self) -> &crate::Client {
        &self.client
    }

    /// Waits for any future, such as an operation of [`as_async`](Client::as_async), in the calling thread.
    pub fn block_on<F: IntoFuture>(&self, future: F) -> F::Output {
        self.runtime.block_on(future.into_future())
    }

    /// Ends the session: the async [`close`](crate::Client::close).
    pub fn close(&self) {
        self.block_on(self.client.close());
    }

    /// The connection's state now: the async [`state`](crate::Client::state).
    pub fn state(&self) -> SessionState {
        self.client.state()
    }

    /// The changes of the connection's state, beginning with the state now.
    pub fn states(&self) -> Events<StateStream> {
        Events::new(self, self.client.states())
    }

    /// Whether requests reach a server now.
    pub fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    /// Waits until requests reach a server.
    ///
    /// # Errors
    /// Those of the async [`wait_connected`](crate::Client::wait_connected).
    pub fn wait_connected(&self) -> Result<SessionState> {
        self.block_on(self.client.wait_connected())
    }

    /// Waits until requests reach a server, at most for `limit`: the async
    /// [`wait_connected_within`](crate::Client::wait_connected_within).
    ///
    /// # Errors
    /// Those of [`wait_connected`](Client::wait_connected).
    pub fn wait_connected_within(&self, limit: Duration) -> Result<bool> {
        self.block_on(self.client.wait_connected_within(limit))
    }

    /// The present session's id, if there is one: the async [`session_id`](crate::Client::session_id).
    pub fn session_id(&self) -> Option<SessionId> {
        self.client.session_id()
    }

    /// The session timeout that the server has granted; `None` before the first session.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.client.session_timeout()
    }

    /// Adds an identity to this connection and all later ones: the async [`add_auth`](crate::Client::add_auth).
    pub fn add_auth(&self, scheme: &str, auth: impl Into<Vec<u8>>) -> Call<'_, Operation<()>> {
        Call::new(self, self.client.add_auth(scheme, auth))
    }

    /// A client whose paths are below `namespace`: the async [`using_namespace`](crate::Client::using_namespace).
    ///
    /// # Errors
    /// [`Error::BadPath`](crate::Error::BadPath).
    pub fn using_namespace(&self, namespace: &str) -> Result<Client> {
        Ok(Client { client: self.client.using_namespace(namespace)?, runtime: self.runtime.clone() })
    }

    /// A client with another retry policy.
    #[must_use]
    pub fn with_retry(&self, policy: RetryPolicy) -> Client {
        Client { client: self.client.with_retry(policy), runtime: self.runtime.clone() }
    }

    /// The present session, whose operations are done by [`block_on`](Client::block_on).
    ///
    /// # Errors
    /// Those of [`wait_connected`](Client::wait_connected).
    pub fn session(&self) -> Result<Session> {
        self.block_on(self.client.session())
    }

    /// Creates a znode: the async [`create`](crate::Client::create), with its options and errors.
    pub fn create<'a>(
        &'a self,
        path: &'a str,
        data: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Call<'a, Create<'a>> {
        Call::new(self, self.client.create(path, data))
    }

    /// Reads a znode's data and Stat: the async [`get_data`](crate::Client::get_data).
    pub fn get_data<'a>(&'a self, path: &'a str) -> Call<'a, Read<'a, (Bytes, Stat)>> {
        Call::new(self, self.client.get_data(path))
    }

    /// Reads a znode's Stat; `None` if it does not exist: the async [`exists`](crate::Client::exists).
    pub fn exists<'a>(&'a self, path: &'a str) -> Call<'a, Read<'a, Option<Stat>>> {
        Call::new(self, self.client.exists(path))
    }

    /// Reads the names of a znode's children: the async [`get_children`](crate::Client::get_children).
    pub fn get_children<'a>(&'a self, path: &'a str) -> Call<'a, Read<'a, Vec<String>>> {
        Call::new(self, self.client.get_children(path))
    }

    /// Reads the names of a znode's children, and its Stat: the async
    /// [`get_children_and_stat`](crate::Client::get_children_and_stat).
    pub fn get_children_and_stat<'a>(&'a self, path: &'a str) -> Call<'a, Read<'a, (Vec<String>, Stat)>> {
        Call::new(self, self.client.get_children_and_stat(path))
    }

    /// Reads the number of znodes below one: the async
    /// [`get_all_children_number`](crate::Client::get_all_children_number).
    pub fn get_all_children_number(&self, path: &str) -> Call<'_, Operation<u32>> {
        Call::new(self, self.client.get_all_children_number(path))
    }

    /// Reads the paths of this session's ephemeral znodes: the async [`get_ephemerals`](crate::Client::get_ephemerals).
    pub fn get_ephemerals(&self, prefix: &str) -> Call<'_, Operation<Vec<String>>> {
        Call::new(self, self.client.get_ephemerals(prefix))
    }

    /// Reads the identities of this connection: the async [`who_am_i`](crate::Client::who_am_i).
    pub fn who_am_i(&self) -> Call<'_, Operation<Vec<Id>>> {
        Call::new(self, self.client.who_am_i())
    }

    /// Reads a znode's ACL and Stat: the async [`get_acl`](crate::Client::get_acl).
    pub fn get_acl(&self, path: &str) -> Call<'_, Operation<(Vec<Acl>, Stat)>> {
        Call::new(self, self.client.get_acl(path))
    }

    /// Brings the server up to date: the async [`sync`](crate::Client::sync).
    pub fn sync(&self, path: &str) -> Call<'_, Operation<()>> {
        Call::new(self, self.client.sync(path))
    }

    /// Sets a znode's data: the async [`set_data`](crate::Client::set_data), with its options and errors.
    pub fn set_data<'a>(
        &'a self,
        path: &'a str,
        data: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Call<'a, SetData<'a>> {
        Call::new(self, self.client.set_data(path, data))
    }

    /// Sets a znode's ACL: the async [`set_acl`](crate::Client::set_acl).
    pub fn set_acl<'a>(&'a self, path: &'a str, acl: &'a [Acl]) -> Call<'a, SetAcl<'a>> {
        Call::new(self, self.client.set_acl(path, acl))
    }

    /// Deletes a znode: the async [`delete`](crate::Client::delete), with its options and errors.
    pub fn delete<'a>(&'a self, path: &'a str) -> Call<'a, Delete<'a>> {
        Call::new(self, self.client.delete(path))
    }

    /// Begins a transaction: the async [`multi`](crate::Client::multi).
    pub fn multi(&self) -> Call<'_, Multi<'_>> {
        Call::new(self, self.client.multi())
    }

    /// Begins several reads in one request: the async [`multi_read`](crate::Client::multi_read).
    pub fn multi_read(&self) -> Call<'_, MultiRead<'_>> {
        Call::new(self, self.client.multi_read())
    }

    /// Watches a znode, or all znodes below it, for as long as the iterator lives: the async
    /// [`add_watch`](crate::Client::add_watch).
    pub fn add_watch(
        &self,
        path: &str,
        mode: AddWatchMode,
    ) -> Call<'_, Operation<WatchStream>, Result<Events<WatchStream>>> {
        let finish = |stream: Result<WatchStream>, client: &Client| Ok(Events::new(client, stream?));
        Call::with(self, self.client.add_watch(path, mode), finish)
    }

    /// Whether the server holds a watch of this client on a znode: the async
    /// [`check_watches`](crate::Client::check_watches).
    pub fn check_watches(&self, path: &str, kind: WatcherType) -> Call<'_, Operation<bool>> {
        Call::new(self, self.client.check_watches(path, kind))
    }

    /// Removes all watches of these types on a znode: the async [`remove_watches`](crate::Client::remove_watches).
    pub fn remove_watches(&self, path: &str, kind: WatcherType) -> Call<'_, Operation<()>> {
        Call::new(self, self.client.remove_watches(path, kind))
    }
}
