//! The state that all requests share.

use crate::{
    inner_client::Clients,
    metrics::Ring,
    people::{self, People, Ticket},
};
use ostler_server::admin::AdminHandle;

/// The parts of the console.
pub(crate) struct Console {
    /// The server.
    pub(crate) handle: AdminHandle,
    /// The people who have signed in.
    pub(crate) people: People,
    /// The sessions in which they change znodes.
    pub(crate) clients: Clients,
    /// The token of those who have not signed in. Pages of other sites cannot read it.
    pub(crate) token: Ticket,
    /// The samples of the charts.
    pub(crate) ring: Ring,
}

impl Console {
    /// `None` if the system gives no random numbers.
    pub(crate) fn new(handle: AdminHandle) -> Option<Console> {
        let token = people::new_ticket()?;
        let (people, clients, ring) = (People::default(), Clients::default(), Ring::default());
        Some(Console { handle, people, clients, token, ring })
    }
}
