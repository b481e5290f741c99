//! Commands that change znodes, and transactions of them.

use super::super::{
    answer::Answer,
    command::{Create, Data, Write},
    error::{ShellError, While},
    session::{Input, ShellSession},
    walk::Walk,
};
use ostler_client::{Acl, Client, Error, Multi, OpResult, Perms, Version};
use std::{
    io::{self, Read},
    path::Path,
    thread,
};
use tokio::sync::oneshot;

/// Bytes of paths in one transaction of deletes; a request must stay below a server's limit of a MiB.
const BATCH_BYTES: usize = 512 << 10;
/// An upper bound of the bytes of a delete in a request, without its path.
const DELETE_BYTES: usize = 32;

impl ShellSession {
    /// Carries out a write, or adds it to the transaction that was begun.
    pub(super) async fn write(&mut self, write: Write<Data>) -> Result<(), ShellError> {
        let read = async |data| match data {
            Data::Given(bytes) => Ok(bytes),
            Data::File(path) => apart(move || file(&path)).await,
            Data::Input => self.input().await,
        };
        let write = write.with_data(read).await?;
        if let Some(writes) = &mut self.transaction {
            if matches!(write, Write::Create(Create { parents: true, .. })) {
                let said = "create -p cannot be part of a transaction: create each znode by itself";
                return Err(ShellError::Refused(said.into()));
            }
            writes.push(write);
            return Ok(());
        }
        let client = self.client()?;
        let answer = match write {
            Write::Create(wanted) => create(&client, wanted).await?,
            Write::Set { path, data, version, stat } => {
                let set = client.set_data(&path, &data).version(Version::from_wire(version)).await?;
                Answer::Changed { path, stat: stat.then_some(set) }
            }
            Write::Delete { path, version } => {
                client.delete(&path).version(Version::from_wire(version)).await?;
                Answer::Deleted { path, znodes: None }
            }
            Write::Check { .. } => {
                let said = "check is for transactions: begin, check and the writes that depend on it, commit";
                return Err(ShellError::Refused(said.into()));
            }
        };
        self.answer(&answer)
    }

    async fn input(&self) -> Result<Vec<u8>, ShellError> {
        if self.input != Input::Free {
            let said = "the input holds the commands: name a file, or give this command as arguments of ostler shell";
            return Err(ShellError::Refused(said.into()));
        }
        let read = || {
            let mut bytes = Vec::new();
            io::stdin().lock().take(FILE_MAX).read_to_end(&mut bytes).during(INPUT)?;
            Ok(bytes)
        };
        apart(read).await
    }

    pub(super) fn begin(&mut self) -> Result<(), ShellError> {
        if self.transaction.is_some() {
            return Err(ShellError::Refused(
                "a transaction has begun already: commit or abort it first".into(),
            ));
        }
        self.transaction = Some(Vec::new());
        Ok(())
    }

    pub(super) fn abort(&mut self) -> Result<(), ShellError> {
        self.transaction.take().map(drop).ok_or_else(no_transaction)
    }

    /// Sends the transaction. It is over even if it fails: it would fail again.
    pub(super) async fn commit(&mut self) -> Result<(), ShellError> {
        let client = self.client()?;
        let writes = self.transaction.take().ok_or_else(no_transaction)?;
        if writes.is_empty() {
            return Ok(());
        }
        let multi = writes.iter().fold(client.multi(), added);
        let results = multi.await?;
        let operations = writes.into_iter().zip(results).map(|(write, result)| committed(write, result));
        self.answer(&Answer::Committed { operations: operations.collect() })
    }

    /// Deletes a znode and all below it, the deepest first.
    pub(super) async fn delete_all(&mut self, path: String, batch: usize) -> Result<(), ShellError> {
        if path == "/" {
            return Err(ShellError::Refused("the root cannot be deleted: name one of its children".into()));
        }
        let client = self.client()?;
        let mut all = Vec::new();
        let mut walk = Walk::new(&client, &path, None);
        while let Some(visited) = walk.next().await? {
            all.push(visited.path);
        }
        walk.end()?;
        let znodes = all.len();
        while !all.is_empty() {
            let mut bytes = 0;
            let begin = all.iter().rev().take(batch).take_while(|path| {
                bytes += path.len() + DELETE_BYTES;
                bytes <= BATCH_BYTES
            });
            let begin = all.len() - begin.count().max(1);
            let paths = all.split_off(begin);
            let deletes = paths.iter().rev().fold(client.multi(), |multi, path| multi.delete(path).and());
            match deletes.await {
                // Other clients create and delete here, too. Deletes one by one pass over znodes that are gone.
                Err(error) if error.is_no_node() || error.is_not_empty() => {
                    for path in paths.iter().rev() {
                        client.delete(path).quietly().deleting_children().await?;
                    }
                }
                deleted => drop(deleted?),
            }
        }
        self.answer(&Answer::Deleted { path, znodes: Some(znodes) })
    }

