//! Conditional writes: sets or creates a znode if no other client has. If the reply is lost, the znode shows whether the
//! write was done.

use crate::{
    counter::{CounterError, Result},
    until_answered::{pause, until_answered},
};
use ostler_client::{Bytes, Client, Error, Stat, Version};

/// The outcome of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swap {
    /// The write was done.
    Done(Stat),
    /// Another client has written before. Nothing was changed.
    Lost,
}

/// The znode's evidence about a write whose reply was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The write was not done, and can be tried again.
    NotDone,
    /// The write was not done, and another client has written.
    Lost,
    /// The write may have been done.
    Unclear,
}

/// Evidence about a write of `data` to a znode that had the version `expected` before.
fn evidence_of_set(expected: i32, data: &[u8], found: Option<(&[u8], &Stat)>) -> Evidence {
    match found {
        Some((_, stat)) if stat.version == expected => Evidence::NotDone,
        // The first write after that version was another client's.
        Some((now, stat)) if stat.version == expected.wrapping_add(1) && now != data => Evidence::Lost,
        _ => Evidence::Unclear,
    }
}

/// Evidence about the creation of a znode with `data`.
fn evidence_of_create(data: &[u8], found: Option<(&[u8], &Stat)>) -> Evidence {
    match found {
        None => Evidence::NotDone,
        Some((now, stat)) if stat.version == 0 && now != data => Evidence::Lost,
        Some(_) => Evidence::Unclear,
    }
}

/// Sets the data if the version is still `expected`.
pub(crate) async fn set(client: &Client, path: &str, data: &[u8], expected: i32) -> Result<Swap> {
    if expected == -1 {
        return Err(CounterError::VersionUnusable { path: path.into() });
    }
    let ask = || client.set_data(path, data).version(Version::Exactly(expected));
    let lost = |error: &Error| error.is_bad_version() || error.is_no_node();
    settle(client, path, ask, lost, |stat| stat, |found| evidence_of_set(expected, data, found)).await
}

/// Creates the znode if it does not exist. Missing parents are created as containers.
pub(crate) async fn create(client: &Client, path: &str, data: &[u8]) -> Result<Swap> {
    let ask = || client.create(path, data).creating_container_parents();
    let lost = Error::is_node_exists;
    settle(client, path, ask, lost, |made| made.stat, |found| evidence_of_create(data, found)).await
}

/// Sends the write until its outcome is known, or cannot be known.
async fn settle<T, F>(
    client: &Client,
    path: &str,
    mut ask: impl FnMut() -> F,
    lost: impl Fn(&Error) -> bool,
    stat: impl Fn(T) -> Stat,
    evidence: impl Fn(Option<(&[u8], &Stat)>) -> Evidence,
) -> Result<Swap>
where
    F: IntoFuture<Output = ostler_client::Result<T>>,
{
    let mut tries = 0;
    loop {
        let error = match ask().await {
            Ok(done) => return Ok(Swap::Done(stat(done))),
            Err(error) if lost(&error) => return Ok(Swap::Lost),
            Err(error) if error.is_connection_trouble() => error,
            Err(error) => return Err(error.into()),
        };
        if error.is_outcome_unknown() {
            let found = read_now(client, path).await?;
            match evidence(found.as_ref().map(|(data, stat)| (&data[..], stat))) {
                Evidence::NotDone => {}
                Evidence::Lost => return Ok(Swap::Lost),
                Evidence::Unclear => return Err(error.into()),
            }
        } else if tries >= 1 {
            // The client has waited for a connection in vain twice, and has not sent the request.
            return Err(error.into());
        }
        tries += 1;
        pause(tries).await;
    }
}

/// Reads the znode's present state, after a sync.
async fn read_now(client: &Client, path: &str) -> ostler_client::Result<Option<(Bytes, Stat)>> {
    until_answered(client, || client.sync(path)).await?;
    match until_answered(client, || client.get_data(path)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_version_show_whether_a_write_was_done() {
        let at = |version| Stat { version, ..Stat::default() };
        for (expected, now, version, evidence) in [
            (4, "old", 4, Evidence::NotDone),
            (4, "new", 4, Evidence::NotDone),
            (4, "other", 5, Evidence::Lost),
            (4, "new", 5, Evidence::Unclear),
            (4, "other", 6, Evidence::Unclear),
            (i32::MAX, "other", i32::MIN, Evidence::Lost),
        ] {
            let stat = at(version);
            let found = Some((now.as_bytes(), &stat));
            assert_eq!(evidence_of_set(expected, b"new", found), evidence, "{expected} {now} {version}");
        }
        assert_eq!(evidence_of_set(4, b"new", None), Evidence::Unclear, "deleted since");
        assert_eq!(evidence_of_create(b"new", None), Evidence::NotDone);
        assert_eq!(evidence_of_create(b"new", Some((b"other", &at(0)))), Evidence::Lost);
        assert_eq!(evidence_of_create(b"new", Some((b"new", &at(0)))), Evidence::Unclear);
        assert_eq!(evidence_of_create(b"new", Some((b"other", &at(1)))), Evidence::Unclear);
    }
}
