//! Walks through a znode and all below it: parents first, children by name. Lists of children are requested ahead.

use super::error::ShellError;
use ostler_client::{Client, Error, ErrorCode, Result, Stat, Watch, paths};
use std::{future::Future, pin::Pin};

/// The number of requests that may wait for an answer at each level.
const AHEAD: usize = 64;

type Reading = Pin<Box<dyn Future<Output = Result<(Vec<String>, Stat, Option<Watch>)>> + Send>>;

/// A znode of the walk.
pub(crate) struct Visited {
    pub(crate) path: String,
    /// The number of levels below the first znode.
    pub(crate) depth: usize,
    /// Whether this is the last of its siblings.
    pub(crate) last: bool,
    /// Its children, sorted.
    pub(crate) names: Vec<String>,
    pub(crate) stat: Stat,
    pub(crate) watch: Option<Watch>,
}

struct Unread {
    path: String,
    depth: usize,
    last: bool,
    reading: Option<Reading>,
}

/// A walk. Znodes that are created or deleted meanwhile may be in it or not.
pub(crate) struct Walk {
    client: Client,
    depth_max: usize,
    watching: bool,
    /// The znodes that are still to come; the next one is the last.
    unread: Vec<Unread>,
    visited: usize,
    failed: Option<(usize, Error)>,
}

impl Walk {
    /// Begins at `path`, and goes down `depth` levels.
    pub(crate) fn new(client: &Client, path: &str, depth_max: Option<usize>) -> Walk {
        let first = Unread { path: path.to_owned(), depth: 0, last: true, reading: None };
        Walk {
            client: client.clone(),
            depth_max: depth_max.unwrap_or(usize::MAX),
            watching: false,
            unread: vec![first],
            visited: 0,
            failed: None,
        }
    }

    /// Sets a child watch at each znode.
    pub(crate) fn watching(mut self, watching: bool) -> Walk {
        self.watching = watching;
        self
    }

    /// The next znode. A znode below the first that is gone or may not be read is left out; see [`Walk::end`].
    ///
    /// # Errors
    /// The first znode cannot be read, or the connection is lost.
    pub(crate) async fn next(&mut self) -> Result<Option<Visited>> {
        loop {
            self.read_ahead();
            let Some(Unread { path, depth, last, reading }) = self.unread.pop() else { return Ok(None) };
            let reading = reading.unwrap_or_else(|| read(&self.client, &path, self.watching));
            let (mut names, stat, watch) = match reading.await {
                Err(error) if depth > 0 && error.is_no_node() => continue,
                Err(error) if depth > 0 && error.code() == Some(ErrorCode::NoAuth) => {
                    let (count, first) = self.failed.take().unwrap_or((0, error));
                    self.failed = Some((count + 1, first));
                    continue;
                }
                read => read?,
            };
            names.sort_unstable();
            if depth < self.depth_max {
                let below = names.iter().enumerate().rev().map(|(at, name)| Unread {
                    path: paths::join(&path, name),
                    depth: depth + 1,
                    last: at + 1 == names.len(),
                    reading: None,
                });
                self.unread.extend(below);
            }
            self.visited += 1;
            return Ok(Some(Visited { path, depth, last, names, stat, watch }));
        }
    }

    fn read_ahead(&mut self) {
        for unread in self.unread.iter_mut().rev().take(AHEAD) {
            let (client, watching) = (&self.client, self.watching);
            unread.reading.get_or_insert_with(|| read(client, &unread.path, watching));
        }
    }

    /// Ends the walk.
    ///
    /// # Errors
    /// Some znodes could not be read: their number and the first error.
    pub(crate) fn end(self) -> std::result::Result<(), ShellError> {
        match self.failed {
            None => Ok(()),
            Some((failed, first)) => {
                Err(ShellError::Partly { failed, all: self.visited + failed, first: Box::new(first.into()) })
            }
        }
    }
}

/// Sends the request at once. The future gives the answer.
fn read(client: &Client, path: &str, watching: bool) -> Reading {
    let read = client.get_children_and_stat(path);
    if watching {
        let read = read.watch();
        return Box::pin(async move { read.await.map(|((names, stat), watch)| (names, stat, Some(watch))) });
    }
    let read = read.send();
    Box::pin(async move { read.await.map(|(names, stat)| (names, stat, None)) })
}
