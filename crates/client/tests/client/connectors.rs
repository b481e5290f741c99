//! Clients with a connector of the application ([`ostler_client::ClientBuilder::connector`]).

use crate::server::TestServer;
use ostler_client::{Client, Error, HostPort};
use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{DuplexStream, copy_bidirectional, duplex},
    net::TcpStream,
};

/// One end of a pipe in this process. The bytes at its other end are passed on to a server.
fn pipe_to(server: std::net::SocketAddr) -> DuplexStream {
    let (near, mut far) = duplex(4 << 10);
    tokio::spawn(async move {
        let mut tcp = TcpStream::connect(server).await.unwrap();
        let _ = copy_bidirectional(&mut far, &mut tcp).await;
    });
    near
}

#[tokio::test]
async fn a_session_runs_over_a_custom_connector() {
    let server = TestServer::start();
    let address = server.address;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let names = asked.clone();
    let connect = move |server: HostPort| {
        let tries = {
            let mut names = names.lock().unwrap();
            names.push(server);
            names.len()
        };
        async move {
            // The first attempt fails, and the client makes another one.
            if tries == 1 { Err(io::Error::other("not yet")) } else { Ok(pipe_to(address)) }
        }
    };
    let client = Client::builder("zoo.example:2182/app").connector(connect).connect().await.unwrap();
    let large = vec![5; 500_000];
    client.create("/large", &large).creating_parents().await.unwrap();
    assert_eq!(client.get_data("/large").await.unwrap().0, large);
    client.close().await;
    assert_eq!(*asked.lock().unwrap(), vec![HostPort::new("zoo.example", 2182); 2]);
}

#[tokio::test(start_paused = true)]
async fn connect_without_success_returns_the_last_error() {
    let connect = |_| async { Err::<DuplexStream, _>(io::Error::other("refused by the proxy")) };
    let builder = Client::builder("zoo.example:2181").connector(connect);
    let error = builder.connection_timeout(Duration::from_secs(5)).connect().await.unwrap_err();
    assert!(
        matches!(&error, Error::Unreachable { last_error, .. } if last_error.contains("refused by the proxy")),
        "{error}"
    );
}

/// An attempt that takes too long is given up, and another server is tried.
#[tokio::test(start_paused = true)]
async fn an_attempt_of_a_connector_that_never_ends_is_given_up() {
    let attempts = Arc::new(Mutex::new(0));
    let counted = attempts.clone();
    let connect = move |_| {
        *counted.lock().unwrap() += 1;
        std::future::pending::<io::Result<DuplexStream>>()
    };
    let builder = Client::builder("one:2181,two:2181").connector(connect);
    let error = builder.connection_timeout(Duration::from_secs(60)).connect().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(*attempts.lock().unwrap() > 1);
}
