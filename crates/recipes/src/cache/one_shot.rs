//! A cache on watches that fire once, for servers before 3.6.

use crate::{
    cache::{Answer, Ask, CuratorCacheBuilder, READS_MAX, Shared, What, refusal},
    until_answered::{refused_for, until_answered},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use ostler_client::{Client, EventKind, Result, Watch};
use tokio::time::sleep;

/// What tells that a znode is to be looked at again.
enum Sign {
    Watch(Watch),
    /// Nobody tells when it may be read: it has to be asked for.
    Allowed,
}

/// Runs until the client is closed.
pub(crate) async fn run(cache: &CuratorCacheBuilder, shared: &Shared) -> Result<()> {
    shared.step(|model, effects| model.gap(effects));
    let (mut reads, mut signs) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        while reads.len() < READS_MAX
            && let Some(ask) = shared.next_ask()
        {
            reads.push(read(&cache.client, &cache.path, ask));
        }
        tokio::select! {
            biased;
            Some(seen) = signs.next() => {
                let (ask, kind) = seen?;
                changed(shared, &ask, kind);
            }
            Some(answered) = reads.next() => {
                let (ask, answer, sign) = answered?;
                let answer = match answer {
                    Answer::Data(data, stat) => Answer::Data(cache.kept(data), stat),
                    answer => answer,
                };
                // An answer that is too old is asked for again, and its watch is not needed.
                let used = shared.step(|model, effects| model.answered(&ask, answer, effects));
                if used && let Some(sign) = sign {
                    signs.push(seen(&cache.client, ask, sign));
                }
            }
            // The root always has a sign or a read; without both the client has ended.
            else => return Ok(()),
        }
    }
}

async fn seen(client: &Client, ask: Ask, sign: Sign) -> Result<(Ask, EventKind)> {
    let kind = match sign {
        Sign::Watch(watch) => watch.await?.kind,
        Sign::Allowed => {
            allowed(client, &ask.path).await?;
            EventKind::NodeDataChanged
        }
    };
    Ok((ask, kind))
}

/// Waits until a znode may be read, or is gone.
pub(super) async fn allowed(client: &Client, path: &str) -> Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        sleep(refused_for(tries)).await;
        let answer = until_answered(client, || client.get_data(path)).await;
        if !matches!(answer.map(|_| Answer::NoNode).or_else(refusal)?, Answer::Refused(_)) {
            return Ok(());
        }
    }
}

fn changed(shared: &Shared, ask: &Ask, kind: EventKind) {
    // A deletion fires both watches of a znode, and is to be heard of once.
    if ask.what == What::Data || kind == EventKind::NodeChildrenChanged {
        shared.step(|model, effects| model.changed(kind, &ask.path, effects));
    }
}

async fn read(client: &Client, root: &str, ask: Ask) -> Result<(Ask, Answer, Option<Sign>)> {
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
    let sign = match answer {
        Answer::Refused(_) if ask.what == What::Data => Some(Sign::Allowed),
        _ => watch.map(Sign::Watch),
    };
    Ok((ask, answer, sign))
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
