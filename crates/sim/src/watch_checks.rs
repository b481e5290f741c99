//! Checks the watch events that clients get.

use crate::{
    client::{Intent, SentRequest},
    reference::ReferenceHistory,
    watching::{DueEvent, Watch},
    world::World,
};
use ostler_proto::{
    error::ErrorCode,
    event::EventType,
    id::Zxid,
    reply::{Body, Reply},
};
use std::collections::BTreeSet;

impl World {
    pub(crate) fn client_notified(&mut self, client: usize, zxid: Option<Zxid>, kind: EventType, path: &str) {
        self.trace(|| format!("client {client} gets an event of {path}: {kind:?} at {zxid:?}"));
        let (reference, of) = (&self.reference, &mut self.clients[client]);
        let again = of.sent.front().is_some_and(|sent| sent.intent == Intent::SetWatches);
        let Some(zxid) = zxid else {
            assert!(again, "[watch] an event of {path} has no zxid");
            of.caught_up.push((path.to_owned(), kind));
            return;
        };
        assert!(
            !again,
            "[watch late] the event of {path} at {zxid} comes before the events of missed changes"
        );
        assert!(
            zxid > of.seen,
            "[watch late] {path} changed at {zxid}, and the client was at {} before",
            of.seen
        );
        assert!(
            zxid >= of.last_event,
            "[watch order] {path} changed at {zxid}, and client {client} has got an event of {} before",
            of.last_event
        );
        of.last_event = zxid;
        assert!(reference.changed_at(path, zxid), "[watch] {path} did not change at {zxid}");
        let due = DueEvent { zxid, kind, path: path.to_owned() };
        let before = of.watching.first_due_before(reference, zxid);
        assert!(before.is_none(), "[watch late] client {client} gets {due:?}, and has not got {before:?}");
        let place = of.watching.take_due(reference, &due);
        let place = place.unwrap_or_else(|| {
            panic!("[watch twice] client {client} gets {due:?}, which is not due, or comes again")
        });
        assert_eq!(
            place, 0,
            "[watch order] client {client} gets {due:?} before an earlier event of the same transaction"
        );
        self.count("event");
    }

    /// Checks that a client has got all its events before it is shown a transaction.
    pub(crate) fn check_told_first(&mut self, client: usize, zxid: Zxid) {
        let untold = self.clients[client].watching.first_due(&self.reference, zxid);
        assert!(untold.is_none(), "[watch lost] client {client} has not got {untold:?}, and is shown {zxid}");
    }

    /// Checks and notes the reply to a request that sets, removes or checks a watch.
    pub(crate) fn watch_answered(&mut self, client: usize, sent: &SentRequest, reply: &Reply) {
        let watching = &mut self.clients[client].watching;
        let watch = |path: &str, of_children| Watch {
            path: path.into(),
            of_children,
            for_creation: reply.result.is_err(),
        };
        match &sent.intent {
            Intent::Get(path, true) if reply.result.is_ok() => watching.once.push(watch(path, false)),
            Intent::Exists(path, true) => watching.once.push(watch(path, false)),
            Intent::Children(path, true) if reply.result.is_ok() => watching.once.push(watch(path, true)),
            Intent::AddWatch(path, mode) => {
                assert_eq!(reply.result, Ok(Body::WatchAdded), "[answers] {sent:?}");
                watching.lasting.insert((path.clone(), *mode));
                self.count("persistent watch");
            }
            Intent::RemoveWatches { path, kind, .. } | Intent::CheckWatches(path, kind) => {
                let there = watching.has(path, *kind);
                let right = if there { Ok(Body::None) } else { Err(ErrorCode::NoWatcher) };
                assert_eq!(reply.result, right, "[watch] client {client} asked {sent:?}");
                if matches!(sent.intent, Intent::RemoveWatches { .. }) {
                    watching.remove(path, *kind);
                }
                self.count(if there { "watch found" } else { "no watch found" });
            }
            _ => {}
        }
    }

    /// The same for a server without a leader. Its tree does not change, so it sends no events, and its replies about
    /// watches are not checked. The client sets its persistent watches again at the next server.
    pub(crate) fn watch_answered_read_only(&mut self, client: usize, sent: &SentRequest, reply: &Reply) {
        let watching = &mut self.clients[client].watching;
        match &sent.intent {
            Intent::AddWatch(path, mode) => {
                assert_eq!(reply.result, Ok(Body::WatchAdded), "[answers] {sent:?}");
                watching.lasting.insert((path.clone(), *mode));
            }
            Intent::RemoveWatches { path, kind, .. } if reply.result.is_ok() => watching.remove(path, *kind),
            // It is not known which transactions of this tree are committed.
            Intent::SetWatches => watching.once.clear(),
            _ => {}
        }
    }

    /// Checks the reply to `setWatches`: the client has got an event for each one-shot watch that missed a change, and
    /// keeps the other watches. Persistent watches get no events for missed changes.
    pub(crate) fn watches_again(&mut self, client: usize, before: Zxid, zxid: Zxid) {
        let (reference, of) = (&self.reference, &mut self.clients[client]);
        let missed = |watch: &Watch| missed(reference, watch, before, zxid);
        // The request names a path once for each sort of watch, and gets one event for each.
        let lists: BTreeSet<(&str, bool, bool, EventType)> = of
            .watching
            .once
            .iter()
            .filter_map(|watch| Some((&*watch.path, watch.of_children, watch.for_creation, missed(watch)?)))
            .collect();
        let mut due: Vec<_> = lists.into_iter().map(|(path, .., kind)| (path.to_owned(), kind)).collect();
        let mut told = std::mem::take(&mut of.caught_up);
        due.sort_unstable();
        told.sort_unstable();
        let twice = told.windows(2).any(|two| two[0] == two[1]) && told.len() > due.len();
        assert!(!twice, "[watch twice] client {client} was away, and gets {told:?} instead of {due:?}");
        assert_eq!(told, due, "[watch lost] client {client} was away from {before} to {zxid}");
        of.watching.once.retain(|watch| missed(watch).is_none());
        of.watching.begins_at(reference, zxid);
        self.count("watches set again");
    }
}

fn missed(reference: &ReferenceHistory, watch: &Watch, before: Zxid, zxid: Zxid) -> Option<EventType> {
    match reference.at(&watch.path, zxid) {
        Some(_) if watch.for_creation => Some(EventType::NodeCreated),
        None => (!watch.for_creation).then_some(EventType::NodeDeleted),
        Some(seen) if watch.of_children => {
            (seen.stat.pzxid > before).then_some(EventType::NodeChildrenChanged)
        }
        Some(seen) => (seen.stat.mzxid > before).then_some(EventType::NodeDataChanged),
    }
}