    pub(super) async fn set_acl(
        &mut self,
        path: String,
        acl: &[Acl],
        version: i32,
        stat: bool,
    ) -> Result<(), ShellError> {
        let set = self.client()?.set_acl(&path, acl).version(Version::from_wire(version)).await?;
        self.answer(&Answer::Changed { path, stat: stat.then_some(set) })
    }

    /// Sets the list of all znodes. Goes on after a refusal, and reports it at the end.
    pub(super) async fn set_acl_of_all(
        &mut self,
        path: &str,
        acl: &[Acl],
        version: i32,
    ) -> Result<(), ShellError> {
        let client = self.client()?;
        let mut all = Vec::new();
        // All paths are read before the first change: the new list may forbid reading.
        let mut walk = Walk::new(&client, path, None);
        while let Some(visited) = walk.next().await? {
            all.push(visited.path);
        }
        let (mut failed, mut first) = (0, None);
        for path in &all {
            match client.set_acl(path, acl).version(Version::from_wire(version)).await {
                Err(error) if error.is_no_node() => {}
                Err(error @ Error::Server { .. }) => {
                    failed += 1;
                    first = first.or(Some(error));
                }
                set => drop(set?),
            }
        }
        match first {
            Some(first) => Err(ShellError::Partly { failed, all: all.len(), first: Box::new(first.into()) }),
            None => walk.end(),
        }
    }
}

/// More bytes than any server accepts.
const FILE_MAX: u64 = 1 << 30;

const INPUT: &str = "cannot read the input";

/// Reads the input in a thread of its own, so that the command can be interrupted while a pipe gives nothing. After an
/// interruption the thread ends with the program.
async fn apart(
    read: impl FnOnce() -> Result<Vec<u8>, ShellError> + Send + 'static,
) -> Result<Vec<u8>, ShellError> {
    let (to, bytes) = oneshot::channel();
    let work = move || {
        // The command may have been interrupted.
        let _ = to.send(read());
    };
    thread::Builder::new().name("data".into()).spawn(work).during("cannot start")?;
    bytes.await.unwrap_or_else(|_| Err(io::Error::other("its reader has ended")).during(INPUT))
}

fn file(path: &Path) -> Result<Vec<u8>, ShellError> {
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(FILE_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|cause| ShellError::File { path: path.to_owned(), cause })
}

fn no_transaction() -> ShellError {
    ShellError::Refused("no transaction has begun: begin begins one".into())
}

fn open_to_all() -> Vec<Acl> {
    vec![Acl::world(Perms::ALL)]
}

async fn create(client: &Client, wanted: Create<Vec<u8>>) -> Result<Answer, ShellError> {
    let create = client.create(&wanted.path, wanted.data.as_deref().unwrap_or_default()).mode(wanted.mode);
    let create = if wanted.data.is_none() { create.without_data() } else { create };
    let create = if wanted.parents { create.creating_parents() } else { create };
    let created = create.acl(wanted.acl.unwrap_or_else(open_to_all)).await?;
    Ok(Answer::Created { path: created.path })
}

fn added<'c>(multi: Multi<'c>, write: &Write<Vec<u8>>) -> Multi<'c> {
    match write {
        Write::Create(Create { path, data, mode, acl, .. }) => {
            let data = data.as_deref().unwrap_or_default();
            multi.create(path, data).mode(*mode).acl(acl.clone().unwrap_or_else(open_to_all)).and()
        }
        Write::Set { path, data, version, .. } => {
            multi.set_data(path, data).version(Version::from_wire(*version)).and()
        }
        Write::Delete { path, version } => multi.delete(path).version(Version::from_wire(*version)).and(),
        Write::Check { path, version } => multi.check(path, Version::from_wire(*version)),
    }
}

fn committed(write: Write<Vec<u8>>, result: OpResult) -> Answer {
    match (write, result) {
        (Write::Create(Create { path, .. }), result) => {
            Answer::Created { path: result.path().map_or(path, str::to_owned) }
        }
        (Write::Set { path, stat, .. }, result) => {
            Answer::Changed { path, stat: if stat { result.stat().copied() } else { None } }
        }
        (Write::Delete { path, .. }, _) => Answer::Deleted { path, znodes: None },
        (Write::Check { path, .. }, _) => Answer::Changed { path, stat: None },
    }
}
