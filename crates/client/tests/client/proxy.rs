//! A proxy between client and server that closes the connection at a given message.

use ostler_client::ErrorCode;
use ostler_proto::request::{MultiOp, Request};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::{Mutex, watch},
    task::JoinHandle,
};

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    server: SocketAddr,
    unknown: Vec<i32>,
    /// Messages that may still pass before the connection is closed once; far below zero for no limit.
    left: AtomicI64,
    /// The value of `left` after a cut.
    left_after_cut: AtomicI64,
    cuts: AtomicUsize,
    passed: AtomicUsize,
    shut: AtomicBool,
    cut: watch::Sender<u64>,
}

const NO_LIMIT: i64 = i64::MIN / 2;

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Proxy {
        Proxy::hiding(server, Vec::new()).await
    }

    /// A proxy that answers these operations as a server does that does not know them.
    pub(crate) async fn hiding(server: SocketAddr, unknown: Vec<i32>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, _) = watch::channel(0);
        let shared = Arc::new(Shared {
            server,
            unknown,
            left: AtomicI64::new(NO_LIMIT),
            left_after_cut: AtomicI64::new(NO_LIMIT),
            cuts: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            shut: AtomicBool::new(false),
            cut,
        });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Proxy { address, shared, task }
    }

    /// Loses the connection instead of letting message number `messages` from now through, in either direction.
    pub(crate) fn cut_at(&self, messages: i64) {
        self.shared.left.store(messages, SeqCst);
    }

    /// After each cut that was set, sets another one this number of messages later.
    pub(crate) fn cut_again_after(&self, messages: i64) {
        self.shared.left_after_cut.store(messages, SeqCst);
    }

    /// The number of cuts that were set and have happened.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts.load(SeqCst)
    }

    /// Loses the connection now.
    pub(crate) fn cut(&self) {
        self.shared.cut.send_modify(|count| *count += 1);
    }

    /// Closes new connections at once, or lets them through again.
    pub(crate) fn shut(&self, shut: bool) {
        self.shared.shut.store(shut, SeqCst);
    }

    /// Whether a cut that was set has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.shared.left.load(SeqCst) <= 0
    }

    /// Messages that have passed, pings aside.
    pub(crate) fn passed(&self) -> usize {
        self.shared.passed.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        if shared.shut.load(SeqCst) {
            continue;
        }
        let Ok(server) = TcpStream::connect(shared.server).await else { continue };
        tokio::spawn(pass(client, server, shared.clone()));
    }
}

async fn pass(client: TcpStream, server: TcpStream, shared: Arc<Shared>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let mut cut = shared.cut.subscribe();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (to_client, to_server) = (Mutex::new(to_client), Mutex::new(to_server));
    tokio::select! {
        _ = cut.changed() => {}
        () = pass_frames(from_client, &to_server, &shared, Some(&to_client)) => {}
        () = pass_frames(from_server, &to_client, &shared, None) => {}
    }
}

impl Shared {
    /// The error for a request that the server should not know: of its own, or of a multi with such an operation.
    fn refusal(&self, request: &[u8]) -> Option<ErrorCode> {
        let (op, body) = request.split_first_chunk().unwrap();
        let op = i32::from_be_bytes(*op);
        if self.unknown.contains(&op) {
            return Some(ErrorCode::Unimplemented);
        }
        let Request::Multi(ops) = Request::read(op, body) else { return None };
        let hidden = |op: &MultiOp<'_>| match op {
            MultiOp::Create(create) => self.unknown.contains(&create.op.code()),
            _ => false,
        };
        ops.iter().any(hidden).then_some(ErrorCode::MarshallingError)
    }
}

/// With `back`, requests that the server should not know are refused there, as old servers do.
async fn pass_frames(
    mut from: OwnedReadHalf,
    to: &Mutex<OwnedWriteHalf>,
    shared: &Shared,
    back: Option<&Mutex<OwnedWriteHalf>>,
) {
    let mut first = true;
    loop {
        let Ok(length) = from.read_u32().await else { return };
        let mut frame = vec![0; length as usize + 4];
        frame[..4].copy_from_slice(&length.to_be_bytes());
        if from.read_exact(&mut frame[4..]).await.is_err() {
            return;
        }
        let ping = frame[4..8] == (-2_i32).to_be_bytes();
        if !ping && shared.left.fetch_sub(1, SeqCst) == 1 {
            shared.cuts.fetch_add(1, SeqCst);
            let again = shared.left_after_cut.load(SeqCst);
            if again > 0 {
                shared.left.store(again, SeqCst);
            }
            return;
        }
        shared.passed.fetch_add(usize::from(!ping), SeqCst);
        if let Some(back) = back.filter(|_| !std::mem::take(&mut first))
            && let Some(refusal) = shared.refusal(&frame[8..])
        {
            let mut answer = vec![0, 0, 0, 16];
            answer.extend(&frame[4..8]);
            answer.extend((-1_i64).to_be_bytes());
            answer.extend(refusal.code().to_be_bytes());
            let _ = back.lock().await.write_all(&answer).await;
            match refusal {
                // After that they end the connection.
                ErrorCode::Unimplemented => return,
                _ => continue,
            }
        }
        if to.lock().await.write_all(&frame).await.is_err() {
            return;
        }
    }
}
