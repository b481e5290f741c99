//! The audit log of a whole server, in its file.

use crate::{
    client::{Client, create, create_as, op},
    gate,
    server::{TestServer, config},
};
use ostler_server::config::{AuditSettings, AuditTarget, ServerConfig};
use std::{fs, path::Path};

fn audited(dir: &Path) -> ServerConfig {
    let mut config = config(dir);
    config.audit = Some(AuditSettings {
        target: AuditTarget::File(dir.join("zookeeper_audit.log")),
        max_file_bytes: 10 << 20,
        max_files: 10,
        auth_failures: true,
    });
    config
}

/// The lines from `operation=` on.
fn lines(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("zookeeper_audit.log")).unwrap();
    text.lines().map(|line| line[line.find("operation=").unwrap()..].to_owned()).collect()
}

#[test]
fn start_writes_and_stop_are_in_the_audit_file() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let server = TestServer::start_in(&audited(dir.path())).unwrap();
        let mut client = Client::open(server.address);
        client.ask(op::CREATE, &create("/a", b""));
        client.ask(op::CREATE, &create_as("/e", b"", 1));
        client.ask(op::CLOSE, &[]);
        server.stop().unwrap();
    }
    let once = |result| {
        [
            "operation=serverStart\tresult=success".to_owned(),
            format!("operation=create\tznode=/a\tznode_type=persistent\tresult={result}"),
            "operation=create\tznode=/e\tznode_type=ephemeral\tresult=success".to_owned(),
            "operation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=/e\tresult=success".to_owned(),
            "operation=serverStop\tresult=invoked".to_owned(),
        ]
    };
    assert_eq!(lines(dir.path()), [once("success"), once("failure")].concat(), "a start goes on in the file");
}

#[test]
fn a_start_that_fails_is_in_the_audit_file() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut config = audited(dir.path());
    config.folders.db_autocreate = false;
    TestServer::start_in(&config).map(drop).unwrap_err();
    assert_eq!(lines(dir.path()), ["operation=serverStart\tresult=failure"]);
}

#[test]
fn a_server_does_not_start_without_its_audit_file() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut config = audited(dir.path());
    let target = AuditTarget::File(dir.path().join("none/audit.log"));
    config.audit = config.audit.map(|audit| AuditSettings { target, ..audit });
    let error = TestServer::start_in(&config).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the audit log ") && error.contains("none/audit.log"), "{error}");
    let target = AuditTarget::Journald;
    config.audit = config.audit.map(|audit| AuditSettings { target, ..audit });
    let error = TestServer::start_in(&config).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("the audit log cannot go to the journal"), "{error}");
}
