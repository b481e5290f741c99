//! Multi: several operations in one request, done all together or not at all.

use crate::{
    client::{Client, checked},
    create::{CreateMode, ModeChoice},
    error::{Error, Result},
    operation::{Call, Operation, OperationContext, ReplyError, finish, spanned},
    outcome::Reply,
    shared::Create2,
    version::Version,
};
use bytes::Bytes;
use ostler_client_core::Chroot;
use ostler_proto::{
    acl::Acl,
    error::ErrorCode,
    jute::Reader,
    op::Op,
    reply::{OpOutcome, read_outcomes},
    request::{self, MultiOp, PathVersion, Request},
    stat::Stat,
};
use std::{borrow::Cow, fmt, future::IntoFuture, marker::PhantomData, time::Duration};

/// Operations that are done all together or not at all: add them, then await it.
///
/// The options of an operation follow it, and have the names that they have for a single one:
/// [`ephemeral`](Multi::ephemeral) after [`create`](Multi::create), [`version`](Multi::version) after
/// [`set_data`](Multi::set_data) or [`delete`](Multi::delete). `Last` is the kind of the operation that was added last.
///
/// ```
/// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
/// # let server = server::TestServer::start();
/// # let client = server.client().await;
/// # client.create("/lock", b"").await?;
/// # client.create("/state", b"").await?;
/// use ostler_client::Version;
///
/// let results = client
///     .multi()
///     .check("/lock", Version::Exactly(0))
///     .create("/worker", b"me").ephemeral()
///     .set_data("/state", b"new").version(Version::Exactly(0))
///     .await?;
/// assert_eq!(results[1].path(), Some("/worker"));
/// assert_eq!(results[2].stat().map(|stat| stat.version), Some(1));
///
/// // In a loop, `and` ends the options of an operation.
/// let mut cleanup = client.multi();
/// for path in ["/worker", "/state"] {
///     cleanup = cleanup.delete(path).and();
/// }
/// cleanup.await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is done until it is awaited"]
pub struct Multi<'a, Last = ()> {
    client: &'a Client,
    ops: Vec<PlannedOp>,
    last: PhantomData<Last>,
}

/// The last operation of a [`Multi`] is a create, whose options can follow.
#[derive(Debug, Clone, Copy)]
pub enum CreateOp {}

/// The last operation of a [`Multi`] is a setData or a delete, whose version can follow.
#[derive(Debug, Clone, Copy)]
pub enum VersionedOp {}

impl<Last> Clone for Multi<'_, Last> {
    fn clone(&self) -> Self {
        Multi { client: self.client, ops: self.ops.clone(), last: PhantomData }
    }
}

impl<Last> fmt::Debug for Multi<'_, Last> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multi").field("ops", &self.ops).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct PlannedOp {
    path: String,
    kind: OpKind,
}

#[derive(Debug, Clone)]
enum OpKind {
    Create { data: Option<Bytes>, mode: ModeChoice, acl: Vec<Acl> },
    Delete { version: Version },
    SetData { data: Bytes, version: Version },
    Check { version: Version },
}

/// The result of an operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpResult {
    /// A create.
    Created {
        /// The path of the created znode, with the digits of a sequential one.
        path: String,
        /// The znode's Stat; `None` from servers before 3.8.2.
        stat: Option<Stat>,
    },
    /// A delete.
    Deleted,
    /// A setData, and the Stat after it.
    DataSet(Stat),
    /// A check.
    Checked,
}

impl OpResult {
    /// The path of the created znode, if this is a create.
    pub fn path(&self) -> Option<&str> {
        match self {
            OpResult::Created { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The Stat after a create or a setData.
    pub fn stat(&self) -> Option<&Stat> {
        match self {
            OpResult::Created { stat, .. } => stat.as_ref(),
            OpResult::DataSet(stat) => Some(stat),
            OpResult::Deleted | OpResult::Checked => None,
        }
    }
}

impl<'a, Last> Multi<'a, Last> {
    fn add<Next>(mut self, path: &str, kind: OpKind) -> Multi<'a, Next> {
        self.ops.push(PlannedOp { path: path.to_owned(), kind });
        self.retyped()
    }

    fn retyped<Next>(self) -> Multi<'a, Next> {
        Multi { client: self.client, ops: self.ops, last: PhantomData }
    }

    /// The same multi without options for the last operation. For loops, in which all kinds of operations have one type.
    pub fn and(self) -> Multi<'a> {
        self.retyped()
    }

