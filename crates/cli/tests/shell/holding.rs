//! Tests of `lock` and `elect`, which run a program while the shell holds a lock or leads.

use crate::program::{Said, ends, once, said, script, shell};
use ostler_testkit::{TestOptions, TestServer};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Child, ChildStdout, Stdio},
    time::Duration,
};

/// A program that prints its token and runs until its input ends.
const WAITS: &str = "echo $OSTLER_TOKEN; cat";

/// A program that waits for SIGTERM and prints a line then.
const LISTENS: &str = "end() { echo told $1; kill $!; exit $2; }; trap 'end INT 2' INT; trap 'end TERM 3' TERM; \
                       trap 'end HUP 4' HUP; sleep 1000 >/dev/null 2>&1 & echo $OSTLER_TOKEN; wait";

/// Starts the shell without a terminal: the terminal of the tests would send signals to the program by itself.
fn hold(server: &str, what: &str, script: &str) -> Child {
    let words = [server, what, "/held", "--", "sh", "-c", script];
    shell().args(words).stdin(Stdio::piped()).process_group(0).spawn().unwrap()
}

fn tell(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The first line of the output, which the program prints when the shell holds.
fn token(child: &mut Child) -> u64 {
    token_and_rest(child).0
}

fn token_and_rest(child: &mut Child) -> (u64, BufReader<ChildStdout>) {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    (line.trim().parse().unwrap(), out)
}

async fn one_after_the_other(what: &str) {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut first = hold(&at, what, WAITS);
    let first_token = token(&mut first);
    let mut second = hold(&at, what, WAITS);
    // The second shell is in the queue.
    server.until(|counts| counts.ephemerals == 2 && counts.watches > 1).await.unwrap();
    assert!(second.try_wait().unwrap().is_none());
    drop(first.stdin.take());
    assert_eq!(ends(&mut first), Some(0));
    assert!(token(&mut second) > first_token);
    drop(second.stdin.take());
    assert_eq!(ends(&mut second), Some(0));
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
async fn the_shell_ends_with_the_exit_code_of_the_program() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    assert_eq!(once(&at, &["lock", "/held", "sh", "-c", "exit 7"]).code, Some(7));
    assert_eq!(once(&at, &["lock", "/held", "sh", "-c", "kill -9 $$"]).code, Some(137));
    let Said { err, code, .. } = once(&at, &["lock", "/held", "no-such-program"]);
    assert!(err.starts_with("cannot start no-such-program: "), "{err}");
    assert_eq!(code, Some(127), "as shells say that there is none");
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "no program").unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o644)).unwrap();
    let Said { err, code, .. } = once(&at, &["elect", "/held", text.to_str().unwrap()]);
    assert!(err.contains("text: Permission denied"), "{err}");
    assert_eq!(code, Some(126), "as shells say that it cannot be run");
    assert_eq!(once(&at, &["ls", "/held"]).out, "[]\n", "nothing is left behind");
}

#[tokio::test]
async fn a_command_ends_when_the_lock_may_be_lost() {
    let options = TestOptions::new().session_timeouts(Duration::from_secs(1), Duration::from_secs(1));
    let mut server = TestServer::start_with(options).await.unwrap();
    let mut child = hold(&server.connect_string(), "lock", WAITS);
    token(&mut child);
    // The program would end by itself if its input were closed.
    let input = child.stdin.take();
    server.kill().await;
    let code = ends(&mut child);
    drop(input);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("may be lost: ending the command"), "{err}");
}

async fn a_signal_ends_the_command_first(what: &str, signal: Signal, heard: &str, code: i32) {
    let server = TestServer::start().await.unwrap();
    let mut child = hold(&server.connect_string(), what, LISTENS);
    let (_, mut out) = token_and_rest(&mut child);
    tell(&child, signal);
    let ended = ends(&mut child);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((&*rest, ended), (heard, Some(code)));
    // The lock was released, and did not wait for the end of the session.
    server.until(|counts| counts.ephemerals == 0 && counts.sessions == 0).await.unwrap();
}

