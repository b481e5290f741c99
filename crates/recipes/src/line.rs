//! A place in a queue: one ephemeral sequential znode, in one session.

use crate::{
    background::Running,
    error::Result,
    fencing::{Fence, Token},
    line_order::{Arrivals, Queue, Standing, arrival_in, number_of, undecided},
    planted::{self, Bug},
    until_answered::pause,
};
use ostler_client::{Client, ConnectionState, CreateMode, Created, Operation, Session, paths};
use ostler_proto::planted::{self as simulated, Bug as Simulated};
use tokio::sync::oneshot;

/// What kind of place to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The queue's znode; made as a container if it is missing.
    pub(crate) path: &'a str,
    /// The recipe's word in the names.
    pub(crate) word: &'a str,
    pub(crate) data: &'a [u8],
}

/// A place, left when it is dropped: its znode is deleted in the background.
#[derive(Debug)]
pub(crate) struct Place {
    fence: Fence,
    /// The queue as it was when we came, until it is looked at.
    on_arrival: Vec<String>,
    /// Of the queue when it was last looked at.
    arrivals: Arrivals,
    /// Somebody else sees to the znode, or there is none.
    left: bool,
    /// Whose task has not ended before the znode is gone.
    running: Option<Running>,
}

/// How waiting for one's turn has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody is before us.
    Ours,
    /// Our znode is gone although the session lives: somebody has deleted it.
    Gone,
}

impl Place {
    /// Goes to the end of the queue. If the future is dropped at any moment, no znode is left behind.
    pub(crate) async fn take(session: &Session, line: Line<'_>) -> Result<Place> {
        Place::made(session, go(session, line)).await
    }

    /// [`take`](Place::take), for whoever waits for its [`turn`](Place::turn) next: the queue is read right behind the
    /// create, without waiting for its reply.
    pub(crate) async fn take_for_turn(session: &Session, line: Line<'_>) -> Result<Place> {
        #[cfg(feature = "planted-bugs")]
        if let Some((id, look)) = planted::kept_id() {
            return find_or_go(session, line, id, look).await;
        }
        let create = go(session, line);
        let names = session.get_children(line.path).send();
        let mut place = Place::made(session, create).await?;
        // Whatever is wrong with it: without our name in it there will be another look.
        place.on_arrival = names.await.unwrap_or_default();
        Ok(place)
    }

    /// [`take_for_turn`](Place::take_for_turn), for a task that is stopped by dropping what it does: it has not ended as
    /// long as the znode may still come, or is there.
    pub(crate) async fn take_while(session: &Session, line: Line<'_>, running: &Running) -> Result<Place> {
        let (to, taken) = oneshot::channel();
        let (runtime, session, running) = (session.runtime(), session.clone(), running.clone());
        let (path, word, data) = (line.path.to_owned(), line.word.to_owned(), line.data.to_owned());
        runtime.spawn(async move {
            let line = Line { path: &path, word: &word, data: &data };
            let taken = Place::take_for_turn(&session, line).await;
            let taken = taken.map(|mut place| {
                place.running = Some(running);
                place
            });
            // If nobody waits for it any more, it is dropped here, and its znode deleted.
            drop(to.send(taken));
        });
        taken.await.map_err(|_| ostler_client::Error::Closed)?
    }

    async fn made(session: &Session, create: Operation<Created>) -> Result<Place> {
        let made = create.await?;
        Ok(Place::at(session, &made.path, Token(made.stat.czxid)))
    }

    /// A znode with a name that is given instead of numbered by the server, held at once with somebody's token.
    pub(crate) async fn take_named(
        session: &Session,
        path: &str,
        data: &[u8],
        token: Token,
    ) -> Result<Place> {
        let create = session.create(path, data).mode(CreateMode::Ephemeral).protected();
        let made = create.creating_container_parents().await?;
        let place = Place::at(session, &made.path, token);
        place.fence.begin().await?;
        Ok(place)
    }

