//! Creates znodes: the options of a create.

mod choice;
mod mode;
mod plan;

pub(crate) use choice::ModeChoice;
pub use mode::CreateMode;
pub(crate) use plan::{Plan, SentCreate};

use crate::{
    client::Client,
    error::{Error, Result},
    operation::{Direct, Operation, finish, spanned},
    protected::{self, ProtectionId},
    recipe_tag::RecipeTag,
    shared::Create2,
    writes::packed,
};
use ostler_proto::{acl::Acl, op::Op, path, request::Request, stat::Stat};
use plan::created;
use std::{borrow::Cow, future::IntoFuture, time::Duration};

/// A znode that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// The znode's path. Its name includes the digits of a sequential znode and the id of a protected one.
    pub path: String,
    /// The znode's Stat. Its `czxid` grows from creation to creation, so it serves as a fencing token.
    pub stat: Stat,
}

impl Created {
    /// The znode's name, the last part of its path.
    pub fn name(&self) -> &str {
        path::name(&self.path)
    }
}

/// A create: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is created until it is awaited"]
pub struct Create<'a> {
    client: &'a Client,
    path: &'a str,
    data: Option<Cow<'a, [u8]>>,
    mode: ModeChoice,
    acl: Cow<'a, [Acl]>,
    parents_acl: Cow<'a, [Acl]>,
    protection: Option<ProtectionId>,
    parents: Option<CreateMode>,
    idempotent: bool,
    or_set_data: bool,
    compressed: bool,
}

impl<'a> Create<'a> {
    /// The kind of the znode; persistent by default. It replaces what [`ephemeral`](Create::ephemeral),
    /// [`sequential`](Create::sequential), [`container`](Create::container) and [`ttl`](Create::ttl) have set.
    pub fn mode(mut self, mode: CreateMode) -> Self {
        self.mode = ModeChoice::mode(mode);
        self
    }

    /// Makes the znode ephemeral: it is deleted with its session. Goes together with [`sequential`](Create::sequential).
    pub fn ephemeral(mut self) -> Self {
        self.mode = self.mode.ephemeral();
        self
    }

    /// [`ephemeral`](Create::ephemeral) and [`sequential`](Create::sequential).
    pub fn ephemeral_sequential(self) -> Self {
        self.ephemeral().sequential()
    }

    /// Makes the znode sequential: ten digits of the parent's counter are appended to its name. Goes together with
    /// [`ephemeral`](Create::ephemeral) or [`ttl`](Create::ttl).
    pub fn sequential(mut self) -> Self {
        self.mode = self.mode.sequential();
        self
    }

    /// Makes the znode a container: [`CreateMode::Container`]. It goes together with none of the other kinds.
    pub fn container(mut self) -> Self {
        self.mode = self.mode.container();
        self
    }

