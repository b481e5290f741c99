//! Setting and creating a znode on the condition that nobody else has, and finding out whether that was done when
//! the reply is lost.

use crate::{
    counter::{CounterError, Result},
    until_answered::{pause, until_answered},
};
use ostler_client::{Bytes, Client, Error, Stat};

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swap {
    /// It was done.
    Done(Stat),
    /// Somebody else was there before; nothing was changed.
    Lost,
}

/// What a look at the znode says of a write whose reply was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traces {
    /// It was not done, and can be tried again.
    NotDone,
    /// It was not done, and somebody else has written.
    Lost,
    /// It may have been done.
    Unclear,
}

/// Before the write the znode had `expected` as its version.
fn traces_of_set(expected: i32, data: &[u8], found: Option<(&[u8], &Stat)>) -> Traces {
    match found {
        Some((_, stat)) if stat.version == expected => Traces::NotDone,
        // The first write after that version was another.
        Some((now, stat)) if stat.version == expected.wrapping_add(1) && now != data => Traces::Lost,
        _ => Traces::Unclear,
    }
}

fn traces_of_create(data: &[u8], found: Option<(&[u8], &Stat)>) -> Traces {
    match found {
        None => Traces::NotDone,
        Some((now, stat)) if stat.version == 0 && now != data => Traces::Lost,
        Some(_) => Traces::Unclear,
    }
}

/// Sets the data if the version is still `expected`.
pub(crate) async fn set(client: &Client, path: &str, data: &[u8], expected: i32) -> Result<Swap> {
    if expected == -1 {
        return Err(CounterError::VersionUnusable { path: path.into() });
    }
    let ask = || client.set_data(path, data).version(expected);
    let lost = |error: &Error| error.is_bad_version() || error.is_no_node();
    settle(client, path, ask, lost, |stat| stat, |found| traces_of_set(expected, data, found)).await
}

/// Creates the znode, and those above as containers, if it is not there.
pub(crate) async fn create(client: &Client, path: &str, data: &[u8]) -> Result<Swap> {
    let ask = || client.create(path, data).creating_container_parents();
    let lost = Error::is_node_exists;
    settle(client, path, ask, lost, |made| made.stat, |found| traces_of_create(data, found)).await
}

async fn settle<T, F>(
    client: &Client,
    path: &str,
    mut ask: impl FnMut() -> F,
    lost: impl Fn(&Error) -> bool,
    stat: impl Fn(T) -> Stat,
    traces: impl Fn(Option<(&[u8], &Stat)>) -> Traces,
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
            let found = look(client, path).await?;
            match traces(found.as_ref().map(|(data, stat)| (&data[..], stat))) {
                Traces::NotDone => {}
                Traces::Lost => return Ok(Swap::Lost),
                Traces::Unclear => return Err(error.into()),
            }
        } else if tries >= 1 {
            // Nothing was sent, for as long as the client waits for a connection.
            return Err(error.into());
        }
        tries += 1;
        pause(tries).await;
    }
}

/// The znode, as new as it is at this moment.
async fn look(client: &Client, path: &str) -> ostler_client::Result<Option<(Bytes, Stat)>> {
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
    fn what_is_found_tells_what_was_done() {
        let at = |version| Stat { version, ..Stat::default() };
        for (expected, now, version, traces) in [
            (4, "old", 4, Traces::NotDone),
            (4, "new", 4, Traces::NotDone),
            (4, "other", 5, Traces::Lost),
            (4, "new", 5, Traces::Unclear),
            (4, "other", 6, Traces::Unclear),
            (i32::MAX, "other", i32::MIN, Traces::Lost),
        ] {
            let stat = at(version);
            let found = Some((now.as_bytes(), &stat));
            assert_eq!(traces_of_set(expected, b"new", found), traces, "{expected} {now} {version}");
        }
        assert_eq!(traces_of_set(4, b"new", None), Traces::Unclear, "deleted since");
        assert_eq!(traces_of_create(b"new", None), Traces::NotDone);
        assert_eq!(traces_of_create(b"new", Some((b"other", &at(0)))), Traces::Lost);
        assert_eq!(traces_of_create(b"new", Some((b"new", &at(0)))), Traces::Unclear);
        assert_eq!(traces_of_create(b"new", Some((b"other", &at(1)))), Traces::Unclear);
    }
}