    pub(crate) fn at(session: &Session, path: &str, token: Token) -> Place {
        let fence = Fence::new(session.clone(), path, token);
        Place { fence, on_arrival: Vec::new(), arrivals: Arrivals::new(), left: false, running: None }
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

    /// Waits until `standing` finds nobody before us. Watches one znode at a time; after each event the queue is
    /// looked at again, as the one before us may have gone while another still holds.
    ///
    /// The list is read in the session that our znode belongs to: what is in it and bears our name is ours, and not
    /// what a session before this one has left behind (CURATOR-604, CURATOR-696).
    pub(crate) async fn turn(
        &mut self,
        words: &[&str],
        standing: impl for<'n> Fn(&'n Queue, &str) -> Standing<'n>,
    ) -> Result<Turn> {
        loop {
            let names = self.look().await?;
            let queue = self.with_arrivals(names, words).await?;
            let before = match standing(&queue, self.name()) {
                Standing::First => {
                    self.fence.begin().await?;
                    return Ok(Turn::Ours);
                }
                Standing::Gone => return Ok(Turn::Gone),
                Standing::Behind(name) => paths::join(self.queue(), name),
            };
            self.arrivals = queue.arrivals;
            // A read, and not `exists`: that would leave a watch behind if it is gone already.
            match self.session().get_data(&before).watch().await {
                Err(error) if error.is_no_node() => {
                    if planted::is(Bug::MissingPredecessorMakesZnode) {
                        self.session().delete(self.path()).in_background();
                        return Ok(Turn::Gone);
                    }
                }
                watched => {
                    let (_, changed) = watched?;
                    changed.await?;
                    if simulated::is(Simulated::MutexLooksOnce) {
                        return Ok(Turn::Ours);
                    }
                }
            }
        }
    }

    /// Who is in the queue: the first time, who was when we came.
    async fn look(&mut self) -> Result<Vec<String>> {
        let on_arrival = std::mem::take(&mut self.on_arrival);
        // With our name in it, it was made after we came.
        if on_arrival.iter().any(|name| name == self.name()) {
            return Ok(on_arrival);
        }
        match self.session().get_children(self.queue()).await {
            Err(error) if error.is_no_node() => Ok(Vec::new()),
            names => Ok(names?),
        }
    }

    /// Where numbers do not tell who came first, asks for what does. Once per contender: it does not change.
    async fn with_arrivals(&mut self, names: Vec<String>, words: &[&str]) -> Result<Queue> {
        let known = std::mem::take(&mut self.arrivals);
        with_arrivals(self.session(), self.queue(), words, names, known).await
    }

    /// Leaves the queue, and waits until the znode is deleted. If connection trouble lasts, or this is dropped, that
    /// goes on in the background.
    pub(crate) async fn leave(mut self) -> Result<()> {
        self.fence.set_released();
        self.left = true;
        if planted::is(Bug::ReleaseGivesUp) {
            return Ok(self.session().delete(self.path()).quietly().await?);
        }
        let deleted = self.session().delete(self.path()).guaranteed().quietly().send();
        match deleted.await {
            // Its znode goes with it.
            Err(error) if error.is_session_over() => Ok(()),
            deleted => Ok(deleted?),
        }
    }

    /// There is no znode to delete.
    pub(crate) fn forget(mut self) {
        self.fence.set_released();
        self.left = true;
    }
}

impl Drop for Place {
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
            // If there is connection trouble, it goes on in the background.
            let _ = deleted.await;
            drop(running);
        });
    }
}

/// The create of a place at the end of the queue.
fn go(session: &Session, line: Line<'_>) -> Operation<Created> {
    let path = paths::join(line.path, line.word);
    let create = session.create(&path, line.data).ephemeral_sequential().protected();
    create.creating_container_parents().send()
}

