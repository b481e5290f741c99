//! A cache on watches that fire once, for servers before 3.6.

use crate::{
    cache::{Answer, Ask, CuratorCacheBuilder, READS_MAX, Shared, What, refusal},
    until_answered::until_answered,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use ostler_client::{Client, EventKind, Result, Watch, WatchedEvent};

/// Runs until the client is closed.
pub(crate) async fn run(cache: &CuratorCacheBuilder, shared: &Shared) -> Result<()> {
    shared.step(|model, effects| model.gap(effects));
    let (mut reads, mut watches) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        while reads.len() < READS_MAX
            && let Some(ask) = shared.next_ask()
        {
            reads.push(read(&cache.client, &cache.path, ask));
        }
        tokio::select! {
            biased;
            Some((what, event)) = watches.next() => fired(shared, what, event?),
            Some(answered) = reads.next() => {
                let (ask, answer, watch) = answered?;
                let answer = match answer {
                    Answer::Data(data, stat) => Answer::Data(cache.kept(data), stat),
                    answer => answer,
                };
                // An answer that is too old is asked for again, and its watch is not needed.
                let used = shared.step(|model, effects| model.answered(&ask, answer, effects));
                if used && let Some(watch) = watch {
                    watches.push(fires(ask.what, watch));
                }
            }
            // The root always has a watch or a read; without both the client has ended.
            else => return Ok(()),
        }
    }
}

async fn fires(what: What, watch: Watch) -> (What, Result<WatchedEvent>) {
    (what, watch.await)
}

fn fired(shared: &Shared, what: What, event: WatchedEvent) {
    // A deletion fires both watches of a znode, and is to be heard of once.
    if what == What::Data || event.kind == EventKind::NodeChildrenChanged {
        shared.step(|model, effects| model.changed(event.kind, &event.path, effects));
    }
}

async fn read(client: &Client, root: &str, ask: Ask) -> Result<(Ask, Answer, Option<Watch>)> {
    let answered = match ask.what {
        What::Data if ask.path == root => read_root(client, root).await,
        What::Data => until_answered(client, || client.get_data(&ask.path).watch())
            .await
            .map(|((data, stat), watch)| (Answer::Data(data, stat), Some(watch))),
        What::Children => until_answered(client, || client.get_children_and_stat(&ask.path).watch())
            .await
            .map(|((names, stat), watch)| (Answer::Children(names, stat), Some(watch))),
    };
    let (answer, watch) = answered.or_else(|error| refusal(error).map(|answer| (answer, None)))?;
    Ok((ask, answer, watch))
}

/// Nobody but a watch of its own tells of the root's creation.
async fn read_root(client: &Client, root: &str) -> Result<(Answer, Option<Watch>)> {
    loop {
        match until_answered(client, || client.get_data(root).watch()).await {
            Ok(((data, stat), watch)) => return Ok((Answer::Data(data, stat), Some(watch))),
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
        let (found, watch) = until_answered(client, || client.exists(root).watch()).await?;
        if found.is_none() {
            return Ok((Answer::NoNode, Some(watch)));
        }
    }
}
