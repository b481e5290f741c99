//! Creating znodes.

use crate::{
    background,
    client::Client,
    error::{Error, Result},
    operation::{Operation, Topic, Trouble, finish, spanned},
    protected::{self, ProtectionId},
};
use bytes::Bytes;
use ostler_client_core::ConnectionState;
use ostler_proto::{
    acl::{Acl, Perms, RawAcl},
    error::ErrorCode,
    jute::{JuteError, Reader},
    op::Op,
    path,
    request::{self, Request},
    stat::Stat,
};
use std::{borrow::Cow, future::IntoFuture, time::Duration};
use tokio::time::{Instant, sleep};

/// What kind of znode to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CreateMode {
    /// Stays until it is deleted.
    #[default]
    Persistent,
    /// Stays until it is deleted; ten digits of the parent's counter are appended to its name.
    PersistentSequential,
    /// Goes with its session.
    Ephemeral,
    /// Goes with its session; ten digits of the parent's counter are appended to its name.
    EphemeralSequential,
    /// Is deleted some time after its last child.
    Container,
    /// Is deleted when it has been unchanged and childless for so long, which is 1 ms to about 34 years. Servers
    /// do so only where `extendedTypesEnabled` is set.
    PersistentWithTtl(Duration),
    /// Likewise, with ten digits appended to its name.
    PersistentSequentialWithTtl(Duration),
}

impl CreateMode {
    /// Whether digits are appended to the name.
    pub fn is_sequential(self) -> bool {
        use CreateMode::{EphemeralSequential, PersistentSequential, PersistentSequentialWithTtl};
        matches!(self, PersistentSequential | EphemeralSequential | PersistentSequentialWithTtl(_))
    }

    /// Whether it goes with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }

    fn flags(self) -> i32 {
        match self {
            CreateMode::Persistent => 0,
            CreateMode::Ephemeral => 1,
            CreateMode::PersistentSequential => 2,
            CreateMode::EphemeralSequential => 3,
            CreateMode::Container => 4,
            CreateMode::PersistentWithTtl(_) => 5,
            CreateMode::PersistentSequentialWithTtl(_) => 6,
        }
    }

    fn ttl_ms(self) -> i64 {
        match self {
            CreateMode::PersistentWithTtl(ttl) | CreateMode::PersistentSequentialWithTtl(ttl) => {
                i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
            }
            _ => -1,
        }
    }

    /// The operation that makes it and gives its Stat.
    fn op(self) -> Op {
        match self {
            CreateMode::Container => Op::CreateContainer,
            CreateMode::PersistentWithTtl(_) | CreateMode::PersistentSequentialWithTtl(_) => Op::CreateTtl,
            _ => Op::Create2,
        }
    }

    /// Its request, with an absolute path.
    pub(crate) fn request<'a>(
        self,
        op: Option<Op>,
        path: Cow<'a, str>,
        data: Option<&'a [u8]>,
        acl: &'a [Acl],
    ) -> request::Create<'a> {
        let acl = acl.iter().map(|entry| RawAcl {
            perms: entry.perms,
            scheme: Some(entry.id.scheme.as_str().into()),
            id: Some(entry.id.id.as_str().into()),
        });
        let op = op.unwrap_or(self.op());
        request::Create {
            op,
            path,
            data,
            acl: Some(acl.collect()),
            flags: self.flags(),
            ttl_ms: self.ttl_ms(),
        }
    }
}

/// A znode that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// Its path, with what the server and protection have added to the name.
    pub path: String,
    /// Its Stat; `czxid` only grows, so it serves as a fencing token.
    pub stat: Stat,
}

impl Created {
    /// The last part of its path.
    pub fn name(&self) -> &str {
        path::name(&self.path)
    }
}

/// A create: say how, then await it.
#[derive(Debug)]
#[must_use = "nothing is created until it is awaited"]
pub struct Create<'a> {
    client: &'a Client,
    path: &'a str,
    data: Option<&'a [u8]>,
    mode: CreateMode,
    acl: Cow<'a, [Acl]>,
    protection: Option<ProtectionId>,
    parents: Option<CreateMode>,
    idempotent: bool,
    or_set_data: bool,
}

