//! Proxies at the servers' own addresses.

use crate::client::{Client, Frame};
use ostler_proto::op::Op;
use ostler_testkit::{Direction, Mode, TestEnsemble, TestOptions, TestServer};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const SHORT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(20);

async fn ask(server: SocketAddr, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

fn options() -> TestOptions {
    TestOptions::new().client_proxies()
}

#[tokio::test]
async fn clients_are_cut_off_at_the_servers_own_address() {
    let server = TestServer::start_with(options()).await.unwrap();
    let proxy = server.client_proxy().unwrap();
    assert_eq!(proxy.address(), server.address());
    assert_ne!(server.direct_address(), server.address());
    let mut client = Client::open(server.address()).await.unwrap();
    let mut direct = Client::open(server.direct_address()).await.unwrap();
    proxy.block();
    assert!(client.read_end().await);
    assert!(Client::open(server.address()).await.is_err());
    assert_eq!(direct.create("/a").await.unwrap(), 0);
    proxy.heal();
    let again = Client::reopen(server.address(), &client).await.unwrap();
    assert_eq!(again.session, client.session);
}

#[tokio::test]
async fn without_the_option_there_is_no_proxy() {
    let server = TestServer::start().await.unwrap();
    assert!(server.client_proxy().is_none());
    assert_eq!(server.direct_address(), server.address());
}

#[tokio::test]
async fn a_server_is_behind_its_proxy_after_a_restart_too() {
    let mut server = TestServer::start_with(options()).await.unwrap();
    server.kill().await;
    assert!(Client::open(server.address()).await.is_err());
    server.restart().await.unwrap();
    let mut client = Client::open(server.address()).await.unwrap();
    server.client_proxy().unwrap().block();
    assert!(client.read_end().await);
}

/// A client that reads the addresses of the servers from `/zookeeper/config` does not get round the proxies.
#[tokio::test]
async fn an_ensemble_gives_out_the_addresses_of_the_proxies() {
    let ensemble = TestEnsemble::start_with(3, options()).await.unwrap();
    let mut client = Client::open(ensemble.addresses()[0]).await.unwrap();
    let body = |out: &mut Vec<u8>| {
        use ostler_proto::jute::Writer;
        out.string("/zookeeper/config");
        out.bool(false);
    };
    client.send(Op::GetData, body).await.unwrap();
    let Frame::Reply { error: 0, body, .. } = client.next().await.unwrap() else { panic!("no data") };
    let text = String::from_utf8_lossy(&body).into_owned();
    for id in ensemble.ids() {
        let server = ensemble.member(id).unwrap();
        assert!(text.contains(&format!(";{}", server.address())), "{text}");
        assert!(!text.contains(&server.direct_address().to_string()), "{text}");
    }
}

#[tokio::test]
async fn four_letter_words_pass_unless_the_network_is_cut_or_silent() {
    let server = TestServer::start_with(options()).await.unwrap();
    let proxy = server.client_proxy().unwrap();
    assert_eq!(ask(server.address(), "ruok").await.unwrap(), "imok");
    assert!(ask(server.address(), "srvr").await.unwrap().contains("Mode: standalone"));
    assert_eq!(proxy.requests(), 0, "a word has no number");
    for direction in [Direction::ToServer, Direction::ToClient] {
        proxy.silence(direction);
        let address = server.address();
        let asking = tokio::spawn(async move { ask(address, "ruok").await });
        tokio::time::sleep(SHORT).await;
        assert!(!asking.is_finished(), "{direction:?}");
        proxy.heal();
        assert_eq!(timeout(PATIENCE, asking).await.unwrap().unwrap().unwrap(), "imok");
    }
    proxy.block();
    assert_ne!(ask(server.address(), "ruok").await.unwrap_or_default(), "imok");
}

#[tokio::test]
async fn a_connection_whose_server_goes_before_the_first_byte_is_closed() {
    let mut server = TestServer::start_with(options()).await.unwrap();
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    // The proxy is connected to the server once it has answered another client.
    Client::open(server.address()).await.unwrap();
    server.kill().await;
    let end = timeout(PATIENCE, silent.read(&mut [0; 1])).await.unwrap();
    assert!(!matches!(end, Ok(1..)));
}

#[tokio::test]
async fn a_mode_is_shown_as_srvr_has_it() {
    let options = options().observers(1);
    let mut ensemble = TestEnsemble::start_with(4, options).await.unwrap();
    let leader = ensemble.wait_for_leader().await.unwrap();
    for id in ensemble.ids().collect::<Vec<_>>() {
        let server = ensemble.member(id).unwrap();
        let mode = server.mode().unwrap();
        assert!(mode.serves());
        assert_eq!(mode == Mode::Leader, id == leader);
        assert_eq!(mode == Mode::Observer, id.0 == 4);
        let text = ask(server.direct_address(), "srvr").await.unwrap();
        assert!(text.contains(&format!("Mode: {mode}\n")), "{mode}: {text}");
    }
    for id in [1, 2, 3].map(ostler_testkit::ServerId).into_iter().filter(|id| *id != leader) {
        ensemble.kill(id).await.unwrap();
    }
    let looking = async {
        while ensemble.member(leader).unwrap().mode().unwrap() != Mode::Looking {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap();
    assert!(!Mode::Looking.serves() && !Mode::ReadOnly.serves());
}

#[tokio::test]
async fn servers_make_their_folders_in_the_folder_of_the_options() {
    let outside = TestServer::start().await.unwrap();
    let folder = outside.data_dir().join("inner");
    std::fs::create_dir(&folder).unwrap();
    let server = TestServer::start_with(options().folder(&folder)).await.unwrap();
    assert!(server.data_dir().starts_with(&folder));
    drop(server);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