    /// Checks that the znode exists and has this version.
    pub fn check(self, path: &str, version: Version) -> Multi<'a> {
        self.add(path, OpKind::Check { version })
    }

    /// Creates a znode: without options a persistent one, with the client's
    /// [default ACL](crate::ClientBuilder::default_acl).
    pub fn create(self, path: &str, data: impl AsRef<[u8]>) -> Multi<'a, CreateOp> {
        let (data, acl) = (Bytes::copy_from_slice(data.as_ref()), self.client.handle.default_acl.to_vec());
        self.add(path, OpKind::Create { data: Some(data), mode: ModeChoice::default(), acl })
    }

    /// Deletes a znode.
    pub fn delete(self, path: &str) -> Multi<'a, VersionedOp> {
        self.add(path, OpKind::Delete { version: Version::Any })
    }

    /// Sets a znode's data.
    pub fn set_data(self, path: &str, data: impl AsRef<[u8]>) -> Multi<'a, VersionedOp> {
        let data = Bytes::copy_from_slice(data.as_ref());
        self.add(path, OpKind::SetData { data, version: Version::Any })
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Hands the operations to the client now; [`IntoFuture`] does the same. They are done in order, in one transaction.
    /// Returns a result for each.
    ///
    /// # Errors
    /// [`Error::Multi`] with the first operation that fails: none was done. [`Error::ConnectionLoss`]: all or none were
    /// done. [`Error::ModeConflict`]: no znode has all the options of a create, and nothing was sent.
    pub fn send(self) -> Operation<Vec<OpResult>> {
        if let Some(error) = self.ops.iter().enumerate().find_map(|(index, op)| op.check(index).err()) {
            return Operation::refused(error);
        }
        let context = self.client.context("multi", self.ops.first().map_or("", |op| &op.path));
        let plan = Plan { client: self.client.clone(), context, ops: self.ops };
        let without_create2 = plan.client.shared().create2() == Create2::Unknown;
        let first = plan.ask(without_create2);
        spanned(plan.context.span(), async move { plan.run(first, without_create2).await })
    }
}

impl Multi<'_, CreateOp> {
    fn change(mut self, change: impl FnOnce(&mut Option<Bytes>, &mut ModeChoice, &mut Vec<Acl>)) -> Self {
        if let Some(OpKind::Create { data, mode, acl }) = self.ops.last_mut().map(|op| &mut op.kind) {
            change(data, mode, acl);
        }
        self
    }

    /// The kind of the znode; persistent by default. It replaces the kinds that were set before:
    /// [`Create::mode`](crate::Create::mode).
    pub fn mode(self, kind: CreateMode) -> Self {
        self.change(|_, mode, _| *mode = ModeChoice::mode(kind))
    }

    fn kind(self, choose: impl FnOnce(ModeChoice) -> ModeChoice) -> Self {
        self.change(|_, mode, _| *mode = choose(*mode))
    }

    /// Makes the znode ephemeral: [`Create::ephemeral`](crate::Create::ephemeral).
    pub fn ephemeral(self) -> Self {
        self.kind(ModeChoice::ephemeral)
    }

    /// [`ephemeral`](Multi::ephemeral) and [`sequential`](Multi::sequential).
    pub fn ephemeral_sequential(self) -> Self {
        self.ephemeral().sequential()
    }

    /// Makes the znode sequential: [`Create::sequential`](crate::Create::sequential).
    pub fn sequential(self) -> Self {
        self.kind(ModeChoice::sequential)
    }

    /// Makes the znode a container: [`Create::container`](crate::Create::container).
    pub fn container(self) -> Self {
        self.kind(ModeChoice::container)
    }

    /// Gives the znode a TTL: [`Create::ttl`](crate::Create::ttl).
    pub fn ttl(self, ttl: Duration) -> Self {
        self.kind(|mode| mode.ttl(ttl))
    }

    /// The znode's ACL. The default is [`ClientBuilder::default_acl`](crate::ClientBuilder::default_acl).
    pub fn acl<'c>(self, entries: impl Into<Cow<'c, [Acl]>>) -> Self {
        self.change(|_, _, acl| *acl = entries.into().into_owned())
    }

    /// Creates a znode without data, which is not the same as empty data.
    pub fn without_data(self) -> Self {
        self.change(|data, _, _| *data = None)
    }
}

impl Multi<'_, VersionedOp> {
    /// Sets the data, or deletes the znode, only if it has this version; any version by default.
    pub fn version(mut self, expected: Version) -> Self {
        if let Some(OpKind::SetData { version, .. } | OpKind::Delete { version }) =
            self.ops.last_mut().map(|op| &mut op.kind)
        {
            *version = expected;
        }
        self
    }
}

/// A multi with everything that is needed to send it again for an older server.
struct Plan {
    client: Client,
    context: OperationContext,
    ops: Vec<PlannedOp>,
}

impl Plan {
    /// Sends the multi. With `without_create2` it has only operations that every server knows.
    fn ask(&self, without_create2: bool) -> Call {
        let ops = self.ops.iter().map(|op| op.request(&self.client.chroot, without_create2));
        self.client.call(&Request::Multi(ops.collect()))
    }

    async fn done(&self, call: Call) -> Result<Vec<OpResult>> {
        finish(call, &self.context, |reply| results(reply, &self.ops, &self.client.chroot)).await
    }