impl<'a> Create<'a> {
    /// What kind of znode; persistent unless said.
    pub fn mode(mut self, mode: CreateMode) -> Self {
        self.mode = mode;
        self
    }

    /// [`CreateMode::Ephemeral`].
    pub fn ephemeral(self) -> Self {
        self.mode(CreateMode::Ephemeral)
    }

    /// [`CreateMode::EphemeralSequential`].
    pub fn ephemeral_sequential(self) -> Self {
        self.mode(CreateMode::EphemeralSequential)
    }

    /// [`CreateMode::PersistentSequential`].
    pub fn sequential(self) -> Self {
        self.mode(CreateMode::PersistentSequential)
    }

    /// [`CreateMode::Container`].
    pub fn container(self) -> Self {
        self.mode(CreateMode::Container)
    }

    /// [`CreateMode::PersistentWithTtl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        self.mode(CreateMode::PersistentWithTtl(ttl))
    }

    /// Who may do what; everybody everything unless said.
    pub fn acl(mut self, acl: impl Into<Cow<'a, [Acl]>>) -> Self {
        self.acl = acl.into();
        self
    }

    /// No data at all, which is not the same as empty data.
    pub fn without_data(mut self) -> Self {
        self.data = None;
        self
    }

    /// Puts an id into the name, as Curator's protection does (`_c_` id `-` name). So, if the connection is lost
    /// before the reply, the znode is found again: this waits for the connection and looks for it, and creates it
    /// only if it is not there. If the future is dropped, or the retry policy gives up, whatever was created is
    /// deleted in the background.
    pub fn protected(self) -> Self {
        self.protected_as(ProtectionId::new())
    }

    /// [`protected`](Create::protected), with an id that the caller knows.
    pub fn protected_as(mut self, id: ProtectionId) -> Self {
        self.protection = Some(id);
        self
    }

    /// Creates the znodes above as well, persistent ones, if they are missing.
    pub fn creating_parents(mut self) -> Self {
        self.parents = Some(CreateMode::Persistent);
        self
    }

    /// Creates the znodes above as well, as containers, if they are missing: the server deletes them when they are
    /// empty. Persistent ones where the server knows no containers.
    pub fn creating_container_parents(mut self) -> Self {
        self.parents = Some(CreateMode::Container);
        self
    }

    /// Tries again after connection loss, and takes a znode that is then there with the same data for its own.
    /// Not for sequential ones, which need protection.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// If it is there already, sets its data; the Stat is the one after that.
    pub fn or_set_data(mut self) -> Self {
        self.or_set_data = true;
        self
    }

    /// Hands it to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<Created> {
        if let Err(error) = checked_for(self.path, self.mode) {
            return Operation::refused(error);
        }
        let plan = Plan {
            client: self.client.clone(),
            topic: self.client.topic("create", self.path),
            data: None,
            mode: self.mode,
            acl: Vec::new(),
            parents: self.parents,
            idempotent: self.idempotent && !self.mode.is_sequential(),
            or_set_data: self.or_set_data,
        };
        let simple =
            self.protection.is_none() && self.parents.is_none() && !plan.idempotent && !plan.or_set_data;
        if simple && self.client.shared().knows_create2() {
            let absolute = self.client.chroot.absolute(self.path);
            let call =
                self.client.call(&Request::Create(self.mode.request(None, absolute, self.data, &self.acl)));
            // Kept for the case that the server knows no create2.
            let plan = plan.with(self.data, &self.acl);
            return spanned(plan.topic.span(), async move {
                let made = finish(call, &plan.topic, |reply| created(&plan.client, &reply.ok()?.body)).await;
                plan.or_by_create(made).await
            });
        }
        let plan = plan.with(self.data, &self.acl);
        match self.protection {
            Some(id) => protected::create(plan, id),
            None => spanned(plan.topic.span(), async move { plan.run().await }),
        }
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

/// A create with everything that it needs to be tried again.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) client: Client,
    pub(crate) topic: Topic,
    data: Option<Bytes>,
    pub(crate) mode: CreateMode,
    acl: Vec<Acl>,
    parents: Option<CreateMode>,
    idempotent: bool,
    or_set_data: bool,
}

