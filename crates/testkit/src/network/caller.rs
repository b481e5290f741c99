//! Who calls at a member's port: the first bytes say so.

use super::PeerPort;
use ostler_proto::id::ServerId;
use std::io;
use tokio::{io::AsyncReadExt, net::TcpStream};

const FOLLOWER_INFO: i32 = 11;
const OBSERVER_INFO: i32 = 16;

/// The caller, and what was read of its words.
pub(super) async fn identify(stream: &mut TcpStream, port: PeerPort) -> io::Result<(ServerId, Vec<u8>)> {
    match port {
        PeerPort::Election => election(stream).await,
        PeerPort::Quorum => quorum(stream).await,
    }
}

/// A greeting: its version, then the caller's number. The oldest form is the number alone.
async fn election(stream: &mut TcpStream) -> io::Result<(ServerId, Vec<u8>)> {
    let first = stream.read_i64().await?;
    let mut words = first.to_be_bytes().to_vec();
    if first >= 0 {
        return Ok((ServerId(first), words));
    }
    let id = stream.read_i64().await?;
    words.extend(id.to_be_bytes());
    Ok((ServerId(id), words))
}

/// FOLLOWERINFO or OBSERVERINFO: type, zxid, and data that begin with the caller's number.
async fn quorum(stream: &mut TcpStream) -> io::Result<(ServerId, Vec<u8>)> {
    let mut words = vec![0; 24];
    stream.read_exact(&mut words).await?;
    let (kind, id) = (words[..4].try_into(), words[16..].try_into());
    let (Ok(kind), Ok(id)) = (kind.map(i32::from_be_bytes), id.map(i64::from_be_bytes)) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    match kind {
        FOLLOWER_INFO | OBSERVER_INFO => Ok((ServerId(id), words)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a learner that does not say who it is")),
    }
}