/// The create, preceded by a look for what an earlier one with this id has made, in whichever session.
#[cfg(feature = "planted-bugs")]
async fn find_or_go(
    session: &Session,
    line: Line<'_>,
    id: ostler_client::ProtectionId,
    mut look: bool,
) -> Result<Place> {
    let path = paths::join(line.path, &format!("_c_{id}-{}", line.word));
    loop {
        let names = match look {
            true => session.get_children(line.path).await.unwrap_or_default(),
            false => Vec::new(),
        };
        look = true;
        for name in names.iter().filter(|name| id.is_in(name)) {
            let path = paths::join(line.path, name);
            if let Ok(Some(stat)) = session.exists(&path).await {
                return Ok(Place::at(session, &path, Token(stat.czxid)));
            }
        }
        match session.create(&path, line.data).ephemeral_sequential().creating_container_parents().await {
            Err(error) if error.is_connection_trouble() => drop(session.wait_connected().await?),
            made => {
                let made = made?;
                return Ok(Place::at(session, &made.path, Token(made.stat.czxid)));
            }
        }
    }
}

/// Of those who are gone meanwhile nothing is left in the queue.
async fn with_arrivals(
    client: &Client,
    path: &str,
    words: &[&str],
    names: Vec<String>,
    mut known: Arrivals,
) -> Result<Queue> {
    let undecided = undecided(&names, |name| number_of(name, words));
    if undecided.is_empty() {
        return Ok(Queue::of(names));
    }
    let (mut arrivals, mut gone) = (Arrivals::new(), Vec::new());
    for name in undecided {
        let came = match arrival_in(name, words).or_else(|| known.remove(name)) {
            None => client.exists(&paths::join(path, name)).await?.map(|stat| stat.czxid),
            came => came,
        };
        match came {
            Some(came) => drop(arrivals.insert(name.to_owned(), came)),
            None => gone.push(name.to_owned()),
        }
    }
    let mut names = names;
    names.retain(|name| !gone.contains(name));
    Ok(Queue { names, arrivals })
}

/// The paths of a queue's znodes, the first in it first.
pub(crate) async fn participant_nodes(client: &Client, path: &str, word: &str) -> Result<Vec<String>> {
    let names = match client.get_children(path).await {
        Err(error) if error.is_no_node() => Vec::new(),
        names => names?,
    };
    let queue = with_arrivals(client, path, &[word], names, Arrivals::new()).await?;
    let names = queue.in_order(|name| number_of(name, &[word]));
    Ok(names.iter().map(|name| paths::join(path, name)).collect())
}

/// Whether writes reach a majority of the servers now. A server that is cut off from them answers reads.
pub(crate) fn is_writable(state: ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected | ConnectionState::Reconnected)
}

/// Waits until writes reach a majority of the servers.
pub(crate) async fn wait_writable(client: &Client) -> Result<()> {
    let mut states = client.states();
    while let Some(state) = states.next().await {
        if is_writable(state.state) {
            return Ok(());
        }
    }
    // Ended for a reader who is too slow, or with the client: the next operation knows.
    Ok(client.wait_connected().await.map(drop)?)
}

/// How often a session that lives may be called over. A server that has just expired it says so before the client
/// knows; one that goes on saying so means that what is asked for is not for this session: that is what followers
/// answer to a multi with an ephemeral znode in a local session.
const CALLED_OVER_MAX: u32 = 5;

/// Does `attempt` in the present session, and again in the next one if that is over before it was done.
pub(crate) async fn in_a_session<T, F>(client: &Client, mut attempt: impl FnMut(Session) -> F) -> Result<T>
where
    F: Future<Output = Result<T>> + Send,
{
    let mut called_over = 0;
    loop {
        let session = client.session().await?;
        match attempt(session.clone()).await {
            Err(crate::Error::Client(error))
                if error.is_session_over() && !matches!(error, ostler_client::Error::Closed) =>
            {
                if session.is_alive() {
                    called_over += 1;
                    if called_over > CALLED_OVER_MAX {
                        return Err(error.into());
                    }
                    pause(called_over).await;
                } else {
                    called_over = 0;
                }
                tracing::debug!(%error, "contending anew in another session");
            }
            done => return done,
        }
    }
}
