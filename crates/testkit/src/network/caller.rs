//! Finds out from the first bytes of a connection which member has opened it.

use super::PeerPort;
use ostler_proto::id::ServerId;
use std::io;
use tokio::{io::AsyncReadExt, net::TcpStream};

const FOLLOWER_INFO: i32 = 11;
const OBSERVER_INFO: i32 = 16;

/// The caller's id, and the bytes that were read.
pub(super) async fn identify(stream: &mut TcpStream, port: PeerPort) -> io::Result<(ServerId, Vec<u8>)> {
    match port {
        PeerPort::Election => election(stream).await,
        PeerPort::Quorum => quorum(stream).await,
    }
}

/// The first message of an election connection: a protocol version, then the caller's id. The oldest form is the id alone.
async fn election(stream: &mut TcpStream) -> io::Result<(ServerId, Vec<u8>)> {
    let first = stream.read_i64().await?;
    let mut first_bytes = first.to_be_bytes().to_vec();
    if first >= 0 {
        return Ok((ServerId(first), first_bytes));
    }
    let id = stream.read_i64().await?;
    first_bytes.extend(id.to_be_bytes());
    Ok((ServerId(id), first_bytes))
}

/// FOLLOWERINFO or OBSERVERINFO: type, zxid, and data that begin with the caller's id.
async fn quorum(stream: &mut TcpStream) -> io::Result<(ServerId, Vec<u8>)> {
    let mut first_bytes = vec![0; 24];
    stream.read_exact(&mut first_bytes).await?;
    let (kind, id) = (first_bytes[..4].try_into(), first_bytes[16..].try_into());
    let (Ok(kind), Ok(id)) = (kind.map(i32::from_be_bytes), id.map(i64::from_be_bytes)) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    match kind {
        FOLLOWER_INFO | OBSERVER_INFO => Ok((ServerId(id), first_bytes)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the first packet of a learner is not FOLLOWERINFO or OBSERVERINFO",
        )),
    }
}
