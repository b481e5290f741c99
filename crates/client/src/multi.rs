//! Multi and multiRead: several operations in one request.

use crate::{
    client::{Client, checked},
    create::CreateMode,
    error::{Error, Result},
    operation::{Call, Operation, OperationContext, ReplyError, finish, retried, spanned},
    outcome::Reply,
    shared::Create2,
};
use bytes::Bytes;
use ostler_client_core::Chroot;
use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    jute::Reader,
    op::Op,
    reply::{OpOutcome, read_outcomes},
    request::{self, MultiOp, MultiReadOp, PathVersion, Request},
    stat::Stat,
};
use std::future::IntoFuture;

/// Operations that are done all together or not at all: add them, then call [`commit`](Multi::commit).
///
/// ```
/// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
/// # let server = server::TestServer::start();
/// # let client = server.client().await;
/// # client.create("/lock", b"").await?;
/// # client.create("/state", b"").await?;
/// let results = client.multi().check("/lock", 0).set_data("/state", b"new").commit().await?;
/// assert_eq!(results[1].stat().map(|stat| stat.version), Some(1));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is done until commit"]
pub struct Multi<'a> {
    client: &'a Client,
    ops: Vec<PlannedOp>,
}

#[derive(Debug, Clone)]
struct PlannedOp {
    path: String,
    kind: OpKind,
}

#[derive(Debug, Clone)]
enum OpKind {
    Create { data: Bytes, mode: CreateMode, acl: Vec<Acl> },
    Delete { version: i32 },
    SetData { data: Bytes, version: i32 },
    Check { version: i32 },
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

impl Multi<'_> {
    fn add(mut self, path: &str, kind: OpKind) -> Self {
        self.ops.push(PlannedOp { path: path.to_owned(), kind });
        self
    }

    /// Checks that the znode exists and has this version; -1 for any.
    pub fn check(self, path: &str, version: i32) -> Self {
        self.add(path, OpKind::Check { version })
    }

    /// Creates a persistent znode with an ACL that allows everything to everybody.
    pub fn create(self, path: &str, data: impl AsRef<[u8]>) -> Self {
        self.create_with(path, data, CreateMode::Persistent, vec![Acl::world(Perms::ALL)])
    }

    /// Creates a znode with an ACL that allows everything to everybody.
    pub fn create_mode(self, path: &str, data: impl AsRef<[u8]>, mode: CreateMode) -> Self {
        self.create_with(path, data, mode, vec![Acl::world(Perms::ALL)])
    }

    /// Creates a znode with this ACL.
    pub fn create_with(self, path: &str, data: impl AsRef<[u8]>, mode: CreateMode, acl: Vec<Acl>) -> Self {
        let data = Bytes::copy_from_slice(data.as_ref());
        self.add(path, OpKind::Create { data, mode, acl })
    }

    /// Deletes a znode if it has this version; -1 for any.
    pub fn delete(self, path: &str, version: i32) -> Self {
        self.add(path, OpKind::Delete { version })
    }

    /// Sets a znode's data, at any version.
    pub fn set_data(self, path: &str, data: impl AsRef<[u8]>) -> Self {
        self.set_data_version(path, data, -1)
    }

