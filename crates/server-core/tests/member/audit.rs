//! Records for the audit log: one for each operation, whether it was done or refused.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{WireRequest, auth, check, close_session, create, delete, get, multi, set, set_acl, sync},
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    jute::Writer,
    op::Op,
};
use ostler_server_core::{
    CoreConfig, Now,
    audit::{AuditCaller, AuditRecord},
    auth::digest_id,
};

fn audited() -> CoreConfig {
    CoreConfig { audit: true, ..CoreConfig::default() }
}

/// The records since the last call, each as its users, operation and the rest.
fn records(m: &mut Member) -> Vec<String> {
    std::mem::take(&mut m.audited).iter().map(text).collect()
}

fn text(record: &AuditRecord) -> String {
    let who = match &record.caller {
        AuditCaller::Client { users, address, .. } => {
            assert_eq!(address.to_string(), "10.0.0.1");
            users.join(",")
        }
        AuditCaller::Server { session } => format!("server for {}", session.is_some()),
    };
    let mut text = format!("{who} {}", record.operation.name());
    if let Some(znode) = &record.znode {
        text += &format!(" {znode}");
    }
    if let Some(znode_type) = record.znode_type {
        text += &format!(" {}", znode_type.name());
    }
    for entry in record.acl.iter().flatten() {
        text += &format!(" {}:{}:{}", entry.id.scheme, entry.id.id, entry.perms.0);
    }
    text + " " + record.result.name()
}

#[track_caller]
fn asks(m: &mut Member, client: Client, ask: impl Into<WireRequest>, expected: &[&str]) {
    m.send(client, ask);
    assert_eq!(records(m), [""; 0], "nothing is recorded before its outcome is known");
    m.flush();
    let expected: Vec<String> = expected.iter().map(|rest| format!("10.0.0.1 {rest}")).collect();
    assert_eq!(records(m), expected);
}

#[test]
fn every_write_that_is_done_has_a_record() {
    let mut m = Member::with_ttls(audited());
    let a = m.join();
    asks(&mut m, a, create("/a"), &["create /a persistent success"]);
    asks(&mut m, a, create("/a/e").ephemeral(), &["create /a/e ephemeral success"]);
    asks(
        &mut m,
        a,
        create("/s-").sequential().with_stat(),
        &["create /s-0000000001 persistent_sequential success"],
    );
    asks(
        &mut m,
        a,
        create("/es-").sequential().ephemeral(),
        &["create /es-0000000002 ephemeral_sequential success"],
    );
    asks(&mut m, a, create("/c").container(), &["create /c container success"]);
    asks(&mut m, a, create("/t").ttl(1000), &["create /t persistent_with_ttl success"]);
    asks(&mut m, a, set("/a", b"1"), &["setData /a success"]);
    let acl = [
        Acl::world(Perms::ALL),
        Acl { perms: Perms::READ, id: Id::new("ip", "10.0.0.1") },
        Acl { perms: Perms::READ, id: Id::new("auth", "") },
    ];
    asks(&mut m, a, set_acl("/c", &acl[..2], -1), &["setAcl /c world:anyone:31 ip:10.0.0.1:1 success"]);
    m.send(a, auth("digest", b"bob:pw"));
    m.ask(a, set_acl("/c", &acl[2..], -1)).unwrap();
    assert_eq!(records(&mut m), ["10.0.0.1,bob setAcl /c auth::1 success"], "as the client has sent it");
    m.ask(a, delete("/t")).unwrap();
    assert_eq!(records(&mut m), ["10.0.0.1,bob delete /t success"]);
}

#[test]
fn every_write_that_became_an_error_transaction_has_a_record() {
    let mut m = Member::with(audited());
    let a = m.join();
    asks(&mut m, a, create("/a/b").sequential(), &["create /a/b persistent_sequential failure"]);
    asks(&mut m, a, delete("/x"), &["delete /x failure"]);
    asks(&mut m, a, set("/x", b""), &["setData /x failure"]);
    asks(&mut m, a, set_acl("/x", &[Acl::world(Perms::READ)], -1), &["setAcl /x world:anyone:1 failure"]);
    let reconfig = WireRequest::new(Op::Reconfig, |out| {
        (0..3).for_each(|_| out.string(""));
        out.i64(-1);
    });
    asks(&mut m, a, reconfig, &["reconfig failure"]);
}

