//! A znode by which a leader says that it is ready.
//!
//! The first participant in the queue is the leader. The queue does not show whether it knows this, or has done what a
//! new leader must do first. Processes that need this wait for the acknowledgement, a znode that the leader creates
//! afterwards. The znode names the leader's own znode and token, and counts only as long as that znode exists.
//!
//! The leader creates it with the client by which it leads. Readers may use clients with another root, so the path of
//! the leader's znode in it is the whole path on the servers.

use crate::{
    error::{Error, Result},
    fencing::{Fence, Token},
    until_answered::event_unless_removed,
};
use ostler_client::{Bytes, Client, ErrorCode, Zxid, paths};
use std::sync::Arc;

/// The znode by which the leaders of one election say that they are ready. It must not be below the election's znode.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    client: Client,
    path: Arc<str>,
}

/// The content of a leader's acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acknowledged {
    /// The leader's fencing token.
    pub token: Token,
    /// The path of the leader's znode.
    pub leader: String,
    /// The data that the leader gave to [`acknowledge`](Acknowledgement::acknowledge).
    pub data: Bytes,
}

impl Acknowledgement {
    /// A handle to the acknowledgement at `path`. No request is sent.
    pub fn new(client: &Client, path: &str) -> Acknowledgement {
        Acknowledgement { client: client.clone(), path: path.into() }
    }

    /// Says that the leader is ready. An acknowledgement of an earlier leader is replaced.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the caller does not lead any more; [`Error::OutsideOfRoot`] if the acknowledgement's path
    /// is not below the root of the leader's client; the client's errors. After connection loss the znode may be
    /// written or not, and the call can be repeated.
    pub async fn acknowledge(&self, leader: &Fence, data: impl AsRef<[u8]>) -> Result<()> {
        let place = self.path_for(leader)?;
        let node = absolute_path(leader.session().namespace(), leader.node());
        let text = written(leader.token(), &node, data.as_ref());
        loop {
            let create = leader.multi().create(&place, &text).ephemeral();
            match create.await {
                Err(error) if code(&error) == Some(ErrorCode::NodeExists) => {}
                Err(error) if code(&error) == Some(ErrorCode::NoNode) => {
                    make_parent(leader, &place).await?;
                    continue;
                }
                done => return done.map(drop),
            }
            let replace = leader.multi().delete(&place);
            match replace.create(&place, &text).ephemeral().await {
                // The earlier leader's znode was deleted with its session meanwhile.
                Err(error) if code(&error) == Some(ErrorCode::NoNode) => {}
                done => return done.map(drop),
            }
        }
    }

    /// Deletes the acknowledgement: the leader is not ready any more.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if the caller does not lead any more: then the acknowledgement does not count.
    /// [`Error::OutsideOfRoot`], as for [`acknowledge`](Acknowledgement::acknowledge). The client's errors.
    pub async fn withdraw(&self, leader: &Fence) -> Result<()> {
        match leader.multi().delete(&self.path_for(leader)?).await {
            Err(error) if code(&error) == Some(ErrorCode::NoNode) => Ok(()),
            done => done.map(drop),
        }
    }