    /// Sets a znode's data if it has this version; -1 for any.
    pub fn set_data_version(self, path: &str, data: impl AsRef<[u8]>, version: i32) -> Self {
        let data = Bytes::copy_from_slice(data.as_ref());
        self.add(path, OpKind::SetData { data, version })
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Does the operations in order, in one transaction. Returns a result for each.
    ///
    /// # Errors
    /// [`Error::Multi`] with the first operation that fails: none was done. [`Error::ConnectionLoss`]: all or none were
    /// done.
    pub fn commit(self) -> Operation<Vec<OpResult>> {
        if let Some(error) = self.ops.iter().find_map(|op| op.check().err()) {
            return Operation::refused(error);
        }
        let context = self.client.context("multi", self.ops.first().map_or("", |op| &op.path));
        let plan = Plan { client: self.client.clone(), context, ops: self.ops };
        let without_create2 = plan.client.shared().create2() == Create2::Unknown;
        let first = plan.ask(without_create2);
        spanned(plan.context.span(), async move { plan.run(first, without_create2).await })
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

impl IntoFuture for Multi<'_> {
    type Output = Result<Vec<OpResult>>;
    type IntoFuture = Operation<Vec<OpResult>>;

    fn into_future(self) -> Self::IntoFuture {
        self.commit()
    }
}

impl PlannedOp {
    fn check(&self) -> Result<()> {
        match &self.kind {
            OpKind::Create { mode, .. } if mode.is_sequential() => checked(&format!("{}1", self.path)),
            _ => checked(&self.path),
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
        matches!(&self.kind, OpKind::Create { mode, .. } if mode.op() == Op::Create2)
    }

    fn request<'a>(&'a self, chroot: &Chroot, without_create2: bool) -> MultiOp<'a> {
        let path = chroot.absolute(&self.path);
        match &self.kind {
            OpKind::Create { data, mode, acl } => {
                let path = mode.absolute(&self.path, chroot);
                let op = (without_create2 && self.is_create2()).then_some(Op::Create);
                MultiOp::Create(mode.request(op, path, Some(data.as_ref()), acl))
            }
            OpKind::Delete { version } => MultiOp::Delete(PathVersion { path, version: *version }),
            OpKind::SetData { data, version } => {
                MultiOp::SetData(request::SetData { path, data: Some(data.as_ref()), version: *version })
            }
            OpKind::Check { version } => MultiOp::Check(PathVersion { path, version: *version }),
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

/// Several reads in one request: add them, then call [`read`](MultiRead::read).
#[derive(Debug, Clone)]
#[must_use = "nothing is read until read"]
pub struct MultiRead<'a> {
    client: &'a Client,
    ops: Vec<(Op, String)>,
}

/// The result of a read of a multiRead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadResult {
    /// Data and Stat from a getData.
    Data(Bytes, Stat),
    /// Names from a getChildren, in no order.
    Children(Vec<String>),
}

impl MultiRead<'_> {
    /// Reads a znode's data and Stat.
    pub fn get_data(mut self, path: &str) -> Self {
        self.ops.push((Op::GetData, path.to_owned()));
        self
    }

    /// Reads the names of a znode's children.
    pub fn get_children(mut self, path: &str) -> Self {
        self.ops.push((Op::GetChildren, path.to_owned()));
        self
    }

    /// Sends the reads. Returns a result or an error for each, in order. A server that does not know multiRead gets
    /// them one by one.
    ///
    /// # Errors
    /// Errors of the whole request: [`Error::ConnectionLoss`] and the like.
    pub fn read(self) -> Operation<Vec<Result<ReadResult>>> {
        if let Some(error) = self.ops.iter().find_map(|(_, path)| checked(path).err()) {
            return Operation::refused(error);
        }
        let (client, ops) = (self.client.clone(), self.ops);
        let ask = move |client: &Client, ops: &[(Op, String)]| {
            let read = |(op, path): &(Op, String)| match op {
                Op::GetChildren => MultiReadOp::GetChildren(client.chroot.absolute(path).into_owned().into()),
                _ => MultiReadOp::GetData(client.chroot.absolute(path).into_owned().into()),
            };
            client.call(&Request::MultiRead { ops: ops.iter().map(read).collect(), broken: false })
        };
        let context = client.context("multiRead", ops.first().map_or("", |(_, path)| path));
        let first = ask(&client, &ops);
        spanned(context.span(), async move {
            let attempt = |call| finish(call, &context, |reply| read_results(reply, &client, &ops));
            match retried(client.retry, attempt(first), || attempt(ask(&client, &ops))).await {
                Err(error) if error.is_unimplemented() => one_by_one(&client, &ops).await,
                read => read,
            }
        })
    }
}

impl IntoFuture for MultiRead<'_> {
    type Output = Result<Vec<Result<ReadResult>>>;
    type IntoFuture = Operation<Vec<Result<ReadResult>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.read()
    }
}

type ReadResults = Vec<Result<ReadResult>>;

fn read_results(
    reply: Reply,
    client: &Client,
    ops: &[(Op, String)],
) -> std::result::Result<ReadResults, ReplyError> {
    let body = reply.ok()?.body;
    let outcomes = read_outcomes(&mut Reader::new(&body))?;
    let read = |(outcome, (op, path)): (OpOutcome<'_>, &(Op, String))| match outcome {
        OpOutcome::GetData(data, stat) => {
            Ok(ReadResult::Data(Bytes::copy_from_slice(data.unwrap_or_default()), stat))
        }
        OpOutcome::GetChildren(names) => Ok(ReadResult::Children(names)),
        OpOutcome::Error(code) => {
            Err(client.context(crate::metrics::name(*op), path).error_context().code(code))
        }
        _ => Err(client.context("multiRead", path).error_context().code(ErrorCode::MarshallingError.code())),
    };
    Ok(outcomes.into_iter().zip(ops).map(read).collect())
}

async fn one_by_one(client: &Client, ops: &[(Op, String)]) -> Result<ReadResults> {
    let mut found = Vec::with_capacity(ops.len());
    for (op, path) in ops {
        let read = match op {
            Op::GetChildren => client.get_children(path).await.map(ReadResult::Children),
            _ => client.get_data(path).await.map(|(data, stat)| ReadResult::Data(data, stat)),
        };
        match read {
            Err(error) if error.code().is_none() => return Err(error),
            read => found.push(read),
        }
    }
    Ok(found)
}

impl Client {
    /// Begins a transaction: operations that are done all together or not at all.
    pub fn multi(&self) -> Multi<'_> {
        Multi { client: self, ops: Vec::new() }
    }

    /// Begins several reads that are sent as one request.
    pub fn multi_read(&self) -> MultiRead<'_> {
        MultiRead { client: self, ops: Vec::new() }
    }
}
