//! The bytes of an election connection: a greeting of the server that has connected, then votes.

use ostler_proto::{id::ServerId, jute::Writer as _, membership::PeerAddress};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::claims::ElectionAddress;

/// The first number of a greeting with one address.
const GREETING: i64 = -65536;
/// The first number of a greeting with several addresses.
const GREETING_WITH_ADDRESSES: i64 = -65535;
/// The longest message that upstream accepts, in bytes.
const MESSAGE_MAX: i32 = 512 << 10;
/// The longest text of a greeting's addresses, in bytes.
const ADDRESS_MAX: i32 = 2048;

/// Why an election connection cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum ElectionReadError {
    /// The greeting's first number is unknown.
    #[error("the greeting begins with {0:#x}, which is no version of the protocol")]
    GreetingVersion(i64),
    /// The length of the greeting's addresses is out of range.
    #[error("a greeting with an address of {0} bytes, from 1 to {ADDRESS_MAX} are allowed")]
    GreetingLength(i32),
    /// The length of a vote is out of range.
    #[error("a message of {0} bytes, from 1 to {MESSAGE_MAX} are allowed")]
    MessageLength(i32),
    /// The connection has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ElectionReadError {
    /// Whether the peer has broken the protocol. Other connections end because the network or a server does.
    pub(super) fn is_breach(&self) -> bool {
        !matches!(self, ElectionReadError::Io(_))
    }
}

/// Reads the bytes of the next vote into `message`, in place of its contents.
pub async fn read_message(
    read: &mut (impl AsyncRead + Unpin),
    message: &mut Vec<u8>,
) -> Result<(), ElectionReadError> {
    let length = read.read_i32().await?;
    if !(1..=MESSAGE_MAX).contains(&length) {
        return Err(ElectionReadError::MessageLength(length));
    }
    message.resize(length as usize, 0);
    read.read_exact(message).await?;
    Ok(())
}

/// The first message on an election connection: the id of the server that has connected, and its election addresses. A
/// server with one address sends the older form, which every version of ZooKeeper reads; one without an address sends the
/// oldest, which has the id only. An empty address would be refused.
pub fn greeting(me: ServerId, addresses: &[PeerAddress]) -> Vec<u8> {
    let addresses: Vec<String> =
        addresses.iter().map(|at| format!("{}:{}", at.host, at.election_port)).collect();
    let mut greeting = Vec::new();
    if addresses.is_empty() {
        greeting.i64(me.0);
        return greeting;
    }
    greeting.i64(if addresses.len() > 1 { GREETING_WITH_ADDRESSES } else { GREETING });
    greeting.i64(me.0);
    greeting.buffer(Some(addresses.join("|").as_bytes()));
    greeting
}

/// Reads a greeting. Returns the caller's server id and the election addresses that it names.
pub async fn read_greeting(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<(ServerId, Vec<(String, u16)>), ElectionReadError> {
    let first = stream.read_i64().await?;
    if first >= 0 {
        // The oldest form has the id only.
        return Ok((ServerId(first), Vec::new()));
    }
    if first != GREETING && first != GREETING_WITH_ADDRESSES {
        return Err(ElectionReadError::GreetingVersion(first));
    }
    let id = stream.read_i64().await?;
    let length = stream.read_i32().await?;
    if !(1..=ADDRESS_MAX).contains(&length) {
        return Err(ElectionReadError::GreetingLength(length));
    }
    let mut address = vec![0; length as usize];
    stream.read_exact(&mut address).await?;
    let address = String::from_utf8_lossy(&address);
    let election_address = |text: &str| -> Option<ElectionAddress> {
        let (host, port) = text.rsplit_once(':')?;
        // An address that stands for all interfaces is none to connect to.
        (host != "0.0.0.0" && host != "[::]").then_some((host.to_string(), port.parse().ok()?))
    };
    Ok((ServerId(id), address.split('|').filter_map(election_address).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_of_a_server_with_several_addresses_names_them_all() {
        let at = |host: &str| PeerAddress { host: host.into(), quorum_port: 1, election_port: 3888 };
        let greeted = |addresses: &[PeerAddress]| {
            let bytes = greeting(ServerId(7), addresses);
            let version = i64::from_be_bytes(bytes[..8].try_into().unwrap());
            (version, String::from_utf8(bytes[20..].to_vec()).unwrap())
        };
        assert_eq!(greeted(&[at("one")]), (GREETING, "one:3888".into()));
        assert_eq!(greeted(&[at("one"), at("two")]), (GREETING_WITH_ADDRESSES, "one:3888|two:3888".into()));
    }

    #[tokio::test]
    async fn a_server_without_an_address_greets_by_its_id() {
        let (id, named) = read_greeting(&mut &greeting(ServerId(7), &[])[..]).await.unwrap();
        assert_eq!((id, named), (ServerId(7), Vec::new()));
    }
}
