//! Deletes znodes: the options of a delete, and its retries.

use crate::{
    background,
    client::{Client, checked},
    error::{Error, Result},
    operation::{Call, Direct, Operation, OperationContext, finish, spanned},
    outcome::{Outcome, Reply},
    paths::join,
    retry::{RetryPolicy, Tries},
    tracing::{self, Instrument, Span},
    version::Version,
};
use ostler_client_core::Chroot;
use ostler_proto::request::{PathVersion, Request};
use std::future::IntoFuture;

/// A delete: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is deleted until it is awaited"]
pub struct Delete<'a> {
    client: &'a Client,
    path: &'a str,
    version: Version,
    idempotent: bool,
    quietly: bool,
    children: bool,
    guaranteed: bool,
}

impl Delete<'_> {
    /// Deletes the znode only if it has this version; any version by default.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Tries again after connection loss. If the znode is then gone, the delete counts as done. If another client has
    /// created the znode again meanwhile, that znode is deleted as well, if its version fits.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Succeeds if the znode does not exist.
    pub fn quietly(mut self) -> Self {
        self.quietly = true;
        self
    }

    /// If the znode has children, deletes everything below it first.
    pub fn deleting_children(mut self) -> Self {
        self.children = true;
        self
    }

    /// Goes on in the background until the znode is deleted, with the same options, in these cases: connection trouble
    /// lasts longer than the retry policy allows, the server is read-only, the session expires before the request is
    /// sent, or the future is dropped. A delete through a [`Session`](crate::Session) ends with that session. A refusal by
    /// the server (`NoAuth`, `NotEmpty`, `BadVersion`) ends it as well; in the background it is only logged, with the
    /// feature `tracing`.
    pub fn guaranteed(mut self) -> Self {
        self.guaranteed = true;
        self
    }

    /// Deletes in the background until the znode is gone, for callers that cannot wait (`Drop`). The request is sent
    /// before any later request of this client. Succeeds if the znode does not exist. A delete through a
    /// [`Session`](crate::Session) ends with that session. A refusal by the server (`NoAuth`, `NotEmpty`, `BadVersion`)
    /// ends it as well, and is only logged, with the feature `tracing`.
    pub fn in_background(self) {
        match self.check() {
            Ok(()) => background::delete(self.plan()),
            Err(error) => tracing::warn!(%error, "a znode is not deleted"),
        }
    }

    /// Hands the operation to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<()> {
        if let Err(error) = self.check() {
            return Operation::refused(error);
        }
        let plan = self.plan();
        let (call, span) = (plan.ask(), plan.context.span());
        if !(self.idempotent || self.quietly || self.children || self.guaranteed) {
            let DeletePlan { client, context, .. } = plan;
            let decode = |reply: Reply, _: &Chroot| reply.ok().map(drop);
            return Operation::direct(Direct { call, client, context, decode, repeat: None, span });
        }
        let again = self.idempotent || self.guaranteed;
        let mut tries = if again { Tries::of(self.client) } else { Tries::new(RetryPolicy::none()) };
        if !self.guaranteed {
            return spanned(span, async move { plan.run(call, &mut tries).await });
        }
        let work = async move {
            let result = plan.run(call, &mut tries).await;
            let goes_on = |error: &Error| {
                error.last_try().is_outcome_unknown() || background::may_succeed_later(&plan.client, error)
            };
            if result.as_ref().is_err_and(goes_on) {
                background::continue_deleting(plan, tries.may_be_done);
            }
            result
        };
        Operation::new(background::run_to_end(self.client, work.instrument(span)))
    }

    /// # Errors
    /// Those of a delete that must not be sent.
    fn check(&self) -> Result<()> {
        checked(self.path)?;
        match self.version.is_possible() {
            true => Ok(()),
            false => Err(self.client.context("delete", self.path).bad_version()),
        }
    }

    fn plan(&self) -> DeletePlan {
        DeletePlan {
            client: self.client.clone(),
            context: self.client.context("delete", self.path),
            version: self.version,
            quietly: self.quietly,
            children: self.children,
        }
    }
}

