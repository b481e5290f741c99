//! The handle by which more paths of the admin server, such as those of the console, ask the server.

mod operator;
pub(crate) mod parts;

use super::{
    access::{Right, Verdict},
    command::Command,
    commands,
    router::{self, AdminConn},
    state::AdminState,
};
use crate::client_conn::{self, ClientService};
use axum::http::HeaderMap;
use ostler_proto::{
    acl::{Id, Perms},
    id::ServerId,
};
use ostler_server_core::{OperatorLogin, Server};
use ostler_storage::disk::Disk;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

/// Connections of other processes that are closed before an attempt is given up.
const OTHERS_MAX: usize = 16;

pub use operator::NotExpired;

/// The parameters of a command.
pub type CommandQuery = BTreeMap<String, String>;

/// Asks a server on behalf of callers of its admin server. Cheap to clone.
#[derive(Clone)]
pub struct AdminHandle {
    pub(super) state: Arc<AdminState>,
    connections: mpsc::Sender<NewConnection>,
    me: Option<ServerId>,
    frame_max: usize,
}

/// Whether a caller may see the state of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayView {
    /// The caller may.
    Yes,
    /// The caller may with an identity that has the right READ at the root.
    WithIdentity,
    /// The request came by a name that is none of this server's (`admin.hostNames`).
    OtherName,
    /// The request came from a page of another site.
    OtherSite,
}

/// This server's end of a connection to itself.
struct NewConnection {
    stream: TcpStream,
    from: SocketAddr,
    /// The identities that it proves.
    ids: Vec<Id>,
}

impl AdminHandle {
    pub(crate) fn new(
        state: Arc<AdminState>,
        service: ClientService,
        tasks: &mut JoinSet<()>,
    ) -> AdminHandle {
        let (connections, waiting) = mpsc::channel(16);
        let me = state.driver.inspect(|server| Some(server.member_report()?.me));
        let frame_max = service.limits.frame_max;
        tasks.spawn(serve(waiting, service));
        AdminHandle { state, connections, me, frame_max }
    }

    /// The answer of a command that shows something, as the admin server gives it; `None` for another name. It may read
    /// files, and it may wait for the core: call it where a thread may wait.
    pub fn command(&self, name: &str, query: &CommandQuery) -> Option<Map<String, Value>> {
        let command = Command::find(name).filter(|command| command.right() == Right::Read)?;
        Some(commands::answer(&self.state, command, query))
    }

    /// Whether the caller of a request may see the state of the server: by the rules of the commands, and by the server's own
    /// names only.
    pub fn may_view(&self, conn: &AdminConn, headers: &HeaderMap) -> MayView {
        match router::verdict(&self.state, conn, headers, Right::Page) {
            Verdict::Allowed => MayView::Yes,
            Verdict::NeedsIdentity(_) => MayView::WithIdentity,
            Verdict::OtherName => MayView::OtherName,
            Verdict::OtherSite => MayView::OtherSite,
        }
    }

    /// The identities that a login proves; `None` if it fails. `scheme` is `digest`, `x509` or `ip`.
    pub fn identities(&self, conn: &AdminConn, scheme: &str, auth: Option<&[u8]>) -> Option<Vec<Id>> {
        let certificate = conn.certificate.as_ref();
        let login = OperatorLogin { address: conn.peer.ip(), scheme, auth, certificate };
        self.state.driver.inspect(|server| server.operator_ids(login))
    }

    /// Whether these identities may see the pages about the server, at a port that asks for an identity.
    pub fn is_viewer(&self, ids: &[Id]) -> bool {
        let viewers = &self.state.settings.viewers;
        let may = || self.state.driver.inspect(|server| server.operator_may(ids, Perms::READ));
        self.is_operator(ids) || if viewers.is_empty() { may() } else { has_one(ids, viewers) }
    }

    /// Whether somebody with these identities is admitted at a port that asks for one. Everybody can make up a digest, so it
    /// must have a right: READ at the root, or a place among those who view or operate. A login by SASL and a certificate
    /// are proven.
    pub fn is_admitted(&self, ids: &[Id]) -> bool {
        ids.iter().any(|id| matches!(&*id.scheme, "sasl" | "x509"))
            || self.is_viewer(ids)
            || self.state.driver.inspect(|server| server.operator_may(ids, Perms::READ))
    }

    /// Whether only the identities of `admin.viewers` may see the pages about the server.
    pub fn has_viewers(&self) -> bool {
        !self.state.settings.viewers.is_empty()
    }

    /// Whether these identities may act on the server.
    pub fn is_operator(&self, ids: &[Id]) -> bool {
        let operators = &self.state.settings.operators;
        if !operators.is_empty() {
            return is_super(ids) || has_one(ids, operators);
        }
        self.state.driver.inspect(|server| server.operator_may(ids, Perms::ALL))
    }

    /// Whether nothing may be changed (`admin.readOnly`).
    pub fn is_read_only(&self) -> bool {
        self.state.settings.read_only
    }

    /// This server's number; `None` for a standalone server.
    pub fn id(&self) -> Option<ServerId> {
        self.me
    }

    /// The path above the commands, without a slash at its end.
    pub fn command_url(&self) -> &str {
        &self.state.settings.command_url
    }

    /// The most bytes of a client's request (`jute.maxbuffer`).
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// The disk, and the folder of the logs.
    pub fn logs(&self) -> (Arc<dyn Disk>, &Path) {
        let files = &self.state.snapshots;
        (files.disk.clone(), &files.folders.logs)
    }

    /// Looks at the core between two steps. The core is locked meanwhile, so everything else waits: the look must be short,
    /// however large the tree is.
    pub fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        self.state.driver.inspect(look)
    }

    /// A client's connection to this server, with the address and the certificate of a caller of the admin server: the
    /// server gives it the rights of a client who comes from there.
    ///
    /// # Errors
    /// There is no port or descriptor left, or the server ends.
    pub async fn connect(&self, from: SocketAddr, certificate: Option<Id>) -> io::Result<TcpStream> {
        self.connect_with(from, certificate.into_iter().collect()).await
    }

    async fn connect_with(&self, from: SocketAddr, ids: Vec<Id>) -> io::Result<TcpStream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let ours = TcpStream::connect(listener.local_addr()?).await?;
        ours.set_nodelay(true)?;
        let own = ours.local_addr()?;
        for _ in 0..OTHERS_MAX {
            let (stream, peer) = listener.accept().await?;
            if peer != own {
                // Another process has found the port.
                continue;
            }
            stream.set_nodelay(true)?;
            let sent = self.connections.send(NewConnection { stream, from, ids }).await;
            return sent.map(|()| ours).map_err(|_| io::Error::other("the server ends"));
        }
        Err(io::Error::other("other processes take the connections of a port on loopback"))
    }
}

/// Whether a super user is among these identities.
fn is_super(ids: &[Id]) -> bool {
    ids.iter().any(|id| id.scheme == "super")
}

/// Whether one of these identities is in a list of the configuration.
fn has_one(ids: &[Id], list: &[Id]) -> bool {
    ids.iter().any(|id| list.contains(id))
}

/// Serves the connections of [`AdminHandle::connect`] until the server ends.
async fn serve(mut waiting: mpsc::Receiver<NewConnection>, service: ClientService) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            next = waiting.recv() => {
                let Some(NewConnection { stream, from, ids }) = next else { return };
                running.spawn(client_conn::serve_inner(stream, from, ids, service.clone()));
            }
            Some(_) = running.join_next() => {}
        }
    }
}
