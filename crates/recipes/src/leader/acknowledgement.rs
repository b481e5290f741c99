//! A znode that says that the leader has run its procedure.
//!
//! That nobody is before a participant makes it the leader, and says nothing about whether it knows, or has done what
//! a new leader has to do first. Those who need that to be done wait for this znode, which the leader writes
//! afterwards. It says whose reign it belongs to, and is void as soon as that leader's znode is gone.
//!
//! The leader writes it by the client that it leads with. That one's root can be another than those of the clients who
//! ask, so it says where the leader's znode is as the servers know it.

use crate::{
    error::{Error, Result},
    fencing::{Fence, Token},
};
use ostler_client::{Bytes, Client, CreateMode, ErrorCode, Zxid, paths};
use std::sync::Arc;

/// The znode by which leaders of one election say that they are ready. It must not lie below the election's own znode.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    client: Client,
    path: Arc<str>,
}

/// What a leader has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// The token of the leader.
    pub token: Token,
    /// The path of the leader's znode.
    pub leader: String,
    /// What it wanted to have said.
    pub data: Bytes,
}

impl Acknowledgement {
    /// The one at `path`.
    pub fn new(client: &Client, path: &str) -> Acknowledgement {
        Acknowledgement { client: client.clone(), path: path.into() }
    }

    /// Says that the leader has run its procedure. What a leader before it has said is replaced.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if it does not lead any more; [`Error::OutsideOfRoot`] if the leader's client has another root,
    /// and this is not below it; the client's: after connection loss it may be said or not, and can be said again.
    pub async fn acknowledge(&self, leader: &Fence, data: impl AsRef<[u8]>) -> Result<()> {
        let place = self.place_for(leader)?;
        let node = whole(leader.session().namespace(), leader.node());
        let text = written(leader.token(), &node, data.as_ref());
        loop {
            let create = leader.multi().create_mode(&place, &text, CreateMode::Ephemeral);
            match create.commit().await {
                Err(error) if code(&error) == Some(ErrorCode::NodeExists) => {}
                Err(error) if code(&error) == Some(ErrorCode::NoNode) => {
                    make_parent(leader, &place).await?;
                    continue;
                }
                done => return done.map(drop),
            }
            let replace = leader.multi().delete(&place, -1);
            match replace.create_mode(&place, &text, CreateMode::Ephemeral).commit().await {
                // It has gone with its session meanwhile.
                Err(error) if code(&error) == Some(ErrorCode::NoNode) => {}
                done => return done.map(drop),
            }
        }
    }

    /// Takes it back.
    ///
    /// # Errors
    /// [`Error::NotHeld`] if it does not lead any more: then it is void anyhow. [`Error::OutsideOfRoot`]. The client's.
    pub async fn withdraw(&self, leader: &Fence) -> Result<()> {
        match leader.multi().delete(&self.place_for(leader)?, -1).commit().await {
            Err(error) if code(&error) == Some(ErrorCode::NoNode) => Ok(()),
            done => done.map(drop),
        }
    }

    /// What the present leader has said; `None` if there is none or it has said nothing.
    ///
    /// # Errors
    /// [`Error::OutsideOfRoot`] if the leader's znode is not below this client's root. The client's.
    pub async fn now(&self) -> Result<Option<Acknowledged>> {
        match self.client.get_data(&self.path).await {
            Ok((text, _)) => self.unless_void(text).await,
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until a leader has said that it is ready.
    ///
    /// # Errors
    /// Those of [`now`](Acknowledgement::now).
    pub async fn wait(&self) -> Result<Acknowledged> {
        loop {
            let (there, changed) = self.client.exists(&self.path).watch().await?;
            if there.is_some()
                && let Some(acknowledged) = self.now().await?
            {
                return Ok(acknowledged);
            }
            match changed.await {
                // The next look is in another session.
                Err(error) if error.is_session_over() && self.client.wait_connected().await.is_ok() => {}
                changed => drop(changed?),
            }
        }
    }

    async fn unless_void(&self, text: Bytes) -> Result<Option<Acknowledged>> {
        let Some(said) = read(&text) else { return Ok(None) };
        let acknowledged = Acknowledged { leader: named(self.client.namespace(), &said.leader)?, ..said };
        let leader = self.client.exists(&acknowledged.leader).await?;
        Ok(leader.filter(|stat| Token(stat.czxid) == acknowledged.token).map(|_| acknowledged))
    }

    /// Where it is, as the leader's client names it.
    fn place_for(&self, leader: &Fence) -> Result<String> {
        named(leader.session().namespace(), &whole(self.client.namespace(), &self.path))
    }
}

/// By the leader's client, so that it is the parent of what that one is to write.
async fn make_parent(leader: &Fence, place: &str) -> Result<()> {
    let parent = paths::parent(place).unwrap_or("/");
    match leader.session().create(parent, b"").creating_parents().idempotent().await {
        Err(error) if error.is_node_exists() => Ok(()),
        // What leading is bound to is gone with it.
        Err(error) if error.is_session_over() && !matches!(error, ostler_client::Error::Closed) => {
            Err(leader.not_held())
        }
        made => Ok(made.map(drop)?),
    }
}

/// A path as the servers know it.
fn whole(root: &str, path: &str) -> String {
    match (root, path) {
        ("/", path) => path.to_owned(),
        (root, "/") => root.to_owned(),
        (root, path) => format!("{root}{path}"),
    }
}

/// A path that the servers know, as a client with this root names it.
fn named(root: &str, path: &str) -> Result<String> {
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

/// `0x1f /election/latch-0000000001`, a line's end, and the data.
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
    fn what_is_written_is_read() {
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
            assert_eq!(whole(root, path), known);
            assert_eq!(named(root, known).unwrap(), path);
        }
        for outside in ["/", "/other", "/apple/a", "/ap"] {
            assert!(named("/app", outside).is_err(), "{outside}");
        }
    }
}