/// A body of path and Stat.
fn created(client: &Client, body: &[u8]) -> std::result::Result<Created, Trouble> {
    let mut r = Reader::new(body);
    let path = r.stored_string()?.ok_or(JuteError::Null)?;
    Ok(Created { path: client.chroot.relative(&path).to_owned(), stat: Stat::read(&mut r)? })
}

/// How often missing parents are made: containers can go again before the child is there.
const PARENT_TRIES: u32 = 16;

impl Plan {
    fn with(mut self, data: Option<&[u8]>, acl: &[Acl]) -> Plan {
        self.data = data.map(Bytes::copy_from_slice);
        self.acl = acl.to_vec();
        self
    }

    fn boxed(self) -> Operation<Created> {
        Operation::new(async move { self.run().await })
    }

    /// Creates, with the parents if that was asked for. Connection trouble is tried again if that does no harm.
    async fn run(&self) -> Result<Created> {
        let (begun, mut tries, mut unknown) = (Instant::now(), 0, false);
        loop {
            let error = match self.with_parents(&self.topic.path).await {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            if error.is_node_exists() {
                match self.on_exists(unknown).await? {
                    Some(created) => return Ok(created),
                    None if self.or_set_data => continue,
                    None => return Err(error),
                }
            }
            let again = error.is_connection_trouble() && (self.idempotent || !error.is_outcome_unknown());
            unknown |= error.is_outcome_unknown();
            tries += 1;
            let wait = self.client.retry.wait(tries, begun.elapsed(), begun.elapsed().subsec_nanos().into());
            match wait {
                Some(wait) if again => sleep(wait).await,
                _ => return Err(error),
            }
        }
    }

    /// It is there: by somebody else, or by an earlier try of our own. `None` if it is not ours, or gone.
    async fn on_exists(&self, tried: bool) -> Result<Option<Created>> {
        let path = self.topic.path.to_string();
        let data = self.data.clone().unwrap_or_default();
        if self.or_set_data {
            return match self.client.set_data(&path, &data).idempotent().await {
                Ok(stat) => Ok(Some(Created { path, stat })),
                Err(error) if error.is_no_node() => Ok(None),
                Err(error) => Err(error),
            };
        }
        if !(self.idempotent && tried) {
            return Ok(None);
        }
        match self.client.get_data(&path).await {
            Ok((found, stat)) if found == data && self.is_ours(&stat) => Ok(Some(Created { path, stat })),
            Ok(_) => Ok(None),
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a znode can be the one that this made: an ephemeral one must belong to the present session.
    pub(crate) fn is_ours(&self, stat: &Stat) -> bool {
        !self.mode.is_ephemeral()
            || self.client.session_id().is_some_and(|session| session.0 == stat.ephemeral_owner)
    }

    /// One try at `path`, with the parents if they are missing and wanted.
    pub(crate) async fn with_parents(&self, path: &str) -> Result<Created> {
        let mut tries = 0;
        loop {
            let missing = match self.once(path).await {
                Err(error) if error.is_no_node() && tries < PARENT_TRIES => error,
                result => return result,
            };
            let Some(mode) = self.parents else { return Err(missing) };
            tries += 1;
            match self.make_parents(path, mode).await {
                // One of them has gone while the next one below it was to be made.
                Err(error) if error.is_no_node() => {}
                made => made?,
            }
        }
    }

    async fn make_parents(&self, path: &str, mode: CreateMode) -> Result<()> {
        let absolute = self.client.chroot.absolute(path).into_owned();
        let client = self.client.unrooted();
        let mut above: Vec<&str> = path::ancestors(&absolute).filter(|path| *path != "/").collect();
        above.reverse();
        for parent in above {
            make_parent(&client, parent, mode, &self.acl).await?;
        }
        Ok(())
    }

    /// One try at `path`.
    async fn once(&self, path: &str) -> Result<Created> {
        if self.mode.op() == Op::Create2 && !self.client.shared().knows_create2() {
            return self.by_create(path).await;
        }
        let topic = Topic { path: path.into(), ..self.topic.clone() };
        let call = self.ask(None, path);
        let made = finish(call, &topic, |reply| created(&self.client, &reply.ok()?.body)).await;
        match made {
            Err(error) if error.is_unimplemented() && self.mode.op() == Op::Create2 => {
                self.client.shared().forget_create2();
                self.by_create(path).await
            }
            made => made,
        }
    }

    async fn or_by_create(&self, made: Result<Created>) -> Result<Created> {
        match made {
            Err(error) if error.is_unimplemented() && self.mode.op() == Op::Create2 => {
                self.client.shared().forget_create2();
                self.by_create(&self.topic.path).await
            }
            made => made,
        }
    }

    /// For servers that know no create2: create, then exists for the Stat.
    async fn by_create(&self, path: &str) -> Result<Created> {
        let topic = Topic { path: path.into(), ..self.topic.clone() };
        let call = self.ask(Some(Op::Create), path);
        let made = finish(call, &topic, |reply| {
            let body = reply.ok()?.body;
            let path = Reader::new(&body).stored_string()?.ok_or(JuteError::Null)?;
            Ok(self.client.chroot.relative(&path).to_owned())
        });
        let path = made.await?;
        match self.client.exists(&path).await? {
            Some(stat) => Ok(Created { path, stat }),
            // Deleted by somebody at once.
            None => Err(topic.about().code(ErrorCode::NoNode.code())),
        }
    }

    fn ask(&self, op: Option<Op>, path: &str) -> crate::operation::Call {
        let absolute = self.client.chroot.absolute(path);
        self.client.call(&Request::Create(self.mode.request(op, absolute, self.data.as_deref(), &self.acl)))
    }

    /// Deletes what this made, until it is gone.
    pub(crate) fn undo(&self, made: Created) {
        background::delete(&self.client, made.path);
    }
}

/// Makes one znode above, unless it is there.
async fn make_parent(client: &Client, path: &str, mode: CreateMode, acl: &[Acl]) -> Result<()> {
    let plan = |mode| Plan {
        client: client.clone(),
        topic: client.topic("create", path),
        data: Some(Bytes::new()),
        mode,
        acl: acl.to_vec(),
        parents: None,
        idempotent: true,
        or_set_data: false,
    };
    let made = match plan(mode).boxed().await {
        Err(error) if error.is_unimplemented() && mode == CreateMode::Container => {
            plan(CreateMode::Persistent).boxed().await
        }
        made => made,
    };
    match made {
        Err(error) if error.is_node_exists() => Ok(()),
        // Whoever may not create it can still be allowed to create below it.
        Err(error) if error.code() == Some(ErrorCode::NoAuth) => match client.exists(path).await? {
            Some(_) => Ok(()),
            None => Err(error),
        },
        made => made.map(drop),
    }
}

impl Client {
    /// Creates a znode.
    ///
    /// ```no_run
    /// # async fn example(client: ostler_client::Client) -> ostler_client::Result<()> {
    /// client.create("/config", b"v1").await?;
    /// let mine = client.create("/election/n-", b"me").ephemeral_sequential().protected().creating_parents().await?;
    /// println!("{} with token {}", mine.path, mine.stat.czxid);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NodeExists`; `NoNode` if the parent is missing; `NoChildrenForEphemerals`; `NoAuth` without CREATE on the
    /// parent; `InvalidAcl`; [`Error::ConnectionLoss`], after which it may be there or not, unless it is
    /// [`protected`](Create::protected) or [`idempotent`](Create::idempotent).
    pub fn create<'a>(&'a self, path: &'a str, data: &'a (impl AsRef<[u8]> + ?Sized)) -> Create<'a> {
        Create {
            client: self,
            path,
            data: Some(data.as_ref()),
            mode: CreateMode::Persistent,
            acl: Cow::Owned(vec![Acl::world(Perms::ALL)]),
            protection: None,
            parents: None,
            idempotent: false,
            or_set_data: false,
        }
    }

    /// Whether requests reach a server now.
    pub fn is_connected(&self) -> bool {
        let state = self.state().state;
        state.is_connected() && state != ConnectionState::Lost
    }
}
