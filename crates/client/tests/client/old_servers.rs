//! Servers that do not know what came later.

use crate::{proxy::Proxy, server::TestServer};
use ostler_client::{AddWatchMode, Client, CreateMode, ReadResult};

const CREATE2: i32 = 15;
const CREATE_CONTAINER: i32 = 19;
const MULTI_READ: i32 = 22;
const ADD_WATCH: i32 = 106;

#[tokio::test]
async fn what_is_missing_is_done_another_way() {
    let server = TestServer::start();
    let unknown = vec![CREATE2, CREATE_CONTAINER, MULTI_READ, ADD_WATCH];
    let proxy = Proxy::hiding(server.address, unknown).await;
    let client = Client::connect(&proxy.address.to_string()).await.unwrap();
    // create, and exists for the Stat.
    for path in ["/a", "/b"] {
        let made = client.create(path, b"x").await.unwrap();
        assert_eq!(Some(made.stat), client.exists(path).await.unwrap());
    }
    let made = client.create("/a/n-", b"").ephemeral_sequential().protected().await.unwrap();
    assert_eq!(made.stat.ephemeral_owner, client.session_id().unwrap().0);
    // Persistent parents where there are no containers.
    client.create("/c/d", b"").creating_container_parents().idempotent().await.unwrap();
    let refused = client.create("/box", b"").mode(CreateMode::Container).await.unwrap_err();
    assert!(refused.is_unimplemented(), "{refused}");
    let found = client.multi_read().get_data("/a").get_children("/c").get_data("/none").read().await.unwrap();
    assert!(matches!(&found[0], Ok(ReadResult::Data(data, _)) if data == "x"));
    assert!(matches!(&found[1], Ok(ReadResult::Children(names)) if names == &["d"]));
    assert!(found[2].as_ref().is_err_and(ostler_client::Error::is_no_node));
    // There is no other way to watch a tree; whoever asks is told so.
    let refused = client.add_watch("/a", AddWatchMode::PersistentRecursive).await.unwrap_err();
    assert!(refused.is_unimplemented(), "{refused}");
    client.get_data("/a").await.unwrap();
}
