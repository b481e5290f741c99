//! A znode that comes back when somebody deletes it, one with a TTL, a group, and a set that its members divide. `cargo
//! run -p ostler-recipes --example nodes_and_groups` runs it against a server of its own; with a connect string,
//! against that.

use ostler_client::Client;
use ostler_recipes::{
    nodes::{GroupMember, PersistentNode, PersistentTtlNode},
    partitioner::SetPartitioner,
};
use ostler_testkit::{TestOptions, TestServer};
use std::{error::Error, time::Duration};
use tokio::try_join;

type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => {
            let options = TestOptions::new().setting("extendedTypesEnabled", "true");
            own.insert(TestServer::start_with(options).await?).connect_string()
        }
    };
    let (a, b) = try_join!(Client::connect(&servers), Client::connect(&servers))?;
    nodes(&a, &b).await?;
    group(&a, &b).await?;
    divided(&a, &b).await
}

async fn nodes(a: &Client, b: &Client) -> Done {
    let node = PersistentNode::start(a, "/examples/node", "kept")?;
    let path = node.created().await?;
    let mut creations = node.creations();
    b.delete(&path).await?;
    println!("node: b deletes it, and it is back: {:?}", creations.next().await);
    node.close().await;
    println!("node: closed, it is there: {}", b.exists(&path).await?.is_some());

    let node = PersistentTtlNode::start(a, "/examples/ttl", Duration::from_secs(60), "kept")?;
    match node.created().await {
        Ok(path) => println!("TTL node: {path} outlives its owner by 60 s"),
        Err(error) if error.is_unimplemented() => println!("TTL node: these servers have no TTLs"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn group(a: &Client, b: &Client) -> Done {
    let of_a = GroupMember::start(a, "/examples/group", "a", "data of a")?;
    let of_b = GroupMember::start(b, "/examples/group", "b", "data of b")?;
    try_join!(of_a.joined(), of_b.joined())?;
    let mut events = of_a.events();
    while of_a.members().len() < 2 {
        events.next().await;
    }
    println!("group: a sees {:?}", of_a.members());
    of_b.close().await;
    while of_a.members().len() > 1 {
        events.next().await;
    }
    println!("group: and then {:?}", of_a.members());
    of_a.close().await;
    Ok(())
}

async fn divided(a: &Client, b: &Client) -> Done {
    let shards = || ["1", "2", "3", "4", "5"].map(str::to_owned);
    let settle = Duration::from_millis(300);
    let mut of_a = SetPartitioner::start(a, "/examples/shards", "a", shards(), settle)?;
    let alone = of_a.acquire().await?;
    println!("set: a alone owns {:?}", alone.items());
    let mut of_b = SetPartitioner::start(b, "/examples/shards", "b", shards(), settle)?;
    println!("set: its share ends: {:?}", alone.ended().await);
    alone.release().await?;
    let (mine, yours) = try_join!(of_a.acquire(), of_b.acquire())?;
    println!("set: a owns {:?}, b {:?}", mine.items(), yours.items());
    println!("set: the token of 2 is {}", yours.token("2").ok_or("another one owns 2")?);
    try_join!(mine.release(), yours.release())?;
    Ok(())
}
