//! A create carried out: tried again, with its parents, on servers that know create2 and on others.

use super::{CreateMode, Created};
use crate::{
    client::Client,
    error::{Error, Result},
    operation::{Call, Operation, OperationContext, ReplyError, finish},
    outcome::Reply,
    retry::Tries,
    shared::Create2,
};
use bytes::Bytes;
use ostler_client_core::Chroot;
use ostler_proto::{
    acl::Acl,
    error::ErrorCode,
    jute::{JuteError, Reader},
    op::Op,
    path,
    request::Request,
    stat::Stat,
};

/// A create with everything that it needs to be tried again.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) client: Client,
    pub(crate) context: OperationContext,
    pub(super) data: Option<Bytes>,
    pub(crate) mode: CreateMode,
    pub(super) acl: Vec<Acl>,
    pub(super) parents: Option<CreateMode>,
    pub(super) parents_acl: Vec<Acl>,
    pub(super) idempotent: bool,
    pub(super) or_set_data: bool,
}

/// A create request under way.
pub(crate) struct SentCreate {
    call: Call,
    /// Sent as `create`, which every server knows, instead of `create2`.
    without_create2: bool,
}

/// Reads a reply's body: path and Stat.
pub(super) fn created(reply: Reply, chroot: &Chroot) -> std::result::Result<Created, ReplyError> {
    let body = reply.ok()?.body;
    let mut r = Reader::new(&body);
    let path = r.stored_string()?.ok_or(JuteError::Null)?;
    Ok(Created { path: chroot.relative(&path).to_owned(), stat: Stat::read(&mut r)? })
}

/// How often missing parents are created. A container may be deleted again before its child is created.
const PARENT_TRIES: u32 = 16;

impl Plan {
    pub(super) fn with(mut self, data: Option<&[u8]>, acl: &[Acl]) -> Plan {
        self.data = data.map(Bytes::copy_from_slice);
        self.acl = acl.to_vec();
        self
    }

    fn boxed(self) -> Operation<Created> {
        let first = self.ask(&self.context.path);
        Operation::new(async move { self.run(first).await })
    }

