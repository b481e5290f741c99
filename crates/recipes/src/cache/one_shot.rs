//! A cache on watches that fire once, for servers before 3.6.

use crate::{
    cache::{CuratorCacheBuilder, NodeRead, READS_MAX, ReadAnswer, ReadKind, Shared, answer_of_error},
    until_answered::{event_unless_removed, until_answered, wait_after_refusals},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use ostler_client::{Client, EventKind, Result, Watch};
use tokio::time::sleep;

/// The signal that a znode must be read again.
enum ChangeSignal {
    Watch(Watch),
    /// The client may read the znode again. Servers send no event for a change of an ACL, so it is tried again and again.
    Readable,
}

/// Runs until the client is closed.
pub(crate) async fn run(cache: &CuratorCacheBuilder, shared: &Shared) -> Result<()> {
    shared.step(|model, effects| model.begin_sweep(effects));
    let (mut reads, mut signals) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        while reads.len() < READS_MAX {
            let Some(node_read) = shared.next_read() else { break };
            reads.push(read(&cache.client, &cache.path, node_read));
        }
        tokio::select! {
            biased;
            Some(seen) = signals.next() => {
                let (node_read, kind) = seen?;
                pass_event(shared, &node_read, kind);
            }
            Some(answered) = reads.next() => {
                let (node_read, answer, signal) = answered?;
                let answer = cache.without_unwanted_data(answer);
                // If the answer is too old, the znode is read again, and this read's watch is not needed.
                let used = shared.step(|model, effects| model.read_answered(&node_read, answer, effects));
                if let Some(signal) = signal.filter(|_| used) {
                    signals.push(until_changed(&cache.client, node_read, signal));
                }
            }
            // The root always has a signal or a read. Without both the client is closed.
            else => return Ok(()),
        }
    }
}

async fn until_changed(
    client: &Client,
    node_read: NodeRead,
    signal: ChangeSignal,
) -> Result<(NodeRead, EventKind)> {
    let kind = match signal {
        ChangeSignal::Watch(watch) => match (event_unless_removed(watch).await?, node_read.kind) {
            (Some(event), _) => event.kind,
            (None, ReadKind::Data) => EventKind::NodeDataChanged,
            (None, ReadKind::Children) => EventKind::NodeChildrenChanged,
        },
        ChangeSignal::Readable => {
            until_readable(client, &node_read.path).await?;
            EventKind::NodeDataChanged
        }
    };
    Ok((node_read, kind))
}

/// Waits until the client may read a znode, or the znode is gone.
pub(super) async fn until_readable(client: &Client, path: &str) -> Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        sleep(wait_after_refusals(tries)).await;
        let answer = until_answered(client, || client.get_data(path)).await;
        if !matches!(answer.map(|_| ReadAnswer::NoNode).or_else(answer_of_error)?, ReadAnswer::Refused(_)) {
            return Ok(());
        }
    }
}

fn pass_event(shared: &Shared, node_read: &NodeRead, kind: EventKind) {
    // A deletion fires both watches of a znode, and is passed on once.
    if node_read.kind == ReadKind::Data || kind == EventKind::NodeChildrenChanged {
        shared.step(|model, effects| model.watch_fired(kind, &node_read.path, effects));
    }
}

async fn read(
    client: &Client,
    root: &str,
    node_read: NodeRead,
) -> Result<(NodeRead, ReadAnswer, Option<ChangeSignal>)> {
    let answered = match node_read.kind {
        ReadKind::Data if node_read.path == root => read_root(client, root).await,
        ReadKind::Data => until_answered(client, || client.get_data(&node_read.path).watch())
            .await
            .map(|((data, stat), watch)| (ReadAnswer::Data(data, stat), Some(watch))),
        ReadKind::Children => {
            until_answered(client, || client.get_children_and_stat(&node_read.path).watch())
                .await
                .map(|((names, stat), watch)| (ReadAnswer::Children(names, stat), Some(watch)))
        }
    };
    let (answer, watch) = answered.or_else(|error| answer_of_error(error).map(|answer| (answer, None)))?;
    let signal = match answer {
        ReadAnswer::Refused(_) if node_read.kind == ReadKind::Data => Some(ChangeSignal::Readable),
        _ => watch.map(ChangeSignal::Watch),
    };
    Ok((node_read, answer, signal))
}

/// Reads the root's data. If the root does not exist, leaves a watch for its creation, because no watch of a parent
/// reports that.
async fn read_root(client: &Client, root: &str) -> Result<(ReadAnswer, Option<Watch>)> {
    loop {
        match until_answered(client, || client.get_data(root).watch()).await {
            Ok(((data, stat), watch)) => return Ok((ReadAnswer::Data(data, stat), Some(watch))),
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
        let (found, watch) = until_answered(client, || client.exists(root).watch()).await?;
        if found.is_none() {
            return Ok((ReadAnswer::NoNode, Some(watch)));
        }
    }
}
