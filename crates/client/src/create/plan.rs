//! A create carried out: tried again, with its parents, on servers that know create2 and on others.

use super::{CreateMode, Created};
use crate::{
    client::Client,
    error::Result,
    operation::{Call, Operation, Topic, Trouble, finish},
    retry::Tries,
    shared::{Create2, Reply},
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
    pub(crate) topic: Topic,
    pub(super) data: Option<Bytes>,
    pub(crate) mode: CreateMode,
    pub(super) acl: Vec<Acl>,
    pub(super) parents: Option<CreateMode>,
    pub(super) parents_acl: Vec<Acl>,
    pub(super) idempotent: bool,
    pub(super) or_set_data: bool,
}

/// A create that was handed over.
pub(crate) struct Asked {
    call: Call,
    /// As a plain create, which every server knows.
    plainly: bool,
}

/// A body of path and Stat.
pub(super) fn created(reply: Reply, chroot: &Chroot) -> std::result::Result<Created, Trouble> {
    let body = reply.ok()?.body;
    let mut r = Reader::new(&body);
    let path = r.stored_string()?.ok_or(JuteError::Null)?;
    Ok(Created { path: chroot.relative(&path).to_owned(), stat: Stat::read(&mut r)? })
}

/// How often missing parents are made: containers can go again before the child is there.
const PARENT_TRIES: u32 = 16;

impl Plan {
    pub(super) fn with(mut self, data: Option<&[u8]>, acl: &[Acl]) -> Plan {
        self.data = data.map(Bytes::copy_from_slice);
        self.acl = acl.to_vec();
        self
    }

    fn boxed(self) -> Operation<Created> {
        let first = self.ask(&self.topic.path);
        Operation::new(async move { self.run(first).await })
    }

    /// Creates, with the parents if that was asked for. Connection trouble is tried again if that does no harm.
    pub(super) async fn run(&self, first: Asked) -> Result<Created> {
        let mut tries = Tries::new(self.client.retry);
        let mut asked = first;
        loop {
            let error = match self.with_parents(&self.topic.path, asked).await {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            if error.is_node_exists() {
                match self.on_exists(tries.unknown).await.map_err(|error| tries.ended(error))? {
                    Some(created) => return Ok(created),
                    None if self.or_set_data => {
                        asked = self.ask(&self.topic.path);
                        continue;
                    }
                    None => return Err(tries.ended(error)),
                }
            }
            if error.is_outcome_unknown() && !self.idempotent {
                return Err(error);
            }
            tries.wait(error).await?;
            asked = self.ask(&self.topic.path);
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
    pub(crate) async fn with_parents(&self, path: &str, first: Asked) -> Result<Created> {
        let (mut asked, mut tries) = (first, 0);
        loop {
            let missing = match self.once(path, asked).await {
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
            asked = self.ask(path);
        }
    }

    async fn make_parents(&self, path: &str, mode: CreateMode) -> Result<()> {
        let chroot = &self.client.chroot;
        let absolute = self.mode.absolute(path, chroot);
        let unrooted = self.client.unrooted();
        let mut above: Vec<&str> = path::ancestors(&absolute).filter(|path| *path != "/").collect();
        above.reverse();
        for parent in above {
            // Errors name it as the caller does, as far as the caller has a name for it.
            let client = if chroot.contains(parent) { &self.client } else { &unrooted };
            make_parent(client, client.chroot.relative(parent), mode, &self.parents_acl).await?;
        }
        Ok(())
    }

    /// Hands over a create at `path`, in a way that the server knows as far as that has been seen.
    pub(crate) fn ask(&self, path: &str) -> Asked {
        let plainly = self.mode.op() == Op::Create2 && self.client.shared().create2() == Create2::Unknown;
        Asked { call: self.submit(plainly.then_some(Op::Create), path), plainly }
    }

    async fn once(&self, path: &str, asked: Asked) -> Result<Created> {
        if asked.plainly {
            return self.by_create(path, asked.call).await;
        }
        let topic = Topic { path: path.into(), ..self.topic.clone() };
        let made = finish(asked.call, &topic, |reply| created(reply, &self.client.chroot)).await;
        self.or_by_create(made, path).await
    }

    /// The same another way, if the server knows no create2.
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
        let topic = Topic { path: path.into(), ..self.topic.clone() };
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

    fn submit(&self, op: Option<Op>, path: &str) -> Call {
        let absolute = self.mode.absolute(path, &self.client.chroot);
        self.client.call(&Request::Create(self.mode.request(op, absolute, self.data.as_deref(), &self.acl)))
    }

    /// Deletes what this made, until it is gone: in whichever session, because nobody else has its name.
    pub(crate) fn undo(&self, made: Created) {
        self.client.unbound().delete(&made.path).in_background();
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
        // Whoever may not create it can still be allowed to create below it.
        Err(error) if error.code() == Some(ErrorCode::NoAuth) => match client.exists(path).await? {
            Some(_) => Ok(()),
            None => Err(error),
        },
        made => made.map(drop),
    }
}
