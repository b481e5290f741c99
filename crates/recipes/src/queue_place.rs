//! A contender's place in a queue: one ephemeral sequential znode, owned by one session.

use crate::{
    background::TaskGuard,
    error::Result,
    fencing::{Fence, Token},
    queue_order::{Arrivals, Position, Queue, arrival_in, number_of, unordered_by_number},
    until_answered::event_unless_removed,
};
use futures_util::FutureExt;
use ostler_client::{Client, Created, EventKind, Operation, RecipeTag, Session, Watch, paths};
use ostler_planted::{self as planted, Bug};
use tokio::{sync::oneshot, task::unconstrained};

/// A place to take: the queue, and the word and data of the contender's znode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceSpec<'a> {
    /// The queue's znode. It is created as a container if it is missing.
    pub(crate) path: &'a str,
    /// The recipe's word, which is in the names of its znodes.
    pub(crate) word: &'a str,
    /// The data of the contender's znode.
    pub(crate) data: &'a [u8],
    /// Says in the contender's name which recipe it belongs to.
    pub(crate) tag: RecipeTag,
}

/// A place in the queue. Its znode is deleted in the background when this is dropped.
#[derive(Debug)]
pub(crate) struct QueuePlace {
    fence: Fence,
    /// The names that were read right after the create, until they are used.
    on_arrival: Vec<String>,
    /// The arrivals of the queue when it was last read.
    arrivals: Arrivals,
    /// Watches this contender's own znode, once it is the next in the queue.
    own_watch: Option<Watch>,
    /// The znode is gone, or its deletion is under way: dropping this does not delete it.
    left: bool,
    /// Keeps the owner's task from counting as ended before the znode is gone.
    running: Option<TaskGuard>,
}

/// The end of a wait for the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// No contender that counts is before this one.
    Ours,
    /// This contender's znode is gone although its session lives: another client has deleted it.
    Gone,
}

impl QueuePlace {
    /// Creates the znode, at the end of the queue. If the future is dropped at any moment, no znode is left behind.
    pub(crate) async fn take(session: &Session, spec: PlaceSpec<'_>) -> Result<QueuePlace> {
        QueuePlace::created(session, send_create(session, spec)).await
    }

    /// [`take`](QueuePlace::take) for a caller that then calls [`wait_for_turn`](QueuePlace::wait_for_turn): the request
    /// that reads the queue is sent right behind the create, without waiting for its reply.
    pub(crate) async fn take_for_turn(session: &Session, spec: PlaceSpec<'_>) -> Result<QueuePlace> {
        #[cfg(feature = "planted-bugs")]
        if let Some(place) = crate::planted::place_of_planted_bug(session, spec).await {
            return place;
        }
        let create = send_create(session, spec);
        let names = session.get_children(spec.path).send();
        let mut place = QueuePlace::created(session, create).await?;
        // Errors do not matter here: without this contender's name in the list the queue is read again.
        place.on_arrival = names.await.unwrap_or_default();
        Ok(place)
    }

    /// [`take_for_turn`](QueuePlace::take_for_turn) for a task that is stopped by dropping its future: the task counts
    /// as running as long as the znode exists or may still be created.
    pub(crate) async fn take_while(
        session: &Session,
        spec: PlaceSpec<'_>,
        running: &TaskGuard,
    ) -> Result<QueuePlace> {
        let (to, taken) = oneshot::channel();
        let (runtime, session, running) = (session.runtime(), session.clone(), running.clone());
        let (path, word, data) = (spec.path.to_owned(), spec.word.to_owned(), spec.data.to_owned());
        let tag = spec.tag;
        runtime.spawn(async move {
            let spec = PlaceSpec { path: &path, word: &word, data: &data, tag };
            let taken = QueuePlace::take_for_turn(&session, spec).await;
            let taken = taken.map(|mut place| {
                place.running = Some(running);
                place
            });
            // If the receiver is gone, the place is dropped here, and its znode deleted.
            drop(to.send(taken));
        });
        taken.await.map_err(|_| ostler_client::Error::Closed)?
    }

    /// The place of the znode that `create` creates.
    async fn created(session: &Session, create: Operation<Created>) -> Result<QueuePlace> {
        let created = create.await?;
        Ok(QueuePlace::at(session, &created.path, Token(created.stat.czxid)))
    }

