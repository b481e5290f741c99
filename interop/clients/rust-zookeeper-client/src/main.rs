//! The `zookeeper-client` crate against the server at HOST:PORT.
//!
//! `HOST:PORT` runs every operation, watches and the lock recipe; `HOST:PORT hold PATH` keeps an ephemeral and says
//! when its session ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, CreateOptions, Error, EventType, LockPrefix, SessionState,
};

const SESSION: Duration = Duration::from_secs(3);
const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
const CONTAINER: CreateOptions<'static> = CreateMode::Container.with_acls(Acls::anyone_all());
const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
const SEQUENTIAL: CreateOptions<'static> = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [server] => everything(server).await,
        [server, hold, path] if hold == "hold" => keep(server, path).await,
        _ => Err("usage: HOST:PORT [hold PATH]".into()),
    }
}

async fn connect(server: &str) -> Result<Client, Error> {
    Client::connector().with_session_timeout(SESSION).connect(server).await
}

async fn everything(server: &str) -> Outcome {
    let (client, other) = (connect(server).await?, connect(server).await?);
    nodes(&client).await?;
    multis(&client).await?;
    access(&client).await?;
    watches(&client, &other).await?;
    locks(server).await?;
    println!("all operations work");
    Ok(())
}

async fn nodes(client: &Client) -> Outcome {
    let (stat, _) = client.create("/n", b"x", &PERSISTENT).await?;
    assert_eq!((stat.version, stat.data_length, stat.ephemeral_owner), (0, 1, 0));
    assert_eq!(client.create("/n", b"", &PERSISTENT).await.unwrap_err(), Error::NodeExists);
    assert_eq!(client.create("/no/parent", b"", &PERSISTENT).await.unwrap_err(), Error::NoNode);
    let (stat, _) = client.create("/n/e", b"e", &EPHEMERAL).await?;
    assert_eq!(stat.ephemeral_owner, client.session_id().0);
    let (_, sequence) = client.create("/n/s-", b"", &SEQUENTIAL).await?;
    assert_eq!(sequence.to_string(), "0000000001");
    client.create("/n/c", b"", &CONTAINER).await?;
    client.create("/n/t", b"", &PERSISTENT.clone().with_ttl(Duration::from_secs(60))).await?;
    assert_eq!(client.set_data("/n", b"y", Some(0)).await?.version, 1);
    assert_eq!(client.set_data("/n", b"z", Some(0)).await.unwrap_err(), Error::BadVersion);
    let (data, stat) = client.get_data("/n").await?;
    assert_eq!((data.as_slice(), stat.num_children), (b"y".as_slice(), 4));
    let mut children = client.list_children("/n").await?;
    children.sort();
    assert_eq!(children, ["c", "e", "s-0000000001", "t"]);
    assert_eq!(client.count_descendants_number("/n").await?, 4);
    assert_eq!(client.list_ephemerals("/").await?, ["/n/e"]);
    assert!(client.check_stat("/nowhere").await?.is_none());
    assert_eq!(client.delete("/n", None).await.unwrap_err(), Error::NotEmpty);
    client.sync("/").await?;

    let deep = client.clone().chroot("/n/c").expect("a path is a valid chroot");
    deep.mkdir("/d/e/e/p", &PERSISTENT).await?;
    assert!(client.check_stat("/n/c/d/e/e/p").await?.is_some());
    // requests are sent in the order of the calls, before anything is awaited
    let writes: Vec<_> = (0..100).map(|n| client.set_data("/n", format!("{n}").as_bytes(), None)).collect();
    let mut last = 1;
    for write in writes {
        let version = write.await?.version;
        assert_eq!(version, last + 1);
        last = version;
    }
    Ok(())
}

async fn multis(client: &Client) -> Outcome {
    let mut multi = client.new_multi_writer();
    multi.add_create("/m", b"1", &PERSISTENT)?;
    multi.add_set_data("/m", b"2", Some(0))?;
    multi.add_check_version("/m", 1)?;
    multi.commit().await?;
    let mut broken = client.new_multi_writer();
    broken.add_set_data("/m", b"refused", None)?;
    broken.add_check_version("/m", 9)?;
    assert!(broken.commit().await.is_err());
    let mut reads = client.new_multi_reader();
    reads.add_get_data("/m")?;
    reads.add_get_children("/n")?;
    assert_eq!(reads.commit().await?.len(), 2);
    assert_eq!(client.get_data("/m").await?.0, b"2");
    Ok(())
}

async fn access(client: &Client) -> Outcome {
    client.auth("digest", b"bob:secret").await?;
    let users = client.list_auth_users().await?;
    assert!(users.iter().any(|user| user.scheme() == "digest" && user.user() == "bob"));
    client.create("/acl", b"", &CreateMode::Persistent.with_acls(Acls::creator_all())).await?;
    let (acls, _) = client.get_acl("/acl").await?;
    assert_eq!(acls[0].scheme(), "digest");
    client.set_acl("/acl", &Acls::anyone_read(), Some(0)).await?;
    assert_eq!(client.set_data("/acl", b"no", None).await.unwrap_err(), Error::NoAuth);
    Ok(())
}

async fn watches(client: &Client, other: &Client) -> Outcome {
    let (_, created) = client.check_and_watch_stat("/w").await?;
    let mut tree = client.watch("/w", AddWatchMode::PersistentRecursive).await?;
    other.create("/w", b"1", &PERSISTENT).await?;
    assert_eq!(created.changed().await.event_type, EventType::NodeCreated);
    let (_, _, changed) = client.get_and_watch_data("/w").await?;
    let (_, children) = client.list_and_watch_children("/w").await?;
    other.set_data("/w", b"2", None).await?;
    assert_eq!(changed.changed().await.event_type, EventType::NodeDataChanged);
    other.create("/w/child", b"", &PERSISTENT).await?;
    assert_eq!(children.changed().await.event_type, EventType::NodeChildrenChanged);
    other.delete("/w/child", None).await?;
    other.delete("/w", None).await?;
    for (kind, path) in [
        (EventType::NodeCreated, "/w"),
        (EventType::NodeDataChanged, "/w"),
        (EventType::NodeCreated, "/w/child"),
        (EventType::NodeDeleted, "/w/child"),
        (EventType::NodeDeleted, "/w"),
    ] {
        let event = tree.changed().await;
        assert_eq!((event.event_type, event.path.as_str()), (kind, path));
    }
    drop(tree);
    Ok(())
}

/// Four clients take the crate's own lock ten times each; under it one reads a counter and writes it back plus one.
async fn locks(server: &str) -> Outcome {
    let first = connect(server).await?;
    first.create("/counted", b"0", &PERSISTENT).await?;
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (client, inside) = (connect(server).await?, inside.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let prefix = LockPrefix::new_curator("/locks", "lock-")?;
                let options = zookeeper_client::LockOptions::new(Acls::anyone_all())
                    .with_ancestor_options(CONTAINER)?;
                let lock = client.lock(prefix, b"", options).await?;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                let value: u32 = String::from_utf8(client.get_data("/counted").await?.0)?.parse()?;
                lock.set_data("/counted", (value + 1).to_string().as_bytes(), None).await?;
                inside.fetch_sub(1, Ordering::SeqCst);
            }
            Outcome::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    assert_eq!(first.get_data("/counted").await?.0, b"40");
    Ok(())
}

async fn keep(server: &str, path: &str) -> Outcome {
    let client = connect(server).await?;
    client.create(path, b"", &EPHEMERAL).await?;
    println!("holding");
    let mut states = client.state_watcher();
    while states.changed().await != SessionState::Expired {}
    println!("expired");
    Ok(())
}