    /// Creates the znode, and its parents if wanted. Tries again after connection trouble if a second try does no harm.
    pub(super) async fn run(&self, first: SentCreate) -> Result<Created> {
        let mut tries = Tries::of(&self.client);
        let mut sent = first;
        loop {
            let error = match self.with_parents(&self.context.path, sent).await {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            if error.is_node_exists() {
                match self.on_exists(tries.may_be_done).await.map_err(|error| tries.ended(error))? {
                    Some(created) => return Ok(created),
                    None if self.or_set_data => {
                        sent = self.ask(&self.context.path);
                        continue;
                    }
                    None => return Err(tries.ended(error)),
                }
            }
            if error.is_outcome_unknown() && !self.idempotent {
                return Err(error);
            }
            tries.wait(error).await?;
            sent = self.ask(&self.context.path);
        }
    }

    /// The znode exists: an earlier try or another client has created it. Returns it if it counts as created by this
    /// operation; `None` if it is another client's, or deleted meanwhile. `tried`: an earlier try may have been done.
    async fn on_exists(&self, tried: bool) -> Result<Option<Created>> {
        let path = self.context.path.to_string();
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

    /// Whether this plan can have created the znode: an ephemeral one must belong to the present session.
    pub(crate) fn is_ours(&self, stat: &Stat) -> bool {
        !self.mode.is_ephemeral()
            || self.client.session_id().is_some_and(|session| session.0 == stat.ephemeral_owner)
    }

    /// One try at `path`, with the parents if they are missing and wanted.
    pub(crate) async fn with_parents(&self, path: &str, first: SentCreate) -> Result<Created> {
        let (mut sent, mut tries) = (first, 0);
        loop {
            let missing = match self.once(path, sent).await {
                Err(error) if error.is_no_node() && tries < PARENT_TRIES => error,
                result => return result,
            };
            let Some(mode) = self.parents else { return Err(missing) };
            tries += 1;
            match self.create_parents(path, mode).await {
                // A parent was deleted before the next one below it was created: the next round tries again.
                Err(error) if error.is_no_node() => {}
                made => made?,
            }
            sent = self.ask(path);
        }
    }

    async fn create_parents(&self, path: &str, mode: CreateMode) -> Result<()> {
        let chroot = &self.client.chroot;
        let absolute = self.mode.absolute(path, chroot);
        let unrooted = self.client.unrooted();
        let mut above: Vec<&str> = path::ancestors(&absolute).filter(|path| *path != "/").collect();
        above.reverse();
        for parent in above {
            // Errors name the parent by its path below the caller's root, if it is below that root.
            let client = if chroot.contains(parent) { &self.client } else { &unrooted };
            create_parent(client, client.chroot.relative(parent), mode, &self.parents_acl).await?;
        }
        Ok(())
    }

    /// Sends a create at `path`: as `create2`, if the servers are not known to lack it.
    pub(crate) fn ask(&self, path: &str) -> SentCreate {
        let without_create2 =
            self.mode.op() == Op::Create2 && self.client.shared().create2() == Create2::Unknown;
        SentCreate { call: self.submit(without_create2.then_some(Op::Create), path), without_create2 }
    }

    async fn once(&self, path: &str, sent: SentCreate) -> Result<Created> {
        if sent.without_create2 {
            return self.by_create(path, sent.call).await;
        }
        let context = OperationContext { path: path.into(), ..self.context.clone() };
        let made = finish(sent.call, &context, |reply| created(reply, &self.client.chroot)).await;
        self.or_by_create(made, path).await
    }

    /// The result of a `create2`. If the server does not know it, tries again with `create`.
    pub(super) async fn or_by_create(&self, made: Result<Created>, path: &str) -> Result<Created> {
        let shared = self.client.shared();
        match made {
            Err(error) if error.is_unimplemented() && self.mode.op() == Op::Create2 => {
                shared.note_create2(Create2::Unknown);
                self.by_create(path, self.submit(Some(Op::Create), path)).await
            }
            Ok(made) => {
                if self.mode.op() == Op::Create2 {
                    shared.note_create2(Create2::Known);
                }
                Ok(made)
            }
            Err(error) => Err(error),
        }
    }

    /// For servers that know no create2: create, then exists for the Stat.
    async fn by_create(&self, path: &str, call: Call) -> Result<Created> {
        let context = OperationContext { path: path.into(), ..self.context.clone() };
        let made = finish(call, &context, |reply| {
            let body = reply.ok()?.body;
            let path = Reader::new(&body).stored_string()?.ok_or(JuteError::Null)?;
            Ok(self.client.chroot.relative(&path).to_owned())
        });
        let path = made.await?;
        // The znode is there, although the operation fails: it may have been done.
        let stat =
            self.client.exists(&path).await.map_err(|last| Error::Undecided { last: Box::new(last) })?;
        match stat {
            Some(stat) => Ok(Created { path, stat }),
            // Another client has deleted it meanwhile.
            None => Err(context.error_context().code(ErrorCode::NoNode.code())),
        }
    }

    fn submit(&self, op: Option<Op>, path: &str) -> Call {
        let absolute = self.mode.absolute(path, &self.client.chroot);
        self.client.call(&Request::Create(self.mode.request(op, absolute, self.data.as_deref(), &self.acl)))
    }

    /// Deletes the created znode in the background, in this session or a later one. No other znode has its name.
    pub(crate) fn undo(&self, made: Created) {
        self.client.unbound().delete(&made.path).in_background();
    }
}

/// Creates one parent, if it does not exist.
async fn create_parent(client: &Client, path: &str, mode: CreateMode, acl: &[Acl]) -> Result<()> {
    let plan = |mode| Plan {
        client: client.clone(),
        context: client.context("create", path),
        data: Some(Bytes::new()),
        mode,
        acl: acl.to_vec(),
        parents: None,
        parents_acl: Vec::new(),
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
        // A client without the right to create the parent may still create below it, if it exists.
        Err(error) if error.code() == Some(ErrorCode::NoAuth) => match client.exists(path).await? {
            Some(_) => Ok(()),
            None => Err(error),
        },
        made => made.map(drop),
    }
}
