//! The state that all requests share.

use crate::{
    clients::Census,
    ensemble::RecentEnds,
    events::Events,
    fan_out::FanOut,
    inner_client::Clients,
    metrics::Ring,
    people::{self, People, Ticket},
    recipes::RecipesState,
    tree::TreeState,
    watches::Surveys,
};
use ostler_server::admin::{AdminHandle, logins::Logins};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Long lists that are gathered at once.
const TURNS: usize = 4;

/// The parts of the console.
pub(crate) struct Console {
    /// The server.
    pub(crate) handle: AdminHandle,
    /// The people who have signed in.
    pub(crate) people: People,
    /// The logins of programs.
    pub(crate) logins: Logins,
    /// The sessions in which they change znodes.
    pub(crate) clients: Clients,
    /// The token of those who have not signed in. Pages of other sites cannot read it.
    pub(crate) token: Ticket,
    /// The state that only the pages of the tree need.
    pub(crate) tree: TreeState,
    /// The state that only the pages about leadership need.
    pub(crate) recipes: RecipesState,
    /// Those who gather long lists wait here for their turn.
    pub(crate) turns: Arc<Semaphore>,
    /// The watches, as they were a short time ago.
    pub(crate) surveys: Surveys,
    /// The clients, as they were a short time ago.
    pub(crate) census: Census,
    /// Questions to the other members.
    pub(crate) fan_out: FanOut,
    /// The pages that somebody follows.
    pub(crate) events: Events,
    /// Where the sessions begin that ended lately.
    pub(crate) recent_ends: RecentEnds,
    /// The samples of the charts.
    pub(crate) ring: Ring,
}

impl Console {
    /// `None` if the system gives no random numbers.
    pub(crate) fn new(handle: AdminHandle) -> Option<Console> {
        let token = people::new_ticket()?;
        Some(Console {
            handle,
            people: People::default(),
            logins: Logins::default(),
            clients: Clients::default(),
            token,
            tree: TreeState::default(),
            recipes: RecipesState::default(),
            turns: Arc::new(Semaphore::new(TURNS)),
            surveys: Surveys::default(),
            census: Census::default(),
            fan_out: FanOut::default(),
            events: Events::default(),
            recent_ends: RecentEnds::default(),
            ring: Ring::default(),
        })
    }
}
