//! Tests of one command from the arguments, and of many from the standard input.

use crate::program::{Said, ends, feed, once, said, script, shell, timeless};
use expect_test::expect;
use ostler_testkit::{TestOptions, TestServer};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

async fn server() -> TestServer {
    TestServer::start().await.unwrap()
}

#[tokio::test]
async fn answers_are_those_of_zkcli() {
    let server = server().await;
    let said = script(
        &server.connect_string(),
        &[],
        r#"
            # Names, spelling and options are zkCli's.
            create /a "two words"
            create -s /a/n- x
            create -e -s /a/e- y
            ls /a
            ls -R /a
            get -s /a
            set -s -v 0 /a {"x":1}
            get /a
            getAcl /a
            getAllChildrenNumber /a
            sync /
            whoami
            getEphemerals /nothing
            delete /a/n-0000000000
            ls -s /a
            version
            history
        "#,
    );
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let text = timeless(&said.out);
    let owners =
        text.lines().map(|line| if line.starts_with("ephemeralOwner") { "ephemeralOwner" } else { line });
    expect![[r#"
        Created /a
        Created /a/n-0000000000
        Created /a/e-0000000001
        [e-0000000001, n-0000000000]
        /a
        /a/e-0000000001
        /a/n-0000000000
        two words
        cZxid = 0x2
        ctime = ...
        mZxid = 0x2
        mtime = ...
        pZxid = 0x4
        cversion = 2
        dataVersion = 0
        aclVersion = 0
        ephemeralOwner
        dataLength = 9
        numChildren = 2
        cZxid = 0x2
        ctime = ...
        mZxid = 0x5
        mtime = ...
        pZxid = 0x4
        cversion = 2
        dataVersion = 1
        aclVersion = 0
        ephemeralOwner
        dataLength = 7
        numChildren = 2
        {"x":1}
        'world,'anyone
        : cdrwa
        2
        Sync is OK
        Auth scheme: User
        ip: 127.0.0.1
        []
        [e-0000000001]
        cZxid = 0x2
        ctime = ...
        mZxid = 0x5
        mtime = ...
        pZxid = 0x6
        cversion = 3
        dataVersion = 1
        aclVersion = 0
        ephemeralOwner
        dataLength = 7
        numChildren = 1
        Ostler shell version: 0.1.0
        6 - set -s -v 0 /a {"x":1}
        7 - get /a
        8 - getAcl /a
        9 - getAllChildrenNumber /a
        10 - sync /
        11 - whoami
        12 - getEphemerals /nothing
        13 - delete /a/n-0000000000
        14 - ls -s /a
        15 - version
        16 - history"#]]
    .assert_eq(&owners.collect::<Vec<_>>().join("\n"));
}

#[tokio::test]
async fn a_failed_line_is_reported_with_its_number_and_the_next_lines_run() {
    let server = server().await;
    let lines = "create /a\ncreate /b/c\nls /\nset -v 5 /a x\nfrobnicate\n";
    let Said { out, err, code } = script(&server.connect_string(), &[], lines);
    assert_eq!(code, Some(1));
    assert_eq!(out, "Created /a\n[a, zookeeper]\n");
    expect![[r#"
        line 2: Node does not exist: /b/c; create /b first, or let create -p make what is missing
        line 4: version No is not valid : /a; the znode has another version, which stat shows
        line 5: Command not found frobnicate; help lists all
    "#]]
    .assert_eq(&err);

    let Said { out, code, .. } = script(&server.connect_string(), &["-e"], "ls\nls /\n");
    assert_eq!((&*out, code), ("", Some(2)), "-e ends at the first failure");
}

#[tokio::test]
async fn one_command_ends_with_the_exit_code_of_its_result() {
    let server = server().await;
    let at = server.connect_string();
    let done = |words: &[&str]| once(&at, words);
    assert_eq!(done(&["create", "/a", "x"]).out, "Created /a\n");
    assert_eq!(done(&["get", "/a"]), Said { out: "x\n".into(), err: String::new(), code: Some(0) });
    let missing = done(&["get", "/b"]);
    assert_eq!((&*missing.err, missing.code), ("Node does not exist: /b\n", Some(1)));
    assert_eq!(done(&["get"]).code, Some(2));
    // The options of zkCli.sh.
    let upstream = said(shell().args(["-server", &at, "-timeout", "5000", "get", "/a"]).output().unwrap());
    assert_eq!((&*upstream.out, upstream.code), ("x\n", Some(0)));
    let root = once(&format!("{at}/a"), &["stat", "/"]);
    assert!(root.out.contains("dataLength = 1"), "{root:?}");
}

#[tokio::test]
async fn without_a_server_the_exit_code_is_3() {
    let mut server = server().await;
    let at = server.connect_string();
    server.kill().await;
    let words = ["--connect-timeout", "3000", &at, "ls", "/"];
    let Said { err, code, .. } = said(shell().args(words).output().unwrap());
    assert_eq!(code, Some(3));
    assert!(err.contains("no session with") && err.contains("refused"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[tokio::test]
async fn programs_get_json() {
    let server = server().await;
    let lines = "create /a x\nls /\nget /a\nset /a $'\\xff'\nget /a\nstat /nothing\nquit\nls /\n";
    let Said { out, code, .. } = script(&server.connect_string(), &["--json"], lines);
    assert_eq!(code, Some(1));
    expect![[r#"
        {"created":"/a"}
        {"path":"/","children":["a","zookeeper"]}
        {"path":"/a","data":"x"}
        {"path":"/a"}
        {"path":"/a","data_base64":"/w=="}
    "#]]
    .assert_eq(&out);
    let stat = once(&server.connect_string(), &["stat", "/a"]);
    assert!(stat.out.contains("dataVersion = 1"));
}

#[tokio::test]
async fn values_are_bytes() {
    let server = server().await;
    let at = server.connect_string();
    let bytes: Vec<u8> = (0..=255).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("value");
    fs::write(&file, &bytes).unwrap();
    assert_eq!(once(&at, &["create", "--file", file.to_str().unwrap(), "/a"]).code, Some(0));
    let raw = shell().args([&at, "get", "--raw", "/a"]).output().unwrap();
    assert_eq!(raw.stdout, bytes);
    let mut set = shell().args([&at, "set", "/a", "--file", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    feed(&mut set, b"from\0input");
    assert_eq!(set.wait_with_output().unwrap().status.code(), Some(0));
    let shown = once(&at, &["get", "/a"]);
    assert!(shown.out.contains("|from.input      |"), "{shown:?}");
    assert!(shown.err.contains("get --raw gives the bytes"), "{shown:?}");
    assert_eq!(once(&at, &["get", "-b", "/a"]).out, "ZnJvbQBpbnB1dA==\n");
    assert_eq!(once(&at, &["set", "-b", "/a", "AAE="]).code, Some(0));
    assert_eq!(shell().args([&at, "get", "--raw", "/a"]).output().unwrap().stdout, [0, 1]);
}

#[tokio::test]
async fn transactions_are_done_as_a_whole() {
    let server = server().await;
    let at = server.connect_string();
    let lines = "create /a\nbegin\nset /a 1\ncreate -s /a/n- x\ncheck /a 1\ncommit\nls /a\n\
                 begin\nset /a 2\ndelete /a/nothing\ncommit\nget /a\n\
                 begin\nset /a 3\nabort\ncommit\nget /a\nbegin\nset /a 4\n";
    let Said { out, err, code } = script(&at, &[], lines);
    assert_eq!(code, Some(1));
    expect![[r#"
        Created /a
        Created /a/n-0000000000
        [n-0000000000]
        1
        1
        --
        line 11: nothing was done, because of operation 2 of the transaction (delete /a/nothing): Node does not exist: /a/nothing
        line 16: no transaction has begun: begin begins one
        the transaction that was begun was not committed, so nothing of it was done
    "#]].assert_eq(&format!("{out}--\n{err}"));
    assert_eq!(once(&at, &["get", "/a"]).out, "1\n");
}

#[tokio::test]
async fn events_are_printed_before_the_answer_that_shows_their_change() {
    let server = server().await;
    let lines = "create /a x\nget -w /a\nls -w /a\nset /a y\ncreate /a/b z\nget /a\n\
                 addWatch -m PERSISTENT_RECURSIVE /a\nset /a/b 1\ndelete /a/b\n\
                 printwatches off\nset /a z\nprintwatches\nprintwatches on\nremovewatches /a\nset /a w\n\
                 get -w /a\nremovewatches -d /a\nremovewatches /a\n";
    let Said { out, err, .. } = script(&server.connect_string(), &[], lines);
    expect![[r#"
        Created /a
        x
        []

        WATCHER::

        WatchedEvent state:SyncConnected type:NodeDataChanged path:/a zxid: 3

        WATCHER::

        WatchedEvent state:SyncConnected type:NodeChildrenChanged path:/a zxid: 4
        Created /a/b
        y

        WATCHER::

        WatchedEvent state:SyncConnected type:NodeDataChanged path:/a/b zxid: 5

        WATCHER::

        WatchedEvent state:SyncConnected type:NodeDeleted path:/a/b zxid: 6
        printwatches is off

        WATCHER::

        WatchedEvent state:SyncConnected type:PersistentWatchRemoved path:/a zxid: -1
        w

        WATCHER::

        WatchedEvent state:SyncConnected type:DataWatchRemoved path:/a zxid: -1
    "#]]
    .assert_eq(&out);
    expect![[r#"
        line 18: No watch of this kind: /a; watches go when they fire, addWatch's stay
    "#]]
    .assert_eq(&err);
}

#[tokio::test]
async fn the_order_of_changes_and_answers_is_always_the_same() {
    let server = server().await;
    let lines = format!("create /a\n{}", "stat -w /a\nset -s /a x\n".repeat(300));
    let Said { out, code, .. } = script(&server.connect_string(), &[], &lines);
    assert_eq!(code, Some(0));
    let order = out.lines().filter_map(|line| match line {
        event if event.starts_with("WatchedEvent ") => Some("changed".to_owned()),
        line => line.strip_prefix("dataVersion = ").map(str::to_owned),
    });
    let expected = (0..300).flat_map(|n| [n.to_string(), "changed".into(), (n + 1).to_string()]);
    assert_eq!(order.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_watch_shows_changes_until_there_were_enough() {
    let server = server().await;
    let at = server.connect_string();
    once(&at, &["create", "/a"]);
    let watch = shell().args(["--json", &at, "watch", "-R", "-n", "2", "/a"]).spawn().unwrap();
    server.until(|counts| counts.watches > 0).await.unwrap();
    once(&at, &["create", "/a/b"]);
    once(&at, &["set", "/a/b", "x"]);
    let Said { out, code, .. } = said(watch.wait_with_output().unwrap());
    assert_eq!(code, Some(0));
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = events.iter().map(|event| (event["event"].as_str(), event["path"].as_str())).collect();
    assert_eq!(seen, [(Some("NodeCreated"), Some("/a/b")), (Some("NodeDataChanged"), Some("/a/b"))]);
}

#[tokio::test]
async fn tree_find_and_du_show_the_znodes_below() {
    let server = server().await;
    let lines = "create -p /app/x/lock-1 12345\ncreate /app/x/lock-2 1\ncreate -e /app/y abc\ncreate /app/z\n\
                 tree /app\ntree -s -L 1 /app\nfind /app -name lock-*\nfind -e /app\nfind -larger 2 /app\ndu /app\n\
                 deleteall /app\nls /\n";
    let Said { out, err, code } = script(&server.connect_string(), &[], lines);
    assert_eq!((&*err, code), ("", Some(0)));
    expect![[r#"
        Created /app/x/lock-1
        Created /app/x/lock-2
        Created /app/y
        Created /app/z
        /app
        ├── x
        │   ├── lock-1
        │   └── lock-2
        ├── y
        └── z
        /app  0 bytes, version 0
        ├── x  0 bytes, version 0
        ├── y  3 bytes, version 0
        └── z  0 bytes, version 0
        /app/x/lock-1
        /app/x/lock-2
        /app/y
        /app/x/lock-1
        /app/y
                   6         3  /app/x
                   3         1  /app/y
                   0         1  /app/z
                   9         6  /app
        [zookeeper]
    "#]]
    .assert_eq(&out);
}

#[tokio::test]
async fn wide_and_deep_trees_are_walked() {
    let server = server().await;
    let at = server.connect_string();
    let wide: String = (0..3000).map(|n| format!("create /wide/{n:04} x\n")).collect();
    let deep = "/d".repeat(300);
    let lines = format!("create /wide\n{wide}create -p {deep} x\ndu /wide\nfind /d -larger 0\n");
    let Said { out, code, .. } = script(&at, &[], &lines);
    assert_eq!(code, Some(0));
    assert!(out.contains("        3000      3001  /wide\n"), "{}", &out[out.len() - 2000..]);
    assert!(out.ends_with(&format!("{deep}\n")));
    assert_eq!(script(&at, &[], "deleteall /wide -b 700\ndeleteall /d\nls /\n").out, "[zookeeper]\n");
}

#[tokio::test]
async fn access_is_checked() {
    let server = server().await;
    let lines = "addauth digest user:secret\ncreate -p /a/b\nsetAcl /a/b auth::cdrwa\ngetAcl /a/b\nwhoami\n";
    let at = server.connect_string();
    let Said { out, err, .. } = script(&at, &[], lines);
    expect![[r#"
        Created /a/b
        'digest,'user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=
        : cdrwa
        Auth scheme: User
        ip: 127.0.0.1
        digest: user
        --
    "#]]
    .assert_eq(&format!("{out}--\n{err}"));
    let other = once(&at, &["get", "/a/b"]);
    expect![[r#"
        Insufficient permission : /a/b; getAcl shows who may; addauth shows who you are
    "#]]
    .assert_eq(&other.err);
    assert_eq!(other.code, Some(1));
    // A walk leaves out znodes that it may not read, and reports them.
    let walked = once(&at, &["ls", "-R", "/a"]);
    expect![[r#"
        /a
        /a/b
        --
        1 of 2 znodes: Insufficient permission : /a/b; getAcl shows who may; addauth shows who you are
    "#]]
    .assert_eq(&format!("{}--\n{}", walked.out, walked.err));
    assert_eq!(walked.code, Some(1));
    let known = said(shell().args(["--auth", "digest:user:secret", &at, "get", "/a/b"]).output().unwrap());
    assert_eq!(known.code, Some(0), "{known:?}");
}

#[tokio::test]
async fn quotas_are_set_listed_and_removed() {
    let server = TestServer::start_with(TestOptions::new().setting("enforceQuota", "true")).await.unwrap();
    let at = server.connect_string();
    let lines = "create /a xyz\nsetquota -n 1 -B 10 /a\ncreate /a/b\nlistquota /a\nset /a 01234567890\n\
                 setquota -N 2 /a\ncreate /a/c\nsetquota -n 3 /a/b\nsetquota -b 1 /a\ndelquota -n /a\nlistquota /a\n\
                 delquota /a\nlistquota /a\nls /zookeeper/quota\n";
    let Said { out, err, .. } = script(&at, &[], lines);
    expect![[r#"
        Created /a
        Created /a/b
        Output quota for /a count=1,bytes=-1=;byteHardLimit=10;countHardLimit=-1
        Output stat for /a count=2,bytes=3
        Output quota for /a count=-1,bytes=1=;byteHardLimit=10;countHardLimit=2
        Output stat for /a count=2,bytes=3
        []
        --
        absolute path is /zookeeper/quota/a/zookeeper_limits
        line 5: Quota has exceeded : /a; listquota shows limits and usage
        [Warning]: the count quota you create is less than the existing count:2
        line 7: Quota has exceeded : /a/c; listquota shows limits and usage
        line 8: /a/b has a parent /a which has a quota
        [Warning]: the count quota you create is less than the existing count:2
        [Warning]: the bytes quota you create is less than the existing bytes:3
        absolute path is /zookeeper/quota/a/zookeeper_limits
        absolute path is /zookeeper/quota/a/zookeeper_limits
        line 13: quota for /a does not exist.
    "#]]
    .assert_eq(&format!("{out}--\n{err}"));
    // Below a root (chroot) the same znode has another path.
    let chroot = format!("{at}/a");
    assert_eq!(once(&chroot, &["setquota", "-n", "7", "/b"]).code, Some(0));
    assert!(once(&at, &["listquota", "/a/b"]).out.starts_with("Output quota for /a/b count=7"));
}

#[tokio::test]
async fn a_signal_ends_the_shell_while_it_waits_for_a_line() {
    let server = server().await;
    let mut child = shell().arg(server.connect_string()).stdin(Stdio::piped()).spawn().unwrap();
    server.until(|counts| counts.sessions == 1).await.unwrap();
    child.stdin.as_mut().unwrap().write_all(b"create -e /mine\n").unwrap();
    server.until(|counts| counts.ephemerals == 1).await.unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    server.until(|counts| counts.ephemerals == 0).await.unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[tokio::test]
async fn a_signal_ends_the_shell_while_it_waits_for_data() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for file in [pipe, "-"] {
        for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
            let words = [&server.connect_string(), "create", "/a", "--file", file];
            let mut child = shell().args(words).stdin(Stdio::piped()).spawn().unwrap();
            // The open returns when the pipe is open for reading, too.
            let pipe = (file == pipe).then(|| fs::OpenOptions::new().write(true).open(file).unwrap());
            if pipe.is_none() {
                // More than the pipe can hold: the write ends when the shell reads.
                child.stdin.as_mut().unwrap().write_all(&[b'x'; 1 << 18]).unwrap();
            }
            kill_process(Pid::from_child(&child), signal).unwrap();
            assert_eq!(ends(&mut child), Some(130), "{file} {signal:?}");
            drop(pipe);
        }
    }
    assert_eq!(once(&server.connect_string(), &["ls", "/"]).out, "[zookeeper]\n");
}

#[tokio::test]
async fn a_reader_that_ends_early_causes_no_panic() {
    let server = server().await;
    let mut child = shell().args([&server.connect_string(), "ls", "-R", "/"]).spawn().unwrap();
    drop(child.stdout.take());
    let Said { err, .. } = said(child.wait_with_output().unwrap());
    assert_eq!(err, "");
}