impl IntoFuture for Delete<'_> {
    type Output = Result<()>;
    type IntoFuture = Operation<()>;

    fn into_future(self) -> Operation<()> {
        self.send()
    }
}

/// A delete with everything that is needed to try it again.
pub(crate) struct DeletePlan {
    pub(crate) client: Client,
    pub(crate) context: OperationContext,
    version: Version,
    quietly: bool,
    children: bool,
}

impl DeletePlan {
    fn ask(&self) -> Call {
        let path = self.client.chroot.absolute(&self.context.path);
        self.client.call(&Request::Delete(PathVersion { path, version: self.version.number() }))
    }

    /// A try without a waiting caller or task; `act` is called with the outcome.
    pub(crate) fn send_detached(self, act: impl FnOnce(DeletePlan, Outcome) + Send + 'static) {
        let (client, version) = (self.client.clone(), self.version.number());
        let path = client.chroot.absolute(&self.context.path).into_owned().into();
        client.call_detached(&Request::Delete(PathVersion { path, version }), move |outcome| {
            act(self, outcome)
        });
    }

    async fn run(&self, first: Call, tries: &mut Tries) -> Result<()> {
        let mut call = first;
        loop {
            match finish(call, &self.context, |reply| reply.ok().map(drop)).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_no_node() && (self.quietly || tries.may_be_done) => return Ok(()),
                Err(error) if error.is_not_empty() && self.children => {
                    let below = delete_below(&self.client, &self.context.path).await;
                    below.map_err(|error| tries.ended(error))?;
                }
                Err(error) => tries.wait(error).await?,
            }
            call = self.ask();
        }
    }

    /// The same delete for the background: it succeeds if the znode does not exist, and the caller does further tries.
    pub(crate) fn quietly(self) -> DeletePlan {
        DeletePlan { client: self.client.with_retry(RetryPolicy::none()), quietly: true, ..self }
    }

    /// Waits for the try that is under way, or makes another one. If an earlier try had no reply and the znode has
    /// another version now, the delete is done: the earlier try has deleted the znode and another client has created it
    /// again, or another client has changed it, and then it must stay.
    pub(crate) async fn try_again(&self, tries: &mut Tries, made: Option<(Call, Span)>) -> Result<()> {
        let (call, span) = made.unwrap_or_else(|| (self.ask(), self.context.span()));
        match self.run(call, tries).instrument(span).await {
            Err(error) if error.is_bad_version() && tries.may_be_done => Ok(()),
            result => result,
        }
    }
}

/// Deletes everything below `path`, the deepest first. The next round finds znodes that are created meanwhile.
async fn delete_below(client: &Client, path: &str) -> Result<()> {
    let mut below = Vec::new();
    let mut unread = vec![path.to_owned()];
    while let Some(parent) = unread.pop() {
        let names = match client.get_children(&parent).await {
            Err(error) if error.is_no_node() => continue,
            names => names?,
        };
        for name in names {
            let child = join(&parent, &name);
            unread.push(child.clone());
            below.push(child);
        }
    }
    for path in below.iter().rev() {
        match client.delete(path).idempotent().quietly().await {
            // Another client has created a child; the next round deletes it.
            Err(error) if error.is_not_empty() => {}
            result => result?,
        }
    }
    Ok(())
}

impl Client {
    /// Deletes a znode.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// # client.create("/app/config", b"").creating_parents().await?;
    /// use ostler_client::Version;
    ///
    /// client.delete("/app/config").version(Version::Exactly(0)).await?;
    /// client.delete("/app").quietly().deleting_children().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoNode`; `NotEmpty`; `BadVersion`; `NoAuth` without DELETE on the parent.
    /// [`Error::ConnectionLoss`](crate::Error::ConnectionLoss), unless it is [`idempotent`](Delete::idempotent) or
    /// [`guaranteed`](Delete::guaranteed): the znode may be deleted or not.
    pub fn delete<'a>(&'a self, path: &'a str) -> Delete<'a> {
        Delete {
            client: self,
            path,
            version: Version::Any,
            idempotent: false,
            quietly: false,
            children: false,
            guaranteed: false,
        }
    }
}
