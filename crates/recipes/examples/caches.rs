//! A cache of a tree, one of a znode's children and one of a single znode, while another client changes them. `cargo
//! run -p ostler-recipes --example caches` runs it against a server of its own; with a connect string, against that.

use ostler_client::{Client, Result};
use ostler_recipes::cache::{CacheEvent, CuratorCache, NodeCache, PathChildrenCache};
use ostler_testkit::TestServer;

const ROOT: &str = "/examples/config";

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let (reader, writer) = (Client::connect(&servers).await?, Client::connect(&servers).await?);
    writer.delete(ROOT).deleting_children().quietly().await?;
    writer.create("/examples/config/limits", "size=1").creating_parents().await?;

    let cache = CuratorCache::start(&reader, ROOT)?;
    let children = PathChildrenCache::start(&reader, ROOT)?;
    let limits = NodeCache::start(&reader, "/examples/config/limits")?;
    cache.initialized().await?;
    let mut events = cache.events();
    change(&writer).await?;
    while let Some(event) = events.next().await {
        println!("{}", told(&event));
        if matches!(&event, CacheEvent::Deleted(node) if node.path == ROOT) {
            break;
        }
    }
    // Other watches of the same client may be told a moment later.
    let (mut of_children, mut of_limits) = (children.events(), limits.events());
    while !children.children().is_empty() {
        of_children.next().await;
    }
    while limits.node().is_some() {
        of_limits.next().await;
    }
    println!("all caches are empty: {}", cache.is_empty());
    Ok(())
}

async fn change(writer: &Client) -> Result<()> {
    writer.set_data("/examples/config/limits", "size=2").await?;
    writer.create("/examples/config/limits/east", "size=3").await?;
    writer.delete(ROOT).deleting_children().await
}

fn told(event: &CacheEvent) -> String {
    match event {
        CacheEvent::Created(node) => format!("created {} with {:?}", node.path, node.data),
        CacheEvent::Changed { old, new } => {
            format!("changed {} from {:?} to {:?}", new.path, old.data, new.data)
        }
        CacheEvent::Deleted(node) => format!("deleted {}", node.path),
        other => format!("{other:?}"),
    }
}
