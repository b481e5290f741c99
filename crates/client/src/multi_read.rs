//! MultiRead: several reads in one request.

use crate::{
    client::{Client, checked},
    error::Result,
    operation::{Operation, ReplyError, finish, retried, spanned},
    outcome::Reply,
};
use bytes::Bytes;
use ostler_proto::{
    error::ErrorCode,
    jute::Reader,
    op::Op,
    reply::{OpOutcome, read_outcomes},
    request::{MultiReadOp, Request},
    stat::Stat,
};
use std::future::IntoFuture;

/// Several reads in one request: add them, then await it.
///
/// ```
/// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
/// # let server = server::TestServer::start();
/// # let client = server.client().await;
/// # client.create("/config", b"v1").await?;
/// use ostler_client::ReadResult;
///
/// let found = client.multi_read().get_data("/config").get_children("/missing").await?;
/// assert!(matches!(&found[0], Ok(ReadResult::Data(data, _)) if data == "v1"));
/// assert!(found[1].as_ref().is_err_and(|error| error.is_no_node()));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is read until it is awaited"]
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

    /// Hands the reads to the client now; [`IntoFuture`] does the same. Returns a result or an error for each, in order.
    /// A server that does not know multiRead gets them one by one.
    ///
    /// # Errors
    /// Errors of the whole request: [`Error::ConnectionLoss`](crate::Error::ConnectionLoss) and the like.
    pub fn send(self) -> Operation<Vec<Result<ReadResult>>> {
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
            match retried(&client, attempt(first), || attempt(ask(&client, &ops))).await {
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
        self.send()
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
            Err(client.context(crate::operation_name::name(*op), path).error_context().code(code))
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
    /// Begins several reads that are sent as one request.
    pub fn multi_read(&self) -> MultiRead<'_> {
        MultiRead { client: self, ops: Vec::new() }
    }
}
