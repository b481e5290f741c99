//! A cache on a persistent watch.

use crate::{
    cache::{
        CuratorCacheBuilder, NodeRead, READS_MAX, ReadAnswer, ReadKind, Shared, answer_of_error,
        one_shot::until_readable,
    },
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
    shared.step(|model, effects| model.begin_sweep(effects));
    let mut tasks = FuturesUnordered::new();
    // Paths of znodes that the client may not read now.
    let mut refused = HashSet::new();
    loop {
        while tasks.len() < READS_MAX + refused.len() {
            let Some(node_read) = shared.next_read() else { break };
            tasks.push(run_task(client, Task::Read(node_read)));
        }
        match next_input(&mut changes, &mut tasks).await {
            Input::Event(event) => pass_event(shared, &event),
            Input::Answer { before, answer } => {
                before.iter().for_each(|event| pass_event(shared, event));
                let (node_read, answer) = match answer? {
                    TaskResult::Answer(node_read, answer) => (node_read, answer),
                    TaskResult::Readable(path) => {
                        refused.remove(&path);
                        let kind = EventKind::NodeDataChanged;
                        shared.step(|model, effects| model.watch_fired(kind, &path, effects));
                        continue;
                    }
                };
                let answer = cache.without_unwanted_data(answer);
                // Servers send no event for a change of an ACL.
                if matches!(answer, ReadAnswer::Refused(_)) && refused.insert(node_read.path.clone()) {
                    tasks.push(run_task(client, Task::UntilReadable(node_read.path.clone())));
                }
                shared.step(|model, effects| model.read_answered(&node_read, answer, effects));
            }
            Input::End => return Ok(()),
        }
    }
}

/// A request to the servers that runs beside others.
enum Task {
    Read(NodeRead),
    UntilReadable(String),
}

/// The result of a [`Task`].
enum TaskResult {
    Answer(NodeRead, ReadAnswer),
    Readable(String),
}

async fn run_task(client: &Client, task: Task) -> Result<TaskResult> {
    match task {
        Task::Read(node_read) => {
            let (node_read, answer) = read(client, node_read).await?;
            Ok(TaskResult::Answer(node_read, answer))
        }
        Task::UntilReadable(path) => {
            until_readable(client, &path).await?;
            Ok(TaskResult::Readable(path))
        }
    }
}

/// The next thing to handle.
#[derive(Debug, PartialEq, Eq)]
enum Input<E, A> {
    Event(E),
    Answer {
        /// Events that have come meanwhile, and that can be older than the answer.
        before: Vec<E>,
        answer: A,
    },
    /// The client is closed: no more events come.
    End,
}

/// The next event or answer. When an answer is ready, all events that the server has sent before it are in their stream.
/// They may have come after the stream was polled, so it is polled once more.
async fn next_input<E, A>(
    changes: &mut (impl Stream<Item = E> + Unpin),
    tasks: &mut (impl Stream<Item = A> + Unpin),
) -> Input<E, A> {
    // Without the runtime's budget: with it, a stream that has items can look empty.
    unconstrained(poll_fn(|cx| {
        match changes.poll_next_unpin(cx) {
            Poll::Ready(Some(event)) => return Poll::Ready(Input::Event(event)),
            Poll::Ready(None) => return Poll::Ready(Input::End),
            Poll::Pending => {}
        }
        let Poll::Ready(Some(answer)) = tasks.poll_next_unpin(cx) else { return Poll::Pending };
        let mut before = Vec::new();
        while let Poll::Ready(Some(event)) = changes.poll_next_unpin(cx) {
            before.push(event);
        }
        Poll::Ready(Input::Answer { before, answer })
    }))
    .await
}

fn pass_event(shared: &Shared, event: &WatchedEvent) {
    shared.step(|model, effects| model.watch_fired(event.kind, &event.path, effects));
}

async fn read(client: &Client, node_read: NodeRead) -> Result<(NodeRead, ReadAnswer)> {
    let answer = match node_read.kind {
        ReadKind::Data => until_answered(client, || client.get_data(&node_read.path))
            .await
            .map(|(data, stat)| ReadAnswer::Data(data, stat)),
        ReadKind::Children => until_answered(client, || client.get_children_and_stat(&node_read.path))
            .await
            .map(|(names, stat)| ReadAnswer::Children(names, stat)),
    };
    let answer = answer.or_else(answer_of_error)?;
    Ok((node_read, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::poll_fn as stream;
    use std::cell::RefCell;

    #[tokio::test]
    async fn events_come_before_a_newer_answer() {
        let (events, answers) = (RefCell::new(vec![0]), RefCell::new(vec!["first", "second"]));
        let mut changes = stream(|_| match events.borrow_mut().pop() {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        });
        // Another thread delivers two events and then an answer, just after the events were polled.
        let mut tasks = stream(|_| {
            events.borrow_mut().extend([2, 1]);
            Poll::Ready(answers.borrow_mut().pop())
        });
        assert_eq!(next_input(&mut changes, &mut tasks).await, Input::Event(0));
        let answer = next_input(&mut changes, &mut tasks).await;
        assert_eq!(answer, Input::Answer { before: vec![1, 2], answer: "second" });
    }

    #[tokio::test]
    async fn input_ends_with_the_stream_of_events() {
        let mut changes = stream(|_| Poll::Ready(None::<()>));
        let mut tasks = stream(|_| Poll::Ready(Some(1)));
        assert_eq!(next_input(&mut changes, &mut tasks).await, Input::End);
    }
}
