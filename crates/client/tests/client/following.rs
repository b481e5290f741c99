//! Clients whose list of servers changes.

use ostler_client::{Client, HostPort};
use ostler_testkit::{ServerId, TestEnsemble, TestOptions, TestServer};
use std::{sync::Arc, sync::Mutex, time::Duration};

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn a_follower_of_the_ensemble_survives_the_removal_of_its_only_known_server() {
    let options = TestOptions::new().setting("reconfigEnabled", "true").setting("skipACL", "yes");
    let mut ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    ensemble.until_settled().await.unwrap();
    let only = ensemble.member(ServerId(1)).unwrap().address();
    let builder = Client::builder(&only.to_string()).session_timeout(Duration::from_secs(20));
    let client = builder.follow_ensemble().connect().await.unwrap();
    client.create("/held", b"").ephemeral().await.unwrap();
    let (session, server) = (client.session_id(), client.connected_server());
    until("the list is not known", || client.servers().len() == 3).await;
    assert_eq!(client.connected_server(), server, "a good connection stays");

    let (_, changed) = client.using_namespace("app").unwrap().get_config().watch().await.unwrap();
    client.reconfig().leaving("1").await.unwrap();
    assert_eq!(changed.await.unwrap().path, "/zookeeper/config", "the watch is not below the namespace");
    until("the removal is not noticed", || client.servers().len() == 2).await;
    assert!(!client.servers().contains(server.as_ref().unwrap()));
    assert_eq!(client.session_id(), session);
    ensemble.kill(ServerId(1)).await.unwrap();
    client.set_data("/held", b"later").idempotent().await.unwrap();
    assert_eq!(client.session_id(), session);
    assert_ne!(client.connected_server(), server);

    // The next change is noticed on the new connection, too.
    client.inject_session_expiration().await.unwrap();
    client.wait_connected().await.unwrap();
    client.reconfig().leaving("9").await.ok();
    assert_eq!(client.servers().len(), 2);
}

#[tokio::test]
async fn a_configuration_without_servers_is_ignored() {
    let server = TestServer::start().await.unwrap();
    let client = Client::builder(&server.connect_string()).follow_ensemble().connect().await.unwrap();
    client.sync("/").await.unwrap();
    assert_eq!(client.servers(), [HostPort::new("127.0.0.1", server.address().port())]);
}

#[tokio::test]
async fn servers_are_looked_up_again_when_all_have_failed() {
    let (mut first, second) = (TestServer::start().await.unwrap(), TestServer::start().await.unwrap());
    let found = Arc::new(Mutex::new(first.address().port()));
    let source = {
        let found = found.clone();
        move || {
            let port = *found.lock().unwrap();
            async move { Ok(vec![HostPort::new("127.0.0.1", port)]) }
        }
    };
    let client = Client::builder("/app").servers_from(source).connect().await.unwrap();
    assert_eq!(client.namespace(), "/app");
    *found.lock().unwrap() = second.address().port();
    first.kill().await;
    until("the new server is not found", || {
        client.connected_server().is_some_and(|server| server.port == second.address().port())
    })
    .await;
}

#[tokio::test]
async fn a_source_that_fails_is_asked_again_and_named_in_the_error() {
    let source = || async { Err(std::io::Error::other("the directory is away")) };
    let builder = Client::builder("").servers_from(source).connection_timeout(Duration::from_millis(300));
    let error = builder.connect().await.unwrap_err().to_string();
    assert!(error.contains("the directory is away"), "{error}");
    assert!(Client::builder("").connect_lazy().is_err());
}

#[tokio::test]
async fn a_client_moves_off_a_server_with_its_session() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    ensemble.until_settled().await.unwrap();
    let client = Client::connect(&ensemble.connect_string()).await.unwrap();
    client.create("/held", b"0").ephemeral().await.unwrap();
    let (session, mut last) = (client.session_id(), client.connected_server());
    for _ in 0..3 {
        let writes: Vec<_> = (0..20).map(|_| client.set_data("/held", b"x").send()).collect();
        client.change_server();
        let after = client.get_data("/held").send();
        for write in writes {
            write.await.unwrap();
        }
        after.await.unwrap();
        let now = client.connected_server();
        assert_ne!(now, last);
        last = now;
    }
    assert_eq!(client.session_id(), session);
    assert_eq!(client.get_data("/held").await.unwrap().1.version, 60);
}

#[tokio::test]
async fn a_preferred_server_is_used_as_long_as_it_answers() {
    let mut ensemble = TestEnsemble::start(3).await.unwrap();
    ensemble.until_settled().await.unwrap();
    let near = ensemble.member(ServerId(2)).unwrap().address().port();
    let at_near = |client: &Client| client.connected_server().map(|server| server.port == near);
    for seed in 0..5 {
        let builder = Client::builder(&ensemble.connect_string()).seed(seed);
        let client = builder.prefer(move |server| server.port == near).connect().await.unwrap();
        assert_eq!(at_near(&client), Some(true));
        client.close().await;
    }
    let builder = Client::builder(&ensemble.connect_string()).session_timeout(Duration::from_secs(20));
    let client = builder.prefer(move |server| server.port == near).connect().await.unwrap();
    ensemble.kill(ServerId(2)).await.unwrap();
    client.sync("/").await.unwrap();
    assert_eq!(at_near(&client), Some(false));
    ensemble.restart(ServerId(2)).await.unwrap();
    ensemble.until_settled().await.unwrap();
    assert_eq!(at_near(&client), Some(false), "it stays");
    // A dial that fails leads to another server, and the client stays there until the next move.
    until("it does not return", || {
        let returned = at_near(&client) == Some(true);
        if !returned {
            client.change_server();
        }
        returned
    })
    .await;
}
