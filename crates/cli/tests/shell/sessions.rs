//! Tests of sessions that end while the shell runs, and of `redo`.

use crate::program::{Said, ends, once, said, script, shell};
use expect_test::expect;
use ostler_proto::op::Op;
use ostler_testkit::{CutPoint, FrameProxy, SeenFrame, TestServer};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

async fn server() -> TestServer {
    TestServer::start().await.unwrap()
}

#[tokio::test]
async fn redo_repeats_a_line() {
    let server = server().await;
    let lines = "create /a\ncreate -s /a/n- x\nredo 1\nredo 3\nget \"/open\nredo 3\nredo\nredo 2\nhistory\n";
    let Said { out, err, code } = script(&server.connect_string(), &[], lines);
    expect![[r#"
        Created /a
        Created /a/n-0000000000
        Created /a/n-0000000001
        Created /a/n-0000000002
        0 - create /a
        1 - create -s /a/n- x
        2 - create -s /a/n- x
        3 - redo 3
        4 - get "/open
        5 - redo 3
        6 - redo
        7 - create -s /a/n- x
        8 - history
    "#]]
    .assert_eq(&out);
    expect![[r#"
        line 4: no command before this one has the number 3; history shows them
        line 5: a " is opened and not closed; to have it as it is, put the word into the other kind of quotes
        line 6: redo repeats an earlier line, and not another redo
        line 7: usage: redo cmdno
    "#]]
    .assert_eq(&err);
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn sessions_are_closed_and_opened() {
    let (first, second) = (server().await, server().await);
    let (at, other) = (first.connect_string(), second.connect_string());
    once(&other, &["create", "/b"]);
    let lines = format!(
        "create -e /mine\nclose\nls /\nclose\nconnect {other}/b\nls /\nconnect {other}\nls /\n\
         create -e /gone\nconnect\nls /\nconnect 127.0.0.1:1\nls /\nconnect {at}\nls /\n"
    );
    let Said { out, err, code } = script(&at, &["--connect-timeout", "3000"], &lines);
    assert_eq!(code, Some(3), "{err}");
    expect![[r#"
        Created /mine
        []
        [b, zookeeper]
        Created /gone
        [b, zookeeper]
        [zookeeper]
    "#]]
    .assert_eq(&out);
    let said: Vec<&str> = err.lines().collect();
    let closed = "Not connected: connect HOST:PORT opens a session";
    assert_eq!(said[..2], [format!("line 3: {closed}"), format!("line 4: {closed}")]);
    assert!(said[2].starts_with("line 12: no session with 127.0.0.1:1"), "{err}");
    assert_eq!(said[3..], [format!("line 13: {closed}")]);
}

#[tokio::test]
async fn watches_are_removed_here_without_a_connection() {
    let mut server = server().await;
    let at = server.connect_string();
    once(&at, &["create", "/a", "x"]);
    once(&at, &["create", "/b", "x"]);
    let mut child = shell().arg(&at).stdin(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"get -w /a\nget -w /b\n").unwrap();
    assert_eq!(out.next().unwrap().unwrap(), "x");
    assert_eq!(out.next().unwrap().unwrap(), "x");
    server.kill().await;
    input.write_all(b"removewatches /a -d -l\nprintwatches\n").unwrap();
    assert_eq!(out.next().unwrap().unwrap(), "printwatches is on");
    server.restart().await.unwrap();
    // The other watch is set again.
    server.until(|counts| counts.watches == 1).await.unwrap();
    once(&at, &["set", "/a", "y"]);
    once(&at, &["set", "/b", "z"]);
    input.write_all(b"get /a\nget /b\n").unwrap();
    drop(input);
    let rest: Vec<String> = out.map(|line| line.unwrap()).filter(|line| !line.is_empty()).collect();
    assert_eq!(rest.len(), 4, "{rest:?}");
    assert_eq!(rest[0], "WATCHER::");
    assert!(rest[1].contains("type:NodeDataChanged path:/b "), "{rest:?}");
    assert_eq!(rest[2..], ["y", "z"]);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((ends(&mut child), &*err), (Some(0), ""));
}

#[tokio::test]
async fn ls_r_sets_the_watches_that_zkcli_sets() {
    let server = server().await;
    let lines = "create /a\ncreate /a/b\nls -R -w /a\nset /a x\ncreate /a/b/c\nget -x /a/b\ndelquota /a\n";
    let Said { out, err, .. } = script(&server.connect_string(), &[], lines);
    expect![[r#"
        Created /a
        Created /a/b
        /a
        /a/b

        WATCHER::

        WatchedEvent state:SyncConnected type:NodeDataChanged path:/a zxid: 4

        WATCHER::

        WatchedEvent state:SyncConnected type:NodeChildrenChanged path:/a/b zxid: 5
        Created /a/b/c

    "#]]
    .assert_eq(&out);
    assert_eq!(err, "line 7: Quota does not exist for /a\n");
}

/// Scripts use the exit code: 3 would mean that nothing was done.
#[tokio::test]
async fn a_command_that_loses_its_connection_in_the_middle_has_an_unknown_outcome() {
    let server = server().await;
    let at = server.connect_string();
    let proxy = FrameProxy::start(server.address()).await.unwrap();
    script(&at, &[], "create -p /a/b/c\ncreate -p /b/b/c\n");
    let delete = |timeout_ms, path| {
        let mut delete = shell();
        let at = proxy.connect_string();
        delete.args(["--connect-timeout", timeout_ms, &at, "deleteall", path, "-b", "1"]);
        delete
    };
    assert_eq!(said(delete("20000", "/a").output().unwrap()).code, Some(0));
    let is_multi = |seen: &&SeenFrame| matches!(seen, SeenFrame::Request { op: Some(Op::Multi), .. });
    let Some(SeenFrame::Request { number, .. }) = proxy.seen().iter().find(is_multi).copied() else {
        panic!("it deletes by transactions")
    };

    proxy.reset();
    let mut first = proxy.hold_at(CutPoint::AfterReply(number));
    let child = delete("3000", "/b").spawn().unwrap();
    first.reached().await.unwrap();
    proxy.block();
    let Said { err, code, .. } = said(child.wait_with_output().unwrap());
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("may have been done in part"), "{err}");
    assert_eq!(once(&at, &["ls", "-R", "/b"]).out, "/b\n/b/b\n");

    // The second command was not begun, so it was not done.
    let Said { err, code, .. } = said(delete("300", "/b").output().unwrap());
    assert_eq!(code, Some(3), "{err}");
}
