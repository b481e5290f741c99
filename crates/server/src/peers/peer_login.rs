//! SASL between servers: the tokens on a connection. The server that has connected logs in at the other.

use super::{
    address_book::AddressBook,
    peer_security::{Logins, PeerSecurity, SecurityError},
    peer_stream::PeerStream,
};
use crate::{
    sasl_files::{OwnPeerLogin, PeerLogins},
    sasl_logins::nonce,
};
use ostler_kerberos::{AcceptorContext, InitiatorContext};
use ostler_proto::membership::Member;
use ostler_sasl::{
    gssapi::{GssapiClient, GssapiServer},
    quorum::{
        Accepted, Acceptor, ExpectedLogin, HEADER, Learner, MAGIC, OwnLogin, QuorumLoginError, Status,
        read_header,
    },
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::spawn_blocking,
    time::timeout,
};

impl PeerSecurity {
    /// Logs in at the server that was called, if this server does that.
    pub(super) async fn log_in(
        &self,
        stream: &mut PeerStream,
        server: &Member,
        within: Duration,
    ) -> Result<(), SecurityError> {
        match self.logins.as_ref().filter(|logins| logins.settings.learner_requires) {
            None => Ok(()),
            Some(logins) => timeout(within, log_in(logins, stream, server))
                .await
                .map_err(|_| SecurityError::LateLogin(within))?,
        }
    }

    /// Lets the caller log in. If it does not, it may stay only if logins are not required.
    pub(super) async fn expect_login(
        &self,
        stream: &mut PeerStream,
        book: &AddressBook,
        within: Duration,
    ) -> Result<(), SecurityError> {
        let Some(logins) = &self.logins else { return Ok(()) };
        let mut first = [0];
        // A read that is given up loses no byte.
        match timeout(within, stream.read(&mut first)).await {
            Ok(read) => {
                let begun = &first[..read?];
                let expected = expect_login(logins, stream, book, begun);
                timeout(within, expected).await.map_err(|_| SecurityError::LateLogin(within))?
            }
            Err(_) if logins.settings.server_requires => Err(SecurityError::LateLogin(within)),
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

async fn log_in(logins: &Logins, stream: &mut PeerStream, server: &Member) -> Result<(), SecurityError> {
    let host = server.addresses.first().map_or("", |address| &*address.host);
    let (mut learner, first) = logins.begin(host).await?;
    send(stream, &first).await?;
    loop {
        let (status, token) = read_packet(stream).await?;
        let step = move |learner: &mut Learner<_>| learner.heard(status, &token);
        let next;
        (learner, next) = worked_at(learner, logins.own_blocks(), step).await?;
        match next? {
            Some(next) => send(stream, &next).await?,
            None => return Ok(()),
        }
    }
}

/// Does a step of a login: on a thread of its own if the library reads files or asks the KDC.
async fn worked_at<L: Send + 'static, A: Send + 'static>(
    mut login: L,
    blocks: bool,
    step: impl FnOnce(&mut L) -> A + Send + 'static,
) -> io::Result<(L, A)> {
    let work = move || {
        let answer = step(&mut login);
        (login, answer)
    };
    match blocks {
        true => spawn_blocking(work).await.map_err(io::Error::other),
        false => Ok(work()),
    }
}

impl Logins {
    fn own_blocks(&self) -> bool {
        matches!(self.known.own, OwnPeerLogin::Kerberos { .. })
    }

    /// The login at the server of this host, and its first packet.
    async fn begin(&self, host: &str) -> Result<(Learner<InitiatorContext>, Vec<u8>), SecurityError> {
        let login = match &self.known.own {
            OwnPeerLogin::Digest(credentials) => {
                OwnLogin::Digest { credentials: credentials.clone(), cnonce: nonce()? }
            }
            OwnPeerLogin::Kerberos { initiator, realm } => {
                let (initiator, service) = (initiator.clone(), self.service(host, realm.as_deref()));
                let context = spawn_blocking(move || initiator.context(&service)).await;
                OwnLogin::Gssapi(GssapiClient::new(context.map_err(io::Error::other)??))
            }
        };
        let (learner, first) = worked_at(Learner::new(login), self.own_blocks(), Learner::begin).await?;
        Ok((learner, first?))
    }

    /// The principal of the server of this host.
    fn service(&self, host: &str, realm: Option<&str>) -> String {
        let service = self.settings.service.replace("_HOST", host.trim_matches(['[', ']']));
        match realm.filter(|_| !service.contains('@')) {
            Some(realm) => format!("{service}@{realm}"),
            None => service,
        }
    }

    /// The login of a server that has connected.
    fn expected(&self, book: &AddressBook) -> io::Result<Acceptor<AcceptorContext>> {
        Ok(Acceptor::new(match &self.known.expected {
            PeerLogins::Digest(users) => ExpectedLogin::Digest { users: users.clone(), nonce: nonce()? },
            PeerLogins::Kerberos(acceptor) => ExpectedLogin::Gssapi {
                login: GssapiServer::new(acceptor.context()),
                hosts: book.all_hosts(),
            },
        }))
    }
}

/// `begun` is the first byte that has come, or nothing at the end of the connection.
async fn expect_login(
    logins: &Logins,
    stream: &mut PeerStream,
    book: &AddressBook,
    begun: &[u8],
) -> Result<(), SecurityError> {
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
    let mut acceptor = logins.expected(book)?;
    let blocks = matches!(logins.known.expected, PeerLogins::Kerberos(_));
    loop {
        let step = move |acceptor: &mut Acceptor<_>| acceptor.heard(status, &token);
        let answer;
        (acceptor, answer) = worked_at(acceptor, blocks, step).await?;
        match answer {
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