    /// The present leader's acknowledgement; `None` if there is no leader or it has not acknowledged.
    ///
    /// # Errors
    /// [`Error::OutsideOfRoot`] if the leader's znode is not below this client's root. The client's errors.
    pub async fn now(&self) -> Result<Option<Acknowledged>> {
        match self.client.get_data(&self.path).await {
            Ok((text, _)) => self.unless_void(text).await,
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the present leader has acknowledged.
    ///
    /// # Errors
    /// Those of [`now`](Acknowledgement::now).
    pub async fn wait(&self) -> Result<Acknowledged> {
        loop {
            let (there, changed) = self.client.exists(&self.path).watch().await?;
            if there.is_some() {
                if let Some(acknowledged) = self.now().await? {
                    return Ok(acknowledged);
                }
            }
            match event_unless_removed(changed).await {
                // The znode is read again in the next session.
                Err(error) if error.is_session_over() && self.client.wait_connected().await.is_ok() => {}
                changed => drop(changed?),
            }
        }
    }

    async fn unless_void(&self, text: Bytes) -> Result<Option<Acknowledged>> {
        let Some(said) = read(&text) else { return Ok(None) };
        let acknowledged =
            Acknowledged { leader: client_path(self.client.namespace(), &said.leader)?, ..said };
        let leader = self.client.exists(&acknowledged.leader).await?;
        Ok(leader.filter(|stat| Token(stat.czxid) == acknowledged.token).map(|_| acknowledged))
    }

    /// The acknowledgement's path, as the leader's client names it.
    fn path_for(&self, leader: &Fence) -> Result<String> {
        client_path(leader.session().namespace(), &absolute_path(self.client.namespace(), &self.path))
    }
}

/// Creates the parent of `place`, in the leader's session.
async fn make_parent(leader: &Fence, place: &str) -> Result<()> {
    let parent = paths::parent(place).unwrap_or("/");
    match leader.session().create(parent, b"").creating_parents().idempotent().await {
        Err(error) if error.is_node_exists() => Ok(()),
        // The leader's znode is gone with its session.
        Err(error) if error.is_session_over() => Err(leader.not_held()),
        made => Ok(made.map(drop)?),
    }
}

/// The whole path on the servers, of a path of a client with this root.
fn absolute_path(root: &str, path: &str) -> String {
    match (root, path) {
        ("/", path) => path.to_owned(),
        (root, "/") => root.to_owned(),
        (root, path) => format!("{root}{path}"),
    }
}

/// The path by which a client with this root names a znode, from the whole path on the servers.
fn client_path(root: &str, path: &str) -> Result<String> {
    let below = if root == "/" { Some(path) } else { path.strip_prefix(root) };
    match below {
        Some(below) if below.starts_with('/') => Ok(below.to_owned()),
        Some("") => Ok("/".to_owned()),
        _ => Err(Error::OutsideOfRoot { path: path.into(), root: root.into() }),
    }
}

fn code(error: &Error) -> Option<ErrorCode> {
    error.client()?.code()
}

/// The znode's data: `0x1f /election/latch-0000000001`, a line feed, and the leader's data.
fn written(token: Token, leader: &str, data: &[u8]) -> Vec<u8> {
    [format!("{token} {leader}\n").as_bytes(), data].concat()
}

fn read(text: &Bytes) -> Option<Acknowledged> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&text[..end]).ok()?;
    let (token, leader) = line.split_once(' ')?;
    let token = Token(Zxid(u64::from_str_radix(token.strip_prefix("0x")?, 16).ok()?));
    Some(Acknowledged { token, leader: leader.to_owned(), data: text.slice(end + 1..) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgement_is_read_as_written() {
        let text = Bytes::from(written(Token(Zxid(31)), "/a/latch-0000000001", b"ready\n1"));
        let expected = Acknowledged {
            token: Token(Zxid(31)),
            leader: "/a/latch-0000000001".into(),
            data: Bytes::from_static(b"ready\n1"),
        };
        assert_eq!(read(&text), Some(expected));
        for other in ["", "\n", "0x1f\n", "31 /a\n", "0xzz /a\n", "0x1f /a"] {
            assert_eq!(read(&Bytes::from_static(other.as_bytes())), None, "{other:?}");
        }
    }

    #[test]
    fn each_root_has_its_own_names() {
        for (root, path, known) in
            [("/", "/a", "/a"), ("/", "/", "/"), ("/app", "/a/b", "/app/a/b"), ("/app", "/", "/app")]
        {
            assert_eq!(absolute_path(root, path), known);
            assert_eq!(client_path(root, known).unwrap(), path);
        }
        for outside in ["/", "/other", "/apple/a", "/ap"] {
            assert!(client_path("/app", outside).is_err(), "{outside}");
        }
    }
}
