//! SASL between servers: the tokens on a connection. The server that has connected logs in at the other.

use super::{
    peer_security::{Logins, PeerSecurity, SecurityError},
    peer_stream::PeerStream,
};
use crate::sasl_logins::nonce;
use ostler_sasl::quorum::{
    Accepted, Acceptor, HEADER, Learner, MAGIC, QuorumLoginError, Status, read_header,
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

impl PeerSecurity {
    /// Logs in at the server that was called, if this server does that.
    pub(super) async fn log_in(
        &self,
        stream: &mut PeerStream,
        within: Duration,
    ) -> Result<(), SecurityError> {
        match self.logins.as_ref().filter(|logins| logins.settings.learner_requires) {
            None => Ok(()),
            Some(logins) => {
                timeout(within, log_in(logins, stream)).await.map_err(|_| SecurityError::Late(within))?
            }
        }
    }

    /// Lets the caller log in. If it does not, it may stay only if logins are not required.
    pub(super) async fn expect_login(
        &self,
        stream: &mut PeerStream,
        within: Duration,
    ) -> Result<(), SecurityError> {
        let Some(logins) = &self.logins else { return Ok(()) };
        let mut first = [0];
        // A read that is given up loses no byte.
        match timeout(within, stream.read(&mut first)).await {
            Ok(read) => {
                let begun = &first[..read?];
                let expected = expect_login(logins, stream, begun);
                timeout(within, expected).await.map_err(|_| SecurityError::Late(within))?
            }
            Err(_) if logins.settings.server_requires => Err(SecurityError::Late(within)),
            // A server that does not log in may have nothing to say yet.
            Err(_) => Ok(()),
        }
    }
}

async fn send(stream: &mut PeerStream, packet: &[u8]) -> io::Result<()> {
    stream.write_all(packet).await?;
    stream.flush().await
}

/// Reads the rest of a packet whose first bytes are `header`.
async fn read_token(
    stream: &mut PeerStream,
    header: &[u8; HEADER],
) -> Result<(Status, Vec<u8>), SecurityError> {
    let (status, length) = read_header(header)?;
    let mut token = vec![0; length];
    stream.read_exact(&mut token).await?;
    Ok((status, token))
}

async fn read_packet(stream: &mut PeerStream) -> Result<(Status, Vec<u8>), SecurityError> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).await?;
    read_token(stream, &header).await
}

async fn log_in(logins: &Logins, stream: &mut PeerStream) -> Result<(), SecurityError> {
    let mut learner = Learner::new(&logins.known.own, nonce()?);
    send(stream, &learner.begin()).await?;
    loop {
        let (status, token) = read_packet(stream).await?;
        match learner.heard(status, &token)? {
            Some(next) => send(stream, &next).await?,
            None => return Ok(()),
        }
    }
}

/// `begun` is the first byte that has come, or nothing at the end of the connection.
async fn expect_login(logins: &Logins, stream: &mut PeerStream, begun: &[u8]) -> Result<(), SecurityError> {
    let mut header = [0; HEADER];
    let mut read = begun.len();
    header[..read].copy_from_slice(begun);
    while (1..MAGIC.len()).contains(&read) && header[..read] == MAGIC[..read] {
        match stream.read(&mut header[read..MAGIC.len()]).await? {
            0 => break,
            more => read += more,
        }
    }
    if header[..MAGIC.len()] != MAGIC {
        if logins.settings.server_requires {
            return Err(QuorumLoginError::NoPacket.into());
        }
        stream.give_back(&header[..read]);
        return Ok(());
    }
    stream.read_exact(&mut header[MAGIC.len()..]).await?;
    let (mut status, mut token) = read_token(stream, &header).await?;
    let mut acceptor = Acceptor::new(&logins.known.users, nonce()?);
    loop {
        match acceptor.heard(status, &token) {
            Accepted::More(packet) => send(stream, &packet).await?,
            Accepted::Done(packet) => return Ok(send(stream, &packet).await?),
            Accepted::Refused(packet, why) => {
                send(stream, &packet).await?;
                return Err(why.into());
            }
        }
        (status, token) = read_packet(stream).await?;
    }
}
