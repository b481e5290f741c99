//! Shares data with another process, which can be a Java one with Curator: `interop/recipes/data.py` runs this beside
//! `interop/recipes/Data.java`.
//!
//! `data HOST:PORT STEP ME OTHER` does its part of a step, prints what it has seen in the end, and ends with `done`.
#![allow(clippy::unwrap_used)]

use ostler_client::{Client, RetryPolicy};
use ostler_recipes::{
    barrier::{DistributedBarrier, DistributedDoubleBarrier},
    cache::CuratorCache,
    counter::{DistributedAtomicInteger, DistributedAtomicLong, SharedCount},
    discovery::{ServiceDiscovery, ServiceInstance},
    nodes::GroupMember,
    queue::{DistributedQueue, SimpleDistributedQueue},
};
use std::{
    convert::Infallible,
    error::Error,
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc::unbounded_channel;

const PATIENCE: Duration = Duration::from_secs(60);

type Done = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [servers, step, me, other] = &words[..] else { return Err("data HOST:PORT STEP ME OTHER".into()) };
    let client = Client::builder(servers).session_timeout(Duration::from_secs(10)).connect().await?;
    let work = async {
        match step.as_str() {
            "count" => count(&client, me).await,
            "long" => long(&client).await,
            "queue" => queue(&client, me, other).await,
            "cache" => cache(&client, me, other).await,
            "discovery" => discovery(&client, me).await,
            "barrier" => barrier(&client, me).await,
            "group" => group(&client, me).await,
            "compressed" => compressed(&client, me, other).await,
            _ => Err("no such step".into()),
        }
    };
    tokio::time::timeout(PATIENCE, work).await??;
    client.close().await;
    println!("done");
    Ok(())
}

/// Waits for the other one, so that nobody leaves too early.
async fn together(client: &Client, path: &str) -> Done {
    let mut both = DistributedDoubleBarrier::new(client, path, 2);
    both.enter().await?;
    both.leave().await?;
    Ok(())
}

/// Adds one by turns: this one to odd counts.
async fn count(client: &Client, me: &str) -> Done {
    let count = SharedCount::start(client, "/count", 0).await?;
    let mut changes = count.changes();
    loop {
        let now = count.versioned_value()?;
        let turn = if now.value % 2 == 0 { "java" } else { "rust" };
        if now.value >= 40 {
            break;
        }
        if turn == me {
            count.try_set(&now, now.value + 1).await?;
        } else {
            changes.next().await.ok_or("closed")??;
        }
    }
    println!("count {}", count.count()?);
    Ok(())
}

/// Both add at once.
async fn long(client: &Client) -> Done {
    let retry = RetryPolicy::forever(Duration::from_millis(2));
    let long = DistributedAtomicLong::new(client, "/long", retry);
    let integer = DistributedAtomicInteger::new(client, "/integer", retry);
    for _ in 0..50 {
        assert!(long.add(3).await?.succeeded && integer.decrement().await?.succeeded);
    }
    together(client, "/long-both").await?;
    println!("long {} integer {}", long.get().await?, integer.get().await?);
    Ok(())
}

/// Each takes what the other puts in.
async fn queue(client: &Client, me: &str, other: &str) -> Done {
    let (to, mut from) = unbounded_channel::<String>();
    let hand = || {
        let to = to.clone();
        move |item: ostler_client::Bytes| {
            let _ = to.send(String::from_utf8_lossy(&item).into_owned());
            async { Ok::<_, Infallible>(()) }
        }
    };
    let out = DistributedQueue::builder(client, &format!("/queue-{me}"))
        .lock_path(&format!("/locks-{me}"))
        .build()
        .await?;
    let priorities =
        DistributedQueue::builder(client, &format!("/priorities-{me}")).build_priority_queue(1).await?;
    let ids = DistributedQueue::builder(client, &format!("/ids-{me}")).build_id_queue().await?;
    let delays = DistributedQueue::builder(client, &format!("/delays-{me}")).build_delay_queue().await?;
    let simple = SimpleDistributedQueue::new(client, &format!("/simple-{me}"));
    for item in ["1", "2", "3"] {
        out.put(format!("{me} {item}")).await?;
        simple.offer(format!("{me} simple {item}")).await?;
    }
    out.put_multi(&[b"4", b"5"]).await?;
    for (item, priority) in [("last", 7), ("first", -7), ("middle", 0)] {
        priorities.put(item, priority).await?;
    }
    for (item, id) in [("a", "keep"), ("b", "drop"), ("c", "keep")] {
        ids.put(item, id).await?;
    }
    delays.put("later", SystemTime::now() + Duration::from_millis(300)).await?;
    delays.put("now", SystemTime::now()).await?;
    together(client, "/queue-full").await?;

    let removed = DistributedQueue::builder(client, &format!("/ids-{other}"))
        .build_id_queue()
        .await?
        .remove("drop")
        .await?;
    println!("removed {removed}");
    let input =
        DistributedQueue::builder(client, &format!("/queue-{other}")).lock_path(&format!("/locks-{other}"));
    let consumer = input.build().await?.consume(hand());
    print_items("plain", &mut from, 5).await?;
    drop(consumer);
    let input =
        DistributedQueue::builder(client, &format!("/priorities-{other}")).build_priority_queue(1).await?;
    let consumer = input.consume(hand());
    print_items("priority", &mut from, 3).await?;
    drop(consumer);
    let consumer =
        DistributedQueue::builder(client, &format!("/ids-{other}")).build_id_queue().await?.consume(hand());
    print_items("id", &mut from, 2).await?;
    drop(consumer);
    let consumer = DistributedQueue::builder(client, &format!("/delays-{other}"))
        .build_delay_queue()
        .await?
        .consume(hand());
    print_items("delay", &mut from, 2).await?;
    drop(consumer);
    let input = SimpleDistributedQueue::new(client, &format!("/simple-{other}"));
    for _ in 0..3 {
        println!("simple {}", String::from_utf8_lossy(&input.take().await?));
    }
    together(client, "/queue-empty").await
}

