//! Fuzzes the parsing of memberships: the text of dynamic files, votes, proposals, and reconfig requests.

use ostler_proto::membership::Membership;

/// A membership that is accepted is written so that every server and every later start reads the same, from the file
/// and from the znode.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(read) = Membership::parse(&text) else { return };
    let voters = read.voters().count();
    assert!(0 < voters && voters <= read.servers.len());
    let written = read.to_string();
    assert_eq!(Membership::parse(&written), Ok(read.clone()), "{written:?}");
    let mut as_file =
        Membership::parse(&read.lines().join("\n")).expect("a file is the text without its version");
    as_file.version = read.version;
    assert_eq!(as_file, read);
    for (id, member) in &read.servers {
        assert_eq!(read.votes(*id), !member.observer);
        assert!(!member.addresses.is_empty());
    }
}
