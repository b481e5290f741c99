//! A cache on a persistent watch.

use crate::{
    cache::{Answer, Ask, CuratorCacheBuilder, READS_MAX, Shared, What, one_shot::allowed, refusal},
    until_answered::until_answered,
};
use futures_util::{Stream, StreamExt, stream::FuturesUnordered};
use ostler_client::{AddWatchMode, Client, EventKind, Result, WatchedEvent};
use std::{collections::HashSet, future::poll_fn, task::Poll};
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
    // Those that may not be read now.
    let mut refused = HashSet::new();
    loop {
        while reads.len() < READS_MAX + refused.len()
            && let Some(ask) = shared.next_ask()
        {
            reads.push(look(client, Look::At(ask)));
        }
        match next(&mut changes, &mut reads).await {
            Next::Event(event) => tell(shared, &event),
            Next::Answer { before, answer } => {
                before.iter().for_each(|event| tell(shared, event));
                let (ask, answer) = match answer? {
                    Seen::Answer(ask, answer) => (ask, answer),
                    Seen::Allowed(path) => {
                        refused.remove(&path);
                        let kind = EventKind::NodeDataChanged;
                        shared.step(|model, effects| model.changed(kind, &path, effects));
                        continue;
                    }
                };
                let answer = match answer {
                    Answer::Data(data, stat) => Answer::Data(cache.kept(data), stat),
                    answer => answer,
                };
                // No event tells of a change of an ACL.
                if matches!(answer, Answer::Refused(_)) && refused.insert(ask.path.clone()) {
                    reads.push(look(client, Look::UntilAllowed(ask.path.clone())));
                }
                shared.step(|model, effects| model.answered(&ask, answer, effects));
            }
            Next::End => return Ok(()),
        }
    }
}

/// What a server is asked.
enum Look {
    At(Ask),
    UntilAllowed(String),
}

/// What came of it.
enum Seen {
    Answer(Ask, Answer),
    Allowed(String),
}

async fn look(client: &Client, look: Look) -> Result<Seen> {
    match look {
        Look::At(ask) => {
            let (ask, answer) = read(client, ask).await?;
            Ok(Seen::Answer(ask, answer))
        }
        Look::UntilAllowed(path) => {
            allowed(client, &path).await?;
            Ok(Seen::Allowed(path))
        }
    }
}

/// What has come next.
#[derive(Debug, PartialEq, Eq)]
enum Next<E, A> {
    Event(E),
    Answer {
        /// Events that have come since somebody looked, and that can be older than the answer.
        before: Vec<E>,
        answer: A,
    },
    /// There will be no more events.
    End,
}

/// The next event or answer. An answer is there only after the events that the server has sent before it are in their
/// stream; but they can get there after that was looked at, so it is looked at again.
async fn next<E, A>(
    changes: &mut (impl Stream<Item = E> + Unpin),
    reads: &mut (impl Stream<Item = A> + Unpin),
) -> Next<E, A> {
    // Without the runtime's budget, which would make a stream look empty that is not.
    unconstrained(poll_fn(|cx| {
        match changes.poll_next_unpin(cx) {
            Poll::Ready(Some(event)) => return Poll::Ready(Next::Event(event)),
            Poll::Ready(None) => return Poll::Ready(Next::End),
            Poll::Pending => {}
        }
        let Poll::Ready(Some(answer)) = reads.poll_next_unpin(cx) else { return Poll::Pending };
        let mut before = Vec::new();
        while let Poll::Ready(Some(event)) = changes.poll_next_unpin(cx) {
            before.push(event);
        }
        Poll::Ready(Next::Answer { before, answer })
    }))
    .await
}

fn tell(shared: &Shared, event: &WatchedEvent) {
    shared.step(|model, effects| model.changed(event.kind, &event.path, effects));
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::poll_fn as stream;
    use std::cell::RefCell;

    #[tokio::test]
    async fn events_come_before_answers_that_are_newer() {
        let (events, answers) = (RefCell::new(vec![0]), RefCell::new(vec!["first", "second"]));
        let mut changes = stream(|_| match events.borrow_mut().pop() {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        });
        // Another thread delivers two events and then an answer, just after the events were looked at.
        let mut reads = stream(|_| {
            events.borrow_mut().extend([2, 1]);
            Poll::Ready(answers.borrow_mut().pop())
        });
        assert_eq!(next(&mut changes, &mut reads).await, Next::Event(0));
        let answer = next(&mut changes, &mut reads).await;
        assert_eq!(answer, Next::Answer { before: vec![1, 2], answer: "second" });
    }

    #[tokio::test]
    async fn without_events_to_come_it_ends() {
        let mut changes = stream(|_| Poll::Ready(None::<()>));
        let mut reads = stream(|_| Poll::Ready(Some(1)));
        assert_eq!(next(&mut changes, &mut reads).await, Next::End);
    }
}
