//! A small client on a raw socket.

use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse, Password},
    id::SessionId,
    jute::{Reader, Writer},
    op::Op,
    reply::{ReplyHeader, begin_frame, end_frame},
};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long a server may be silent before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);
const EPHEMERAL: i32 = 1;
const SEQUENTIAL: i32 = 2;

pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) session: SessionId,
    pub(crate) password: Password,
    pub(crate) timeout_ms: i32,
    xid: i32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Reply { xid: i32, error: i32, body: Vec<u8> },
    Event { path: String },
}

impl Client {
    /// Opens a new session.
    pub(crate) async fn open(server: SocketAddr) -> io::Result<Client> {
        Client::connect(server, SessionId::NONE, [0; 16], 30_000).await
    }

    /// Reconnects to the session of another client. The returned session is 0 if it has expired.
    pub(crate) async fn reopen(server: SocketAddr, of: &Client) -> io::Result<Client> {
        Client::connect(server, of.session, of.password, 30_000).await
    }

    pub(crate) async fn connect(
        server: SocketAddr,
        session: SessionId,
        password: Password,
        timeout_ms: i32,
    ) -> io::Result<Client> {
        let mut stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let mut frame = Vec::new();
        ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms,
            session,
            password: Some(&password),
            read_only: Some(false),
        }
        .write_frame(&mut frame);
        stream.write_all(&frame).await?;
        let granted = ConnectResponse::read(&read_frame(&mut stream).await?).map_err(io::Error::other)?;
        let (session, password) = (granted.session, granted.password);
        Ok(Client { stream, session, password, timeout_ms: granted.timeout_ms, xid: 0 })
    }

    pub(crate) async fn send(&mut self, op: Op, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<i32> {
        self.xid += 1;
        self.send_as(self.xid, op, body).await
    }

    async fn send_as(&mut self, xid: i32, op: Op, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<i32> {
        let mut frame = Vec::new();
        let start = begin_frame(&mut frame);
        frame.i32(xid);
        frame.i32(op.code());
        body(&mut frame);
        end_frame(&mut frame, start);
        self.stream.write_all(&frame).await?;
        Ok(xid)
    }

    pub(crate) async fn send_create(&mut self, path: &str, ephemeral: bool) -> io::Result<i32> {
        self.send_create_as(path, if ephemeral { EPHEMERAL } else { 0 }).await
    }

    async fn send_create_as(&mut self, path: &str, flags: i32) -> io::Result<i32> {
        self.send(Op::Create, |out| {
            out.string(path);
            out.buffer(Some(b""));
            out.length(1);
            out.i32(31);
            out.string("world");
            out.string("anyone");
            out.i32(flags);
        })
        .await
    }

    pub(crate) async fn next(&mut self) -> io::Result<Frame> {
        let payload = read_frame(&mut self.stream).await?;
        let mut r = Reader::new(&payload);
        let header = ReplyHeader::read(&mut r).map_err(io::Error::other)?;
        if header.xid.0 != -1 {
            return Ok(Frame::Reply { xid: header.xid.0, error: header.error, body: r.rest().to_vec() });
        }
        let _ = (r.i32().map_err(io::Error::other)?, r.i32().map_err(io::Error::other)?);
        Ok(Frame::Event { path: r.text().map_err(io::Error::other)?.into_owned() })
    }

    /// The error code of the reply to `xid`; events in between are dropped.
    pub(crate) async fn reply_to(&mut self, xid: i32) -> io::Result<i32> {
        loop {
            if let Frame::Reply { xid: answered, error, .. } = self.next().await? {
                assert_eq!(answered, xid);
                return Ok(error);
            }
        }
    }

    pub(crate) async fn create(&mut self, path: &str) -> io::Result<i32> {
        let xid = self.send_create(path, false).await?;
        self.reply_to(xid).await
    }

    pub(crate) async fn create_sequential(&mut self, path: &str) -> io::Result<i32> {
        let xid = self.send_create_as(path, SEQUENTIAL).await?;
        self.reply_to(xid).await
    }

    pub(crate) async fn create_ephemeral(&mut self, path: &str) -> io::Result<i32> {
        let xid = self.send_create(path, true).await?;
        self.reply_to(xid).await
    }

    pub(crate) async fn exists(&mut self, path: &str, watch: bool) -> io::Result<bool> {
        let body = |out: &mut Vec<u8>| {
            out.string(path);
            out.bool(watch);
        };
        let xid = self.send(Op::Exists, body).await?;
        Ok(self.reply_to(xid).await? == 0)
    }

    pub(crate) async fn sync(&mut self) -> io::Result<i32> {
        let xid = self.send(Op::Sync, |out| out.string("/")).await?;
        self.reply_to(xid).await
    }

    pub(crate) async fn ping(&mut self) -> io::Result<()> {
        self.send_as(-2, Op::Ping, |_| {}).await?;
        assert_eq!(self.reply_to(-2).await?, 0);
        Ok(())
    }

    /// Reads to the end of the connection. Returns false if the server sends something first.
    pub(crate) async fn read_end(&mut self) -> bool {
        let mut one = [0; 1];
        let read = timeout(PATIENCE, self.stream.read(&mut one)).await;
        !matches!(read.expect("the connection stays open and silent"), Ok(1..))
    }
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let read = async {
        let length = stream.read_u32().await?;
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        Ok(payload)
    };
    timeout(PATIENCE, read).await.expect("the server is silent")
}