async fn print_items(
    what: &str,
    from: &mut tokio::sync::mpsc::UnboundedReceiver<String>,
    count: usize,
) -> Done {
    for _ in 0..count {
        println!("{what} {}", from.recv().await.ok_or("no item")?);
    }
    Ok(())
}

/// Both change a tree, and both caches end up the same.
async fn cache(client: &Client, me: &str, other: &str) -> Done {
    let cache = CuratorCache::start(client, "/tree")?;
    cache.initialized().await?;
    for number in 0..20 {
        let path = format!("/tree/{me}/{number}");
        client.create(&path, b"new").creating_parents().await?;
        client.set_data(&path, format!("{me} {number}").as_bytes()).await?;
        if number % 2 == 0 {
            client.delete(&path).await?;
        }
    }
    client.create(&format!("/tree/{me}-done"), b"").await?;
    let mut events = cache.events();
    while cache.get(&format!("/tree/{other}-done")).is_none() || cache.len() != 25 {
        events.next().await.ok_or("closed")?;
    }
    for node in cache.nodes() {
        println!("{} {}", node.path, String::from_utf8_lossy(&node.data));
    }
    together(client, "/cache-both").await
}

/// Both register, and both find both.
async fn discovery(client: &Client, me: &str) -> Done {
    let services = ServiceDiscovery::<String>::new(client, "/services");
    let mut instance = ServiceInstance::new("svc", &format!("{me}.host"), 80);
    instance.id = me.to_owned();
    instance.ssl_port = Some(443);
    instance.payload = Some(format!("payload of {me}"));
    instance.uri_spec = Some("{scheme}://{address}:{ssl-port}".parse()?);
    services.register(instance).await?;
    let provider = services.provider("svc").start().await?;
    let mut changes = provider.cache().changes();
    while provider.all_instances().len() < 2 {
        changes.next().await.ok_or("closed")?;
    }
    for instance in provider.all_instances() {
        let payload = instance.payload.as_deref().unwrap_or("none");
        let uri = instance.build_uri(&[]).unwrap_or_default();
        println!("{} {uri} {payload} {:?}", instance.id, instance.service_type);
    }
    together(client, "/discovery-both").await?;
    services.close().await;
    Ok(())
}

/// One waits for the other to remove a barrier; then both enter and leave a double one.
async fn barrier(client: &Client, me: &str) -> Done {
    let barrier = DistributedBarrier::new(client, &format!("/barrier-{me}"));
    barrier.set().await?;
    together(client, "/barrier-set").await?;
    let other = if me == "rust" { "java" } else { "rust" };
    DistributedBarrier::new(client, &format!("/barrier-{other}")).remove().await?;
    barrier.wait().await?;
    println!("barrier passed");
    Ok(())
}

/// Each reads what the other has compressed.
async fn compressed(client: &Client, me: &str, other: &str) -> Done {
    let (mine, theirs) = (format!("/compressed-{me}"), format!("/compressed-{other}"));
    client.create(&mine, &format!("data of {me} ").repeat(200)).compressed().await?;
    together(client, "/compressed-created").await?;
    let (created, stat) = client.get_data(&theirs).decompressed().await?;
    let fewer = (stat.data_length as usize) < created.len();
    println!("{} bytes, stored in fewer: {fewer}", created.len());
    together(client, "/compressed-read").await?;
    client.set_data(&mine, &format!("new data of {me}")).compressed().await?;
    together(client, "/compressed-set").await?;
    let (changed, _) = client.get_data(&theirs).decompressed().await?;
    println!("{}", String::from_utf8_lossy(&changed));
    Ok(())
}

/// Both are members, and both know it.
async fn group(client: &Client, me: &str) -> Done {
    let member = GroupMember::start(client, "/group", me, format!("data of {me}"))?;
    let mut events = member.events();
    while member.members().len() < 2 {
        events.next().await.ok_or("closed")?;
    }
    for (id, data) in member.members() {
        println!("{id} {}", String::from_utf8_lossy(&data));
    }
    together(client, "/group-both").await?;
    member.close().await;
    Ok(())
}
