//! Made-up members, each at a port of its own.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// How a made-up server answers.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// It takes connections and says nothing.
    Silent,
    /// It sends one byte each 50 ms.
    Slow,
    /// It sends these bytes, and closes the connection.
    Says(Vec<u8>),
    /// It sends bytes as long as somebody takes them.
    Endless,
    /// It answers four-letter words.
    Words(fn(&str) -> String),
}

impl Manner {
    /// An HTTP answer.
    pub(crate) fn http(status: &str, body: &str) -> Manner {
        let length = body.len();
        Manner::Says(
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
                .into_bytes(),
        )
    }
}

/// A made-up server. It ends when it is dropped.
pub(crate) struct MadeUp {
    task: JoinHandle<()>,
    connections: Arc<AtomicUsize>,
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MadeUp {
    pub(crate) async fn at(port: u16, manner: Manner) -> MadeUp {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = connections.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, manner.clone()));
            }
        });
        MadeUp { task, connections }
    }

    /// How many connections it has accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, manner: Manner) {
    let mut request = vec![0; 4096];
    let taken = stream.read(&mut request).await.unwrap_or(0);
    match manner {
        Manner::Silent => tokio::time::sleep(Duration::from_secs(600)).await,
        Manner::Slow => {
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".iter().cycle() {
                if stream.write_all(&[*byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Manner::Says(bytes) => drop(stream.write_all(&bytes).await),
        Manner::Endless => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let mut going = stream.write_all(head).await.is_ok();
            let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
            while going {
                going = stream.write_all(&chunk).await.is_ok();
            }
        }
        Manner::Words(answer) => {
            let word = String::from_utf8_lossy(&request[..taken]).into_owned();
            drop(stream.write_all(answer(&word).as_bytes()).await);
        }
    }
    let _ = stream.shutdown().await;
}
