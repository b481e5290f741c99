//! The ports for the other servers, opened at the start.

use super::DataStore;
use crate::{
    config::{EnsembleSettings, ServerConfig},
    driver::{Doors, Driver},
    error::ServerError,
    log_throttle::LogThrottle,
    overrides::PeerListeners,
    peers::{AddressBook, ElectionDoor, OtherServers, PeerSecurity, QuorumDoor},
};
use ostler_server_core::Input;
use std::{io, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinSet};

/// The time between two attempts to listen, as in ZooKeeper.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The ends of the connections with the other servers. Nothing listens yet.
pub(super) fn doors(
    config: &ServerConfig,
    ensemble: &EnsembleSettings,
    security: &Arc<PeerSecurity>,
    store: &DataStore,
) -> Doors {
    let all = [&ensemble.membership].into_iter().chain(&ensemble.pending);
    let book = Arc::new(AddressBook::new(ensemble.me, all));
    let others = OtherServers { settings: ensemble.clone(), book: book.clone(), security: security.clone() };
    Doors {
        election: ElectionDoor::new(others.clone()),
        quorum: QuorumDoor::new(
            others,
            Duration::from_millis(config.tick_time_ms as u64),
            (store.files.clone(), store.folders.clone()),
            config.tree.extended_types(),
            config.limits.jute_max_buffer as usize,
        ),
        book,
    }
}

/// Listens on the ports for the other servers, or takes the sockets that the caller has given in their place.
pub(super) async fn open(
    doors: &Doors,
    ensemble: &EnsembleSettings,
    listeners: Option<PeerListeners>,
    driver: &Arc<Driver>,
    tasks: &mut JoinSet<()>,
) -> Result<(), ServerError> {
    doors.election.serve(driver);
    doors.quorum.serve(driver);
    let (quorum, election) = match listeners {
        Some(listeners) => (vec![ready(listeners.quorum)?], vec![ready(listeners.election)?]),
        None => {
            let retries = ensemble.bind_retries;
            let quorum = patiently(retries, || doors.quorum.listen()).await?;
            (quorum, patiently(retries, || doors.election.listen()).await?)
        }
    };
    // The search for a leader begins before anybody calls: a vote that comes earlier would not count in it.
    driver.step(Input::Deadline);
    tasks.spawn(doors.quorum.clone().accept(quorum));
    if let Some(port) = ensemble.observer_master_port {
        tasks.spawn(doors.quorum.clone().accept_observers(port));
    }
    tasks.spawn(doors.election.clone().accept(election));
    Ok(())
}

/// Tries to listen until it succeeds, or the number of retries is used up; `None` is without end. A server's own name
/// may resolve only seconds after the start, and a port may be free only once the process before has ended.
async fn patiently<F>(retries: Option<u32>, listen: impl Fn() -> F) -> Result<Vec<TcpListener>, ServerError>
where
    F: Future<Output = Result<Vec<TcpListener>, (String, io::Error)>>,
{
    let (mut tried, mut said) = (0, LogThrottle::default());
    loop {
        let (address, source) = match listen().await {
            Ok(listeners) => return Ok(listeners),
            Err(failed) => failed,
        };
        if retries.is_some_and(|retries| tried >= retries) {
            return Err(ServerError::ListenForPeers { address, source });
        }
        if said.take_turn() {
            let of = retries.map_or_else(|| "without end".into(), |retries| format!("{retries} times"));
            tracing::warn!(
                %address, error = %source,
                "cannot listen for the other servers yet; it is tried again each second, {of} (electionPortBindRetry)"
            );
        }
        tried += 1;
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

fn ready(listener: std::net::TcpListener) -> Result<TcpListener, ServerError> {
    let address =
        listener.local_addr().map_or_else(|_| "a given socket".into(), |address| address.to_string());
    let failed = |source| ServerError::ListenForPeers { address, source };
    listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)).map_err(failed)
}
