//! A cache on a persistent watch.

use crate::{
    cache::{Answer, Ask, CuratorCacheBuilder, READS_MAX, Shared, What, refusal},
    until_answered::until_answered,
};
use futures_util::{Stream, StreamExt, stream::FuturesUnordered};
use ostler_client::{AddWatchMode, Client, Result, WatchStream, WatchedEvent};
use std::{future::poll_fn, pin::Pin, task::Poll};
use tokio::task::coop::unconstrained;

/// Runs until the client is closed.
pub(crate) async fn run(cache: &CuratorCacheBuilder, shared: &Shared) -> Result<()> {
    let (client, path) = (&cache.client, &cache.path);
    let mode = match cache.scope {
        crate::cache::Scope::Node => AddWatchMode::Persistent,
        _ => AddWatchMode::PersistentRecursive,
    };
    let mut changes = until_answered(client, || client.add_watch(path, mode)).await?;
    shared.step(|model, effects| model.gap(effects));
    let mut reads = FuturesUnordered::new();
    loop {
        while reads.len() < READS_MAX
            && let Some(ask) = shared.next_ask()
        {
            reads.push(read(client, ask));
        }
        tokio::select! {
            biased;
            event = changes.next() => {
                let Some(event) = event else { return Ok(()) };
                tell(shared, &event);
            }
            Some(answered) = reads.next() => {
                let (ask, answer) = answered?;
                // Whatever the server has sent before this answer is in the stream by now.
                for event in waiting(&mut changes).await {
                    tell(shared, &event);
                }
                let answer = match answer {
                    Answer::Data(data, stat) => Answer::Data(cache.kept(data), stat),
                    answer => answer,
                };
                shared.step(|model, effects| model.answered(&ask, answer, effects));
            }
        }
    }
}

fn tell(shared: &Shared, event: &WatchedEvent) {
    shared.step(|model, effects| model.changed(event.kind, &event.path, effects));
}

/// The events that have come and are not read.
async fn waiting(changes: &mut WatchStream) -> Vec<WatchedEvent> {
    let mut found = Vec::new();
    // Without the runtime's budget, which would make a stream look empty that is not.
    unconstrained(poll_fn(|cx| {
        while let Poll::Ready(Some(event)) = Pin::new(&mut *changes).poll_next(cx) {
            found.push(event);
        }
        Poll::Ready(())
    }))
    .await;
    found
}

async fn read(client: &Client, ask: Ask) -> Result<(Ask, Answer)> {
    let answer = match ask.what {
        What::Data => until_answered(client, || client.get_data(&ask.path))
            .await
            .map(|(data, stat)| Answer::Data(data, stat)),
        What::Children => until_answered(client, || client.get_children_and_stat(&ask.path))
            .await
            .map(|(names, stat)| Answer::Children(names, stat)),
    };
    let answer = answer.or_else(refusal)?;
    Ok((ask, answer))
}
