//! Keeps this server's ports for other servers at the addresses of the configuration, also when a reconfiguration changes
//! them.

use super::{
    address_book::AddressBook,
    addresses::{self, Port},
};
use std::time::Duration;
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

/// The time between two attempts to listen, if all addresses are in use or unknown.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Accepts at `listeners`, and after each change of this server's addresses at the new ones, until it is dropped.
/// Connections that were made stay.
pub(super) async fn accept<F>(
    book: &AddressBook,
    port: Port,
    on_all: bool,
    listeners: Vec<TcpListener>,
    accept_at: impl Fn(TcpListener) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut own = book.own();
    let addresses_of =
        |own: &Option<_>| own.as_ref().map(|own| addresses::listen_addresses(own, port, on_all));
    let mut bound = addresses_of(&own.borrow_and_update());
    let mut accepting: JoinSet<()> = listeners.into_iter().map(&accept_at).collect();
    loop {
        if accepting.is_empty() {
            // The addresses may be free by then.
            let _ = timeout(LISTEN_AGAIN_AFTER, own.changed()).await;
        } else if own.changed().await.is_err() {
            return;
        }
        // A server that was removed keeps its ports: it may still lead until the others know.
        let Some(member) = own.borrow_and_update().clone() else { continue };
        let wanted = Some(addresses::listen_addresses(&member, port, on_all));
        if wanted == bound && !accepting.is_empty() {
            continue;
        }
        accepting.shutdown().await;
        bound = wanted;
        match addresses::listen(&member, port, on_all).await {
            Ok(listeners) => accepting = listeners.into_iter().map(&accept_at).collect(),
            Err((address, error)) => {
                tracing::error!(
                    %address, %error,
                    "cannot listen for other servers at the addresses that the configuration has for this server now: it is tried \
                     again"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::{
        id::ServerId,
        membership::{Member, Membership, PeerAddress},
    };
    use std::net::SocketAddr;
    use tokio::{net::TcpStream, sync::mpsc};

    fn at(port: u16) -> Membership {
        let address = PeerAddress { host: "127.0.0.1".into(), quorum_port: port, election_port: 1 };
        let member = Member { addresses: vec![address], observer: false, client: None };
        let mut all = Membership::default();
        all.servers.insert(ServerId(1), member);
        all
    }

    #[tokio::test]
    async fn a_moved_server_accepts_at_its_new_port_only() {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let old = first.local_addr().unwrap();
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let new = held.local_addr().unwrap();
        let book = AddressBook::new(ServerId(1), [&at(old.port())]);
        let (accepted, mut accepted_at) = mpsc::unbounded_channel::<SocketAddr>();
        let accept_at = |listener: TcpListener| {
            let accepted = accepted.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = accepted.send(stream.local_addr().unwrap());
                }
            }
        };
        let moves = async {
            TcpStream::connect(old).await.unwrap();
            assert_eq!(accepted_at.recv().await, Some(old));
            book.replace([&at(new.port())]);
            while TcpStream::connect(old).await.is_ok() {}
            drop(held);
            while TcpStream::connect(new).await.is_err() {
                tokio::task::yield_now().await;
            }
            while accepted_at.recv().await != Some(new) {}
        };
        tokio::select! {
            () = accept(&book, Port::Quorum, false, vec![first], accept_at) => panic!("it listens to the end"),
            () = moves => {}
        }
    }
}