    async fn run(&self, first: Call, without_create2: bool) -> Result<Vec<OpResult>> {
        let done = self.done(first).await;
        let shared = self.client.shared();
        if without_create2 || !self.ops.iter().any(PlannedOp::is_create2) {
            return done;
        }
        match done {
            // A server that does not know create2 cannot read a multi with one, and does none of its operations.
            Err(error) if is_unreadable(&error) && shared.create2() != Create2::Known => {
                let done = self.done(self.ask(true)).await;
                if !done.as_ref().is_err_and(is_unreadable) {
                    shared.note_create2(Create2::Unknown);
                }
                done
            }
            Ok(done) => {
                shared.note_create2(Create2::Known);
                Ok(done)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether the error says that the server could not read the request.
fn is_unreadable(error: &Error) -> bool {
    matches!(error, Error::Server { code: ErrorCode::MarshallingError, .. })
}

impl<Last> IntoFuture for Multi<'_, Last> {
    type Output = Result<Vec<OpResult>>;
    type IntoFuture = Operation<Vec<OpResult>>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

impl PlannedOp {
    /// # Errors
    /// Those of an operation that must not be sent.
    fn check(&self, index: usize) -> Result<()> {
        match &self.kind {
            OpKind::Create { mode, .. } if mode.checked(&self.path)?.is_sequential() => {
                return checked(&format!("{}1", self.path));
            }
            _ => checked(&self.path)?,
        }
        match self.version().is_possible() {
            true => Ok(()),
            false => Err(Error::Multi {
                code: ErrorCode::BadVersion,
                index,
                operation: self.name(),
                path: (*self.path).into(),
            }),
        }
    }

    fn version(&self) -> Version {
        match self.kind {
            OpKind::Delete { version } | OpKind::SetData { version, .. } | OpKind::Check { version } => {
                version
            }
            OpKind::Create { .. } => Version::Any,
        }
    }

    fn name(&self) -> &'static str {
        match &self.kind {
            OpKind::Create { .. } => "create",
            OpKind::Delete { .. } => "delete",
            OpKind::SetData { .. } => "setData",
            OpKind::Check { .. } => "check",
        }
    }

    fn is_create2(&self) -> bool {
        matches!(&self.kind, OpKind::Create { mode, .. } if mode.get().op() == Op::Create2)
    }

    fn request<'a>(&'a self, chroot: &Chroot, without_create2: bool) -> MultiOp<'a> {
        let path = chroot.absolute(&self.path);
        let version = self.version().number();
        match &self.kind {
            OpKind::Create { data, mode, acl } => {
                let (mode, op) = (mode.get(), (without_create2 && self.is_create2()).then_some(Op::Create));
                let path = mode.absolute(&self.path, chroot);
                MultiOp::Create(mode.request(op, path, data.as_deref(), acl))
            }
            OpKind::Delete { .. } => MultiOp::Delete(PathVersion { path, version }),
            OpKind::SetData { data, .. } => {
                MultiOp::SetData(request::SetData { path, data: Some(data.as_ref()), version })
            }
            OpKind::Check { .. } => MultiOp::Check(PathVersion { path, version }),
        }
    }
}

fn results(
    reply: Reply,
    ops: &[PlannedOp],
    chroot: &Chroot,
) -> std::result::Result<Vec<OpResult>, ReplyError> {
    let body = reply.ok()?.body;
    let outcomes = read_outcomes(&mut Reader::new(&body))?;
    let mut results = Vec::with_capacity(outcomes.len());
    for (index, outcome) in outcomes.into_iter().enumerate() {
        results.push(match outcome {
            OpOutcome::Create(path, stat) => {
                OpResult::Created { path: chroot.relative(&path).to_owned(), stat }
            }
            OpOutcome::Delete => OpResult::Deleted,
            OpOutcome::SetData(stat) => OpResult::DataSet(stat),
            OpOutcome::Check => OpResult::Checked,
            // Not done because a later operation failed. That one has the error code.
            OpOutcome::Error(0) => continue,
            OpOutcome::Error(code) => return Err(failed(code, index, ops)),
            OpOutcome::GetData(..) | OpOutcome::GetChildren(_) => continue,
        });
    }
    Ok(results)
}

fn failed(code: i32, index: usize, ops: &[PlannedOp]) -> ReplyError {
    let (operation, path) = ops.get(index).map_or(("multi", ""), |op| (op.name(), &*op.path));
    match ErrorCode::from_code(code) {
        Some(code) => ReplyError::Other(Error::Multi { code, index, operation, path: path.into() }),
        None => ReplyError::Code(code),
    }
}

impl Client {
    /// Begins a transaction: operations that are done all together or not at all.
    pub fn multi(&self) -> Multi<'_> {
        Multi { client: self, ops: Vec::new(), last: PhantomData }
    }
}
