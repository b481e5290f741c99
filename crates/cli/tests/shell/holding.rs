//! Commands that run while something is held.

use crate::program::{Said, once, shell};
use ostler_testkit::{TestOptions, TestServer};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
    time::Duration,
};

/// Runs until its input ends; says its token first.
const WAITS: &str = "echo $OSTLER_TOKEN; cat";

fn hold(server: &str, what: &str, script: &str) -> Child {
    let words = [server, what, "/held", "--", "sh", "-c", script];
    shell().args(words).stdin(Stdio::piped()).spawn().unwrap()
}

/// The first line, which it says once it holds.
fn token(child: &mut Child) -> u64 {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

async fn one_after_the_other(what: &str) {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut first = hold(&at, what, WAITS);
    let first_token = token(&mut first);
    let mut second = hold(&at, what, WAITS);
    // It stands in the queue.
    server.until(|counts| counts.ephemerals == 2 && counts.watches > 1).await.unwrap();
    assert!(second.try_wait().unwrap().is_none());
    drop(first.stdin.take());
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert!(token(&mut second) > first_token);
    drop(second.stdin.take());
    assert_eq!(second.wait().unwrap().code(), Some(0));
    server.until(|counts| counts.ephemerals == 0).await.unwrap();
}

#[tokio::test]
async fn one_holds_a_lock_at_a_time() {
    one_after_the_other("lock").await;
}

#[tokio::test]
async fn one_leads_at_a_time() {
    one_after_the_other("elect").await;
}

#[tokio::test]
async fn it_ends_as_the_command_does() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    assert_eq!(once(&at, &["lock", "/held", "sh", "-c", "exit 7"]).code, Some(7));
    assert_eq!(once(&at, &["lock", "/held", "sh", "-c", "kill -9 $$"]).code, Some(137));
    let Said { err, code, .. } = once(&at, &["lock", "/held", "no-such-program"]);
    assert!(err.starts_with("cannot start no-such-program: "), "{err}");
    assert_eq!(code, Some(1));
    assert_eq!(once(&at, &["ls", "/held"]).out, "[]\n", "nothing is left behind");
}

#[tokio::test]
async fn a_command_ends_when_the_lock_may_be_lost() {
    let options = TestOptions::new().session_timeouts(Duration::from_secs(1), Duration::from_secs(1));
    let mut server = TestServer::start_with(options).await.unwrap();
    let mut child = hold(&server.connect_string(), "lock", WAITS);
    token(&mut child);
    // It would end by itself if this were closed.
    let input = child.stdin.take();
    server.kill().await;
    let code = child.wait().unwrap().code();
    drop(input);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("may be lost: ending the command"), "{err}");
}
