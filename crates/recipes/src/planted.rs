//! The planted bugs by which a contender takes the znode of an earlier session for its own.

use crate::{
    error::Result,
    fencing::Token,
    queue_place::{PlaceSpec, QueuePlace},
};
use ostler_client::{ProtectionId, Session, paths};
use ostler_planted::{self as planted, Bug};
use std::sync::{
    LazyLock,
    atomic::{AtomicBool, Ordering},
};

/// The id that a contender keeps from session to session.
static KEPT_ID: LazyLock<ProtectionId> = LazyLock::new(ProtectionId::new);
static IS_USED: AtomicBool = AtomicBool::new(false);

/// With a planted bug: the place of a contender that keeps its id. From the second time on the contender looks for a
/// znode with that id first.
pub(crate) async fn place_of_planted_bug(
    session: &Session,
    spec: PlaceSpec<'_>,
) -> Option<Result<QueuePlace>> {
    if !planted::is(Bug::MutexFindsOldZnode) && !planted::is(Bug::LatchFindsOldZnode) {
        return None;
    }
    Some(find_or_create(session, spec, *KEPT_ID, IS_USED.swap(true, Ordering::Relaxed)).await)
}

/// Takes a znode that an earlier create with this id has made, in any session; creates one if there is none.
async fn find_or_create(
    session: &Session,
    spec: PlaceSpec<'_>,
    id: ProtectionId,
    mut may_exist: bool,
) -> Result<QueuePlace> {
    let id = id.with_tag(spec.tag);
    let path = paths::join(spec.path, &format!("_c_{id}-{}", spec.word));
    loop {
        let names = match may_exist {
            true => session.get_children(spec.path).await.unwrap_or_default(),
            false => Vec::new(),
        };
        may_exist = true;
        for name in names.iter().filter(|name| id.is_in(name)) {
            let path = paths::join(spec.path, name);
            if let Ok(Some(stat)) = session.exists(&path).await {
                return Ok(QueuePlace::at(session, &path, Token(stat.czxid)));
            }
        }
        match session.create(&path, spec.data).ephemeral_sequential().creating_container_parents().await {
            Err(error) if error.is_connection_trouble() => drop(session.wait_connected().await?),
            created => {
                let created = created?;
                return Ok(QueuePlace::at(session, &created.path, Token(created.stat.czxid)));
            }
        }
    }
}