#[tokio::test]
async fn sigterm_is_passed_on_to_the_program() {
    a_signal_ends_the_command_first("lock", Signal::TERM, "told TERM\n", 3).await;
}

#[tokio::test]
async fn sigint_is_passed_on_to_the_program() {
    a_signal_ends_the_command_first("elect", Signal::INT, "told INT\n", 2).await;
}

#[tokio::test]
async fn sighup_is_passed_on_to_the_program() {
    a_signal_ends_the_command_first("lock", Signal::HUP, "told HUP\n", 4).await;
}

#[tokio::test]
async fn a_signal_ends_the_wait_for_the_lock() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut first = hold(&at, "lock", WAITS);
    token(&mut first);
    let second = hold(&at, "lock", WAITS);
    server.until(|counts| counts.ephemerals == 2 && counts.watches > 1).await.unwrap();
    tell(&second, Signal::TERM);
    let Said { out, code, .. } = said(second.wait_with_output().unwrap());
    assert_eq!((&*out, code), ("", Some(130)));
    server.until(|counts| counts.ephemerals == 1).await.unwrap();
    drop(first.stdin.take());
    assert_eq!(ends(&mut first), Some(0));
}

#[tokio::test]
async fn a_signal_ends_a_script_with_its_command() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let lines = "lock /held -- sh -c 'kill -TERM $PPID; exec sleep 1000'\ncreate /after\n";
    let Said { out, err, code } = script(&at, &[], lines);
    assert_eq!((&*out, code), ("", Some(143)), "{err}");
    assert_eq!(once(&at, &["ls", "/"]).out, "[held, zookeeper]\n");
}

#[tokio::test]
async fn the_lines_of_a_script_are_not_the_commands_input() {
    let server = TestServer::start().await.unwrap();
    // More than one read takes.
    let many = "# a remark\n".repeat(20_000);
    let lines = format!("lock /held -- cat\n{many}ls /\n");
    let Said { out, code, .. } = script(&server.connect_string(), &[], &lines);
    assert_eq!((&out[..out.len().min(100)], code), ("[held, zookeeper]\n", Some(0)));
}

#[tokio::test]
async fn a_command_ends_when_its_session_has() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut first = hold(&at, "elect", LISTENS);
    let (first_token, mut out) = token_and_rest(&mut first);
    let session = server.sessions().unwrap()[0];
    let mut second = hold(&at, "elect", WAITS);
    server.until(|counts| counts.ephemerals == 2 && counts.watches > 1).await.unwrap();
    server.expire(session).await.unwrap();

    let code = ends(&mut first);
    let (mut rest, mut err) = (String::new(), String::new());
    out.read_to_string(&mut rest).unwrap();
    first.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((&*rest, code), ("told TERM\n", Some(1)), "{err}");
    let said: Vec<&str> = err.lines().collect();
    assert!(said[0].ends_with(" may be lost: ending the command"), "{err}");
    assert!(said[1].ends_with(" was lost while the command ran"), "{err}");
    assert_eq!(said.len(), 2, "{err}");
    assert!(token(&mut second) > first_token);
    drop(second.stdin.take());
    assert_eq!(ends(&mut second), Some(0));
}

#[tokio::test]
async fn a_command_ends_when_its_znode_is_deleted() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    for what in ["lock", "elect"] {
        let mut child = hold(&at, what, LISTENS);
        let (_, mut out) = token_and_rest(&mut child);
        // Another client deletes the znode.
        assert_eq!(once(&at, &["deleteall", "/held"]).code, Some(0));
        assert_eq!(ends(&mut child), Some(1), "{what}");
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "told TERM\n", "{what}");
        server.until(|counts| counts.sessions == 0).await.unwrap();
    }
}
