//! Lines, compared with those that Java ZooKeeper 3.9.5 has written.

use super::*;
use ostler_proto::{acl::Id, id::SessionId};
use ostler_server_core::audit::{AuditOperation, ZnodeType};
use time::macros::datetime;

const NOW: OffsetDateTime = datetime!(2026-11-25 06:25:50.681 UTC);
const NOW_MS: i64 = 1_795_587_950_681;

fn of_client(users: &[&str], operation: AuditOperation) -> AuditRecord {
    let caller = AuditCaller::Client {
        session: SessionId(0x0100_0050_aa79_0000),
        users: users.iter().map(|user| (*user).to_owned()).collect(),
        address: [127, 0, 0, 1].into(),
    };
    let base = AuditRecord::of_server(NOW_MS, operation, AuditResult::Success);
    AuditRecord { caller, ..base }
}

fn line(record: AuditRecord) -> String {
    let mut text = String::new();
    LineMaker::new("root".into()).append(&mut text, &AuditEntry::Record(Box::new(record)), || NOW);
    text
}

#[test]
fn lines_are_those_of_java() {
    let server = |operation, result| AuditRecord::of_server(NOW_MS, operation, result);
    assert_eq!(
        line(server(AuditOperation::ServerStart, AuditResult::Success)),
        "2026-11-25T06:25:50,681 INFO audit.Slf4jAuditLogger: user=root\toperation=serverStart\tresult=success\n"
    );
    assert_eq!(
        line(server(AuditOperation::ServerStop, AuditResult::Invoked)),
        "2026-11-25T06:25:50,681 INFO audit.Slf4jAuditLogger: user=root\toperation=serverStop\tresult=invoked\n"
    );
    assert_eq!(
        line(AuditRecord {
            znode: Some("/s-0000000002".into()),
            znode_type: Some(ZnodeType::PersistentSequential),
            ..of_client(&["127.0.0.1"], AuditOperation::Create)
        }),
        "2026-11-25T06:25:50,681 INFO audit.Slf4jAuditLogger: session=0x1000050aa790000\tuser=127.0.0.1\t\
         ip=127.0.0.1\toperation=create\tznode=/s-0000000002\tznode_type=persistent_sequential\tresult=success\n"
    );
    let open = Acl { perms: Perms::ALL, id: Id::new("world", "anyone") };
    let near = Acl { perms: Perms::READ, id: Id::new("ip", "127.0.0.1") };
    assert_eq!(
        line(AuditRecord {
            znode: Some("/a".into()),
            acl: Some([open, near].into()),
            ..of_client(&["bob", "127.0.0.1"], AuditOperation::SetAcl)
        }),
        "2026-11-25T06:25:50,681 INFO audit.Slf4jAuditLogger: session=0x1000050aa790000\tuser=bob,127.0.0.1\t\
         ip=127.0.0.1\toperation=setAcl\tznode=/a\tacl=world:anyone:cdrwaip:127.0.0.1:r\tresult=success\n"
    );
    assert_eq!(
        line(AuditRecord {
            caller: AuditCaller::Server { session: Some(SessionId(0x0100_0050_aa79_0000)) },
            znode: Some("/e".into()),
            ..server(AuditOperation::EphemeralDeletion, AuditResult::Success)
        }),
        "2026-11-25T06:25:50,681 INFO audit.Slf4jAuditLogger: session=0x1000050aa790000\tuser=root\t\
         operation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=/e\tresult=success\n"
    );
    for (operation, name) in
        [(AuditOperation::Multi, "multiOperation"), (AuditOperation::Reconfig, "reconfig")]
    {
        assert_eq!(
            line(AuditRecord { result: AuditResult::Failure, ..of_client(&["127.0.0.1"], operation) }),
            format!(
                "2026-11-25T06:25:50,681 ERROR audit.Slf4jAuditLogger: session=0x1000050aa790000\tuser=127.0.0.1\t\
                 ip=127.0.0.1\toperation={name}\tresult=failure\n"
            )
        );
    }
}

#[test]
fn a_loss_is_a_line() {
    let mut text = String::new();
    LineMaker::new("root".into()).append(&mut text, &AuditEntry::Lost(12), || NOW);
    assert_eq!(text, "2026-11-25T06:25:50,681 ERROR audit.Slf4jAuditLogger: audit records lost: 12\n");
}

#[test]
fn no_value_can_forge_a_field_or_a_line() {
    let path = "/a\tresult=success\r\n2026 INFO\u{0}\u{85}\u{2028}\u{202e}\\t\u{7f}ä";
    let user = "bob,root\tip=1";
    let text = line(AuditRecord {
        znode: Some(path.into()),
        acl: Some([Acl { perms: Perms(0), id: Id::new("a\nb", "c\td") }].into()),
        ..of_client(&[user], AuditOperation::SetAcl)
    });
    assert_eq!(text.matches('\n').count(), 1);
    let fields: Vec<&str> = text.trim_end().split('\t').collect();
    assert_eq!(
        fields[1..],
        [
            "user=bob\\u002croot\\tip=1",
            "ip=127.0.0.1",
            "operation=setAcl",
            "znode=/a\\tresult=success\\r\\n2026 INFO\\u0000\\u0085\\u2028\\u202e\\\\t\\u007fä",
            "acl=a\\nb:c\\td:",
            "result=success",
        ]
    );
}

#[test]
fn long_lists_of_names_are_cut() {
    let many = line(of_client(&["a"; 128], AuditOperation::Delete));
    assert!(many.contains(&format!("\tuser={}\\...\t", "a,".repeat(16))), "{many}");
}

#[test]
fn a_line_has_its_own_time_and_caller_whatever_the_line_before_has() {
    let bob = || of_client(&["bob"], AuditOperation::SetData);
    let later = AuditRecord { wall_ms: NOW_MS + 1, ..bob() };
    let server = AuditRecord::of_server(NOW_MS, AuditOperation::ServerStop, AuditResult::Invoked);
    let long = of_client(&[&"x".repeat(KEPT_CALLER_MAX)], AuditOperation::SetData);
    let eve = of_client(&["eve"], AuditOperation::SetData);
    let mut maker = LineMaker::new("root".into());
    for record in [bob(), bob(), later, server, long.clone(), long, eve, bob()] {
        let mut text = String::new();
        maker.append(&mut text, &AuditEntry::Record(Box::new(record.clone())), || NOW);
        assert_eq!(text, line(record));
    }
}