#[test]
fn a_multi_has_a_record_for_each_change_or_one_for_its_failure() {
    let mut m = Member::with_ttls(audited());
    let a = m.join();
    let good = [
        create("/a").into(),
        check("/a", 0),
        create("/a/s").sequential().ephemeral().into(),
        create("/e").ephemeral().with_stat().into(),
        create("/t").ttl(1000).into(),
        set("/a", b"1"),
        delete("/t"),
    ];
    let each = [
        "create /a persistent success",
        "create /a/s0000000000 success",
        "create /e ephemeral success",
        "create /t success",
        "setData /a success",
        "delete /t success",
    ];
    asks(&mut m, a, multi(&good), &each);
    asks(&mut m, a, multi(&[create("/b").into(), delete("/x")]), &["multiOperation failure"]);
}

#[test]
fn reads_syncs_and_sessions_have_no_record() {
    let mut m = Member::with(audited());
    let a = m.join();
    asks(&mut m, a, get("/"), &[]);
    asks(&mut m, a, sync("/"), &[]);
    asks(&mut m, a, auth("digest", b"bob:pw"), &[]);
    m.send(a, close_session());
    m.flush();
    assert_eq!(records(&mut m), [""; 0]);
}

#[test]
fn ephemerals_that_end_with_their_session_have_records_of_the_server() {
    for lists in [true, false] {
        let mut m = Member::with(CoreConfig { close_session_paths: lists, ..audited() });
        let (a, b) = (m.join(), m.join());
        m.ask(a, create("/e1").ephemeral()).unwrap();
        m.ask(a, create("/e2").ephemeral()).unwrap();
        m.ask(b, create("/e3").ephemeral()).unwrap();
        m.audited.clear();
        m.send(a, close_session());
        m.flush();
        let deletion = "server for true ephemeralZNodeDeletionOnSessionCloseOrExpire";
        assert_eq!(
            records(&mut m),
            [format!("{deletion} /e1 success"), format!("{deletion} /e2 success")],
            "the transaction lists them: {lists}"
        );
        m.pass(2 * TIMEOUT_MS as u64);
        m.flush();
        assert_eq!(records(&mut m), [format!("{deletion} /e3 success")]);
    }
}

#[test]
fn a_client_that_hangs_up_at_once_is_recorded_all_the_same() {
    let mut m = Member::with(audited());
    let a = m.join();
    m.send(a, create("/a"));
    m.hang_up(a);
    m.flush();
    assert_eq!(records(&mut m), ["10.0.0.1 create /a persistent success"]);
}

#[test]
fn super_is_left_out_of_the_users() {
    let super_digest = Some(digest_id("super:admin"));
    let mut m = Member::with(CoreConfig { super_digest, ..audited() });
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    m.send(a, auth("digest", b"super:admin"));
    m.ask(a, delete("/a")).unwrap();
    assert_eq!(
        records(&mut m),
        ["10.0.0.1 create /a persistent success", "10.0.0.1,super delete /a success"],
        "the second name is that of the digest id"
    );
}

#[test]
fn failed_authentications_have_records_unless_they_are_switched_off() {
    for on in [true, false] {
        let mut m = Member::with(CoreConfig { audit_auth_failures: on, ..audited() });
        let a = m.join();
        m.send(a, auth("nonsense", b"x"));
        let expected: &[&str] = if on { &["10.0.0.1 authFailed failure"] } else { &[] };
        assert_eq!(records(&mut m), expected);
    }
}

#[test]
fn without_audit_nothing_is_recorded_or_kept() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/e").ephemeral()).unwrap();
    m.send(a, delete("/x"));
    assert_eq!(m.server.undecided_audits(Now::default()), []);
    m.flush();
    m.send(a, auth("nonsense", b"x"));
    m.pass(2 * TIMEOUT_MS as u64);
    m.flush();
    assert!(m.audited.is_empty() && !m.has("/e"));
}

#[test]
fn writes_under_way_at_the_stop_are_recorded_as_invoked() {
    let mut m = Member::with(audited());
    let a = m.join();
    m.send(a, create("/a"));
    let left = m.server.undecided_audits(Now::default());
    assert_eq!(left.iter().map(text).collect::<Vec<_>>(), ["10.0.0.1 create /a persistent invoked"]);
}