    /// Creates a znode whose name the caller gives. It is held at once, with the token of an earlier znode.
    pub(crate) async fn take_named(
        session: &Session,
        (path, spec): (&str, PlaceSpec<'_>),
        token: Token,
    ) -> Result<QueuePlace> {
        let create = session.create(path, spec.data).ephemeral().protected_with_tag(spec.tag);
        let created = create.creating_container_parents().await?;
        let place = QueuePlace::at(session, &created.path, token);
        place.fence.begin().await?;
        Ok(place)
    }

    /// The place whose znode is at `path`.
    pub(crate) fn at(session: &Session, path: &str, token: Token) -> QueuePlace {
        let fence = Fence::new(session.clone(), path, token);
        QueuePlace {
            fence,
            on_arrival: Vec::new(),
            arrivals: Arrivals::new(),
            own_watch: None,
            left: false,
            running: None,
        }
    }

    pub(crate) fn fence(&self) -> &Fence {
        &self.fence
    }

    pub(crate) fn session(&self) -> &Session {
        self.fence.session()
    }

    pub(crate) fn path(&self) -> &str {
        self.fence.node()
    }

    pub(crate) fn name(&self) -> &str {
        paths::name(self.path())
    }

    fn queue(&self) -> &str {
        paths::parent(self.path()).unwrap_or("/")
    }

    /// Waits until `position` finds no contender before this one. Watches the znode before its own. After each event the
    /// queue is read again, because the watched contender may have left while an earlier one still holds. A contender that
    /// found only one before it need not read it again: see [`wait_as_next`](QueuePlace::wait_as_next).
    ///
    /// The queue is read in the session that owns this contender's znode. So a name in it that equals this contender's
    /// is its znode, and not one that an earlier session has left behind (CURATOR-604, CURATOR-696).
    pub(crate) async fn wait_for_turn(
        &mut self,
        words: &[&str],
        position: impl for<'n> Fn(&'n Queue, &str) -> Position<'n>,
    ) -> Result<Turn> {
        loop {
            let names = self.read_names().await?;
            let queue = self.with_arrivals(names, words).await?;
            let turn = match position(&queue, self.name()) {
                Position::First => Some(Turn::Ours),
                Position::Gone => Some(Turn::Gone),
                Position::Next(name) => {
                    let before = paths::join(self.queue(), name);
                    self.wait_as_next(&before).await?
                }
                Position::Behind(name) => {
                    let before = paths::join(self.queue(), name);
                    self.arrivals = queue.arrivals;
                    self.wait_behind(&before).await?
                }
            };
            if turn == Some(Turn::Ours) {
                self.fence.begin().await?;
            }
            if let Some(turn) = turn {
                return Ok(turn);
            }
        }
    }

    /// Waits until the znode at `before` changes. Returns `None` if the queue has to be read again.
    async fn wait_behind(&self, before: &str) -> Result<Option<Turn>> {
        // getData instead of exists: exists would leave a watch behind if the znode is gone already.
        match self.session().get_data(before).watch().await {
            Err(error) if error.is_no_node() => Ok(self.gone_of_planted_bug()),
            watched => {
                let (_, changed) = watched?;
                event_unless_removed(changed).await?;
                Ok(planted::is(Bug::MutexLooksOnce).then_some(Turn::Ours))
            }
        }
    }

    /// Waits as the next in the queue until the znode at `before`, the only one before this contender's, changes. Watches
    /// both. If that znode's deletion is reported with its zxid, and no change of the own znode was reported before, no
    /// earlier transaction has deleted the own znode, so it is this contender's turn. (If the same transaction deletes both,
    /// that is as if the own znode were deleted right after. The same if another client has taken from this session the
    /// right to read its own znode: servers then hide the event.) This saves the round trip of another look at the queue, in
    /// which nobody holds. Returns `None` if the queue has to be read again.
    async fn wait_as_next(&mut self, before: &str) -> Result<Option<Turn>> {
        let own = self.session().get_data(self.path()).watch();
        let watched = self.session().get_data(before).watch();
        match own.await {
            Err(error) if error.is_no_node() => return Ok(Some(Turn::Gone)),
            own => self.own_watch = Some(own?.1),
        }
        let ((_, stat), changed) = match watched.await {
            Err(error) if error.is_no_node() => return Ok(self.gone_of_planted_bug()),
            watched => watched?,
        };
        let Some(event) = event_unless_removed(changed).await? else { return Ok(None) };
        let is_deletion = event.kind == EventKind::NodeDeleted && event.zxid.is_some();
        // The end of a session deletes all its znodes at once, and may report this one's last.
        let is_of_another = stat.ephemeral_owner != self.session().id().0;
        // Without tokio's budget for tasks: an exhausted one would hide an event that is there.
        let own_event = self.own_watch.as_mut().and_then(|watch| unconstrained(watch).now_or_never());
        Ok((is_deletion && is_of_another && own_event.is_none()).then_some(Turn::Ours))
    }