    /// Gives the znode a TTL: [`CreateMode::PersistentWithTtl`]. Goes together with [`sequential`](Create::sequential).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.mode = self.mode.ttl(ttl);
        self
    }

    /// The znode's ACL. The default is [`ClientBuilder::default_acl`](crate::ClientBuilder::default_acl).
    pub fn acl(mut self, acl: impl Into<Cow<'a, [Acl]>>) -> Self {
        self.acl = acl.into();
        self
    }

    /// Creates a znode without data, which is not the same as empty data.
    pub fn without_data(mut self) -> Self {
        self.data = None;
        self
    }

    /// Replaces the data by bytes that the create owns, such as a `Vec`, a `String` or [`Bytes`](crate::Bytes): for a
    /// create that outlives what they were made from.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = Some(Cow::Owned(data.into()));
        self
    }

    /// Compresses the data when it is sent, as Curator's `compressed`. See [`gzip`](crate::gzip). Needs the feature `gzip`.
    #[cfg(feature = "gzip")]
    pub fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// Puts an id into the name, as Curator's protection does (`_c_` id `-` name). If the connection is lost before the
    /// reply, the client waits for the next connection, looks for a znode with the id, and creates one only if there is
    /// none. If the future is dropped, or the retry policy gives up, a znode that was created is deleted in the
    /// background.
    pub fn protected(self) -> Self {
        let id = self.client.shared().new_id();
        self.protected_as(id)
    }

    /// [`protected`](Create::protected) with a tag in the id: a recipe of Ostler creates the znode.
    #[doc(hidden)]
    pub fn protected_with_tag(self, tag: RecipeTag) -> Self {
        let id = self.client.shared().new_id().with_tag(tag);
        self.protected_as(id)
    }

    /// [`protected`](Create::protected) with an id that the caller gives.
    pub fn protected_as(mut self, id: ProtectionId) -> Self {
        self.protection = Some(id);
        self
    }

    /// Creates missing parents as persistent znodes. Their ACL is the client's
    /// [default](crate::ClientBuilder::default_acl), unless [`parents_acl`](Create::parents_acl) sets another one.
    pub fn creating_parents(mut self) -> Self {
        self.parents = Some(CreateMode::Persistent);
        self
    }

    /// Creates missing parents as containers, which the server deletes some time after their last child. At servers
    /// that know no containers they are persistent.
    pub fn creating_container_parents(mut self) -> Self {
        self.parents = Some(CreateMode::Container);
        self
    }

    /// The ACL of the parents that this creates. If it does not allow this client to create below them, the create
    /// fails. It has no effect without [`creating_parents`](Create::creating_parents) or
    /// [`creating_container_parents`](Create::creating_container_parents).
    pub fn parents_acl(mut self, acl: impl Into<Cow<'a, [Acl]>>) -> Self {
        self.parents_acl = acl.into();
        self
    }

    /// Tries again after connection loss. A znode that then exists with the same data counts as created by this. Has no
    /// effect on sequential znodes, which need [`protected`](Create::protected).
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// If the znode exists already, sets its data instead, and returns the Stat after that. That setData has no version
    /// and is repeated after connection loss, so it can overwrite what another client has set meanwhile: see
    /// [`SetData::idempotent`](crate::SetData::idempotent).
    pub fn or_set_data(mut self) -> Self {
        self.or_set_data = true;
        self
    }

    /// Hands the operation to the client now; [`IntoFuture`] does the same.
    pub fn send(mut self) -> Operation<Created> {
        let mode = match self.checked_mode() {
            Ok(mode) => mode,
            Err(error) => return Operation::refused(error),
        };
        self.data = self.data.take().map(|data| packed(data, self.compressed));
        let plan = Plan {
            client: self.client.clone(),
            context: self.client.context("create", self.path),
            data: None,
            mode,
            acl: Vec::new(),
            parents: self.parents,
            parents_acl: self.parents.map(|_| self.parents_acl.to_vec()).unwrap_or_default(),
            idempotent: self.idempotent && !mode.is_sequential(),
            or_set_data: self.or_set_data,
        };
        let simple =
            self.protection.is_none() && self.parents.is_none() && !plan.idempotent && !plan.or_set_data;
        if simple && self.client.shared().create2() != Create2::Unknown {
            return self.send_simple(plan);
        }
        let plan = plan.with(self.data.as_deref(), &self.acl);
        if let Some(id) = self.protection {
            return protected::create(plan, id);
        }
        let first = plan.ask(self.path);
        spanned(plan.context.span(), async move { plan.run(first).await })
    }

    /// # Errors
    /// Those of a create that must not be sent.
    fn checked_mode(&self) -> Result<CreateMode> {
        let mode = self.mode.checked(self.path)?;
        checked_for(self.path, mode)?;
        Ok(mode)
    }

    /// Sends one request. As long as it is unknown whether the server knows create2, the plan is kept for a second
    /// try without it.
    fn send_simple(self, plan: Plan) -> Operation<Created> {
        let absolute = plan.mode.absolute(self.path, &self.client.chroot);
        let request = Request::Create(plan.mode.request(None, absolute, self.data.as_deref(), &self.acl));
        let (call, span) = (self.client.call(&request), plan.context.span());
        if self.client.shared().create2() == Create2::Known || plan.mode.op() != Op::Create2 {
            let Plan { client, context, .. } = plan;
            return Operation::direct(Direct { call, client, context, decode: created, repeat: None, span });
        }
        let plan = plan.with(self.data.as_deref(), &self.acl);
        spanned(span, async move {
            let made = finish(call, &plan.context, |reply| created(reply, &plan.client.chroot)).await;
            plan.or_by_create(made, &plan.context.path).await
        })
    }
}

impl IntoFuture for Create<'_> {
    type Output = Result<Created>;
    type IntoFuture = Operation<Created>;

    fn into_future(self) -> Operation<Created> {
        self.send()
    }
}

/// A sequential znode's name may be empty before the digits are appended.
fn checked_for(path: &str, mode: CreateMode) -> Result<()> {
    let whole = if mode.is_sequential() { Cow::Owned(format!("{path}1")) } else { path.into() };
    crate::client::checked(&whole).map_err(|_| Error::BadPath { path: path.into() })
}

impl Client {
    /// Creates a znode. The data is borrowed; [`data`](Create::data) takes bytes that the create owns.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// client.create("/config", b"v1").await?;
    /// let mine = client.create("/election/n-", b"me").ephemeral_sequential().protected().creating_parents().await?;
    /// assert!(mine.path.starts_with("/election/_c_") && mine.path.ends_with("-n-0000000000"));
    /// let token = mine.stat.czxid;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NodeExists`; `NoNode` if the parent is missing; `NoChildrenForEphemerals`; `NoAuth` without CREATE on the
    /// parent; `InvalidAcl`. [`Error::ModeConflict`]: no znode has all the options. [`Error::ConnectionLoss`], unless it is [`protected`](Create::protected) or
    /// [`idempotent`](Create::idempotent): the znode may be created or not.
    pub fn create<'a>(&'a self, path: &'a str, data: &'a (impl AsRef<[u8]> + ?Sized)) -> Create<'a> {
        Create {
            client: self,
            path,
            data: Some(Cow::Borrowed(data.as_ref())),
            mode: ModeChoice::default(),
            acl: Cow::Borrowed(&self.handle.default_acl),
            parents_acl: Cow::Borrowed(&self.handle.default_acl),
            protection: None,
            parents: None,
            idempotent: false,
            or_set_data: false,
            compressed: false,
        }
    }
}
