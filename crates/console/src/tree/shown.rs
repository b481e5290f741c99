//! Parts of znodes as JSON.

use ostler_proto::{
    acl::{Acl, Perms},
    id::SessionId,
    path,
    stat::{NodeKind, Stat},
};
use ostler_server_core::report::znodes::{OwnerReport, QuotaReport};
use serde_json::{Value, json};

/// The letters of permissions, in the order in which zkCli.sh writes them.
pub(super) const LETTERS: [(char, Perms); 5] = [
    ('c', Perms::CREATE),
    ('d', Perms::DELETE),
    ('r', Perms::READ),
    ('w', Perms::WRITE),
    ('a', Perms::ADMIN),
];

/// A Stat.
pub(super) fn stat(stat: &Stat) -> Value {
    let owner = (stat.ephemeral_owner != 0).then(|| SessionId(stat.ephemeral_owner).to_string());
    json!({
        "czxid": stat.czxid.to_string(),
        "mzxid": stat.mzxid.to_string(),
        "pzxid": stat.pzxid.to_string(),
        "ctime_ms": stat.ctime,
        "mtime_ms": stat.mtime,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeral_owner": owner,
        "data_length": stat.data_length,
        "num_children": stat.num_children,
    })
}

/// The kind of a znode.
pub(super) fn kind(path: &str, kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Ephemeral(_) => "ephemeral",
        NodeKind::Container => "container",
        NodeKind::Ttl(_) => "ttl",
        NodeKind::Persistent if path::is_within(path, "/zookeeper") => "system",
        NodeKind::Persistent => "persistent",
    }
}

/// Permissions, each by its name.
pub(super) fn rights(granted: Perms) -> Value {
    json!({
        "read": granted.any_of(Perms::READ),
        "write": granted.any_of(Perms::WRITE),
        "create": granted.any_of(Perms::CREATE),
        "delete": granted.any_of(Perms::DELETE),
        "admin": granted.any_of(Perms::ADMIN),
    })
}

/// An ACL.
pub(super) fn acl(entries: &[Acl]) -> Value {
    entries
        .iter()
        .map(|entry| {
            let granted = LETTERS.iter().filter(|(_, perm)| entry.perms.any_of(*perm));
            let perms: String = granted.map(|(letter, _)| letter).collect();
            json!({ "scheme": entry.id.scheme, "id": entry.id.id, "perms": perms })
        })
        .collect()
}

/// A quota.
pub(super) fn quota(quota: &QuotaReport) -> Value {
    let set = |number: i64| (number >= 0).then_some(number);
    json!({
        "path": quota.path,
        "znodes": set(quota.usage.count),
        "bytes": set(quota.usage.bytes),
        "znodes_soft": set(quota.limits.count),
        "bytes_soft": set(quota.limits.bytes),
        "znodes_hard": set(quota.limits.count_hard),
        "bytes_hard": set(quota.limits.bytes_hard),
    })
}

/// The session of an ephemeral. The address is for those who may see the state of the server.
pub(super) fn owner(owner: &OwnerReport, is_viewer: bool) -> Value {
    let address = owner.address.filter(|_| is_viewer).map(|address| address.to_string());
    json!({ "session": owner.session.to_string(), "address": address, "alive": owner.is_alive })
}

/// The number at the end of a sequential znode's name.
pub(super) fn sequence(name: &str) -> Option<i64> {
    const DIGITS: usize = 10;
    let at = name.len().checked_sub(DIGITS).filter(|at| name.is_char_boundary(*at))?;
    let digits = &name[at..];
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// A name or path in a sentence: control characters and those that turn the direction of writing are escaped.
pub(super) fn quoted(text: &str) -> String {
    let is_tricky = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars()
        .map(|c| if is_tricky(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_digits_at_the_end_are_a_sequence_number() {
        for (name, number) in [
            ("lock-0000000012", Some(12)),
            ("0000000012", Some(12)),
            ("x10000000012", Some(12)),
            ("lock-000000012", None),
            ("000000012", None),
            ("\u{e4}000000001", None),
            ("lock-00000-0012", None),
            ("", None),
        ] {
            assert_eq!(sequence(name), number, "{name}");
        }
    }

    #[test]
    fn names_in_sentences_do_not_turn_them_round() {
        assert_eq!(quoted("/a\u{202e}b\u{7}<b>ä"), "/a\\u{202e}b\\u{7}<b>ä");
    }
}