    /// With [`Bug::MissingPredecessorMakesZnode`]: deletes this contender's znode, so that the contender creates another one.
    fn gone_of_planted_bug(&self) -> Option<Turn> {
        planted::is(Bug::MissingPredecessorMakesZnode).then(|| {
            self.session().delete(self.path()).in_background();
            Turn::Gone
        })
    }

    /// The names in the queue. The first time, the list that was read right after the create, if it has this contender.
    async fn read_names(&mut self) -> Result<Vec<String>> {
        let on_arrival = std::mem::take(&mut self.on_arrival);
        // A list with this contender's name was read after the create.
        if on_arrival.iter().any(|name| name == self.name()) {
            return Ok(on_arrival);
        }
        match self.session().get_children(self.queue()).await {
            Err(error) if error.is_no_node() => Ok(Vec::new()),
            names => Ok(names?),
        }
    }

    /// The queue, with the zxids of the contenders that the numbers do not order. They do not change, so they are read
    /// once for each contender.
    async fn with_arrivals(&mut self, names: Vec<String>, words: &[&str]) -> Result<Queue> {
        let known = std::mem::take(&mut self.arrivals);
        with_arrivals(self.session(), self.queue(), words, names, known).await
    }

    /// How many contenders are before this one in the queue that has these names; `None` if its znode is not there.
    pub(crate) async fn count_before(&mut self, names: Vec<String>, word: &str) -> Result<Option<usize>> {
        let queue = self.with_arrivals(names, &[word]).await?;
        let order = queue.in_order(|name| number_of(name, &[word]));
        let before = order.iter().position(|name| *name == self.name());
        self.arrivals = queue.arrivals;
        Ok(before)
    }

    /// Leaves the queue, and waits until the znode is deleted. If connection trouble lasts, or this future is dropped,
    /// the deletion goes on in the background.
    pub(crate) async fn leave(mut self) -> Result<()> {
        self.fence.set_released();
        self.left = true;
        if planted::is(Bug::ReleaseGivesUp) {
            return Ok(self.session().delete(self.path()).quietly().await?);
        }
        let deleted = self.session().delete(self.path()).guaranteed().quietly().send();
        match deleted.await {
            // The znode was deleted with its session.
            Err(error) if error.is_session_over() || error.is_closed() => Ok(()),
            deleted => Ok(deleted?),
        }
    }

    /// Drops the place without a deletion: its znode is gone.
    pub(crate) fn forget(mut self) {
        self.fence.set_released();
        self.left = true;
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.fence.set_released();
        if self.left || !self.session().is_alive() || planted::is(Bug::DroppedPlaceStays) {
            return;
        }
        let Some(running) = self.running.take() else {
            return self.session().delete(self.path()).in_background();
        };
        let deleted = self.session().delete(self.path()).guaranteed().quietly().send();
        self.session().runtime().spawn(async move {
            // After an error the deletion goes on in the background.
            let _ = deleted.await;
            drop(running);
        });
    }
}

/// Sends the create of a znode at the end of the queue.
fn send_create(session: &Session, spec: PlaceSpec<'_>) -> Operation<Created> {
    let path = paths::join(spec.path, spec.word);
    let create = session.create(&path, spec.data).ephemeral_sequential().protected_with_tag(spec.tag);
    create.creating_container_parents().send()
}

/// The queue of these names, with the zxids of the contenders that the numbers do not order. Names whose znodes are gone
/// meanwhile are left out.
async fn with_arrivals(
    client: &Client,
    path: &str,
    words: &[&str],
    names: Vec<String>,
    mut known: Arrivals,
) -> Result<Queue> {
    let unordered = unordered_by_number(&names, |name| number_of(name, words));
    if unordered.is_empty() {
        return Ok(Queue::of(names));
    }
    let (mut arrivals, mut gone) = (Arrivals::new(), Vec::new());
    for name in unordered {
        let arrival = match arrival_in(name, words).or_else(|| known.remove(name)) {
            None => client.exists(&paths::join(path, name)).await?.map(|stat| stat.czxid),
            arrival => arrival,
        };
        match arrival {
            Some(zxid) => drop(arrivals.insert(name.to_owned(), zxid)),
            None => gone.push(name.to_owned()),
        }
    }
    let mut names = names;
    names.retain(|name| !gone.contains(name));
    Ok(Queue { names, arrivals })
}

/// The paths of a queue's znodes, in the order of the queue.
pub(crate) async fn participant_nodes(client: &Client, path: &str, word: &str) -> Result<Vec<String>> {
    let names = match client.get_children(path).await {
        Err(error) if error.is_no_node() => Vec::new(),
        names => names?,
    };
    let queue = with_arrivals(client, path, &[word], names, Arrivals::new()).await?;
    let names = queue.in_order(|name| number_of(name, &[word]));
    Ok(names.iter().map(|name| paths::join(path, name)).collect())
}
