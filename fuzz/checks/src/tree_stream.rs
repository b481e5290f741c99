//! Fuzzes the tree that a leader sends: the learner's result must not depend on the pieces in which it arrives.

use crate::{
    restored::{Restored, TYPES, check_tree},
    script::Script,
};
use ostler_data_dir::recovery::{read_stream, write_stream};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    stat::StatPersisted,
};
use ostler_server::decoders::decode_pieces;
use ostler_storage::snapshot::{SnapshotTrailer, body::BodyReader};
use ostler_tree::Tree;
use std::{
    collections::BTreeMap,
    io::{self, Read},
    sync::Arc,
};

/// The end of a tree is added after the bytes, because mutated input seldom has one.
const ENDED: u8 = 1;
/// The end mark and the signature after it.
pub const END: &[u8] = b"\0\0\0\x01/\0\0\0\x0aBenWasHere";
const SIGNATURE: &[u8] = b"\0\0\0\x0aBenWasHere";
/// Bytes after the tree: the next packet may have arrived already.
const BEHIND: &[u8] = b"\0\0\0\x0c, and more";
const ZXID: Zxid = Zxid(0x1_0000_0007);
/// The largest buffer of a read, unless twice the bytes so far are more.
const ROOM: usize = 256 << 10;

/// The first byte chooses whether the stream gets a right end, the second the size of its pieces. Reading it whole, in
/// pieces, and as a snapshot file must give the same tree and leave the same bytes, or all must fail. A tree that was
/// read is valid, and is the same after it was sent and read again.
pub fn check(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let (flags, piece) = (script.byte(), script.byte());
    let mut stream = script.rest().to_vec();
    if flags & ENDED != 0 {
        stream.extend(END);
        stream.extend(BEHIND);
    }
    let whole = read_watched(&stream);
    let pieces = stream.chunks(usize::from(piece).max(1)).map(<[u8]>::to_vec).collect();
    let in_pieces = decode_pieces(pieces, ZXID, TYPES).ok();
    let from_file = as_a_file_is_read(&stream);
    assert_eq!(whole.is_some(), in_pieces.is_some(), "whole, and in pieces of {piece}");
    assert_eq!(whole.is_some(), from_file.is_some(), "as a stream, and as a file");
    let (Some((tree, rest)), Some((other, other_rest)), Some((file, file_rest))) =
        (whole, in_pieces, from_file)
    else {
        return;
    };
    assert!(rest == other_rest && rest == file_rest, "the bytes behind the tree");
    assert!(stream.ends_with(&rest) && stream.len() - rest.len() >= END.len());
    check_tree(&tree);
    let contents = contents(&tree);
    assert_eq!(contents, self::contents(&other));
    assert_eq!(contents, self::contents(&file.tree));
    if !file.nodes.iter().any(|node| node.path.chars().any(|c| c > '\u{ffff}')) {
        check_sent_again(&tree);
    }
}

fn check_sent_again(tree: &Tree) {
    let mut written = Vec::new();
    write_stream(&tree.freeze(), &mut written).expect("memory does not fail");
    written.extend(BEHIND);
    let (again, rest) = read_watched(&written).expect("what was written is read");
    assert_eq!(rest, BEHIND);
    assert_eq!(contents(tree), contents(&again));
}

/// A reader that checks the size of the buffer of each read.
struct Watched<'a> {
    rest: &'a [u8],
    given: usize,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(into.len() <= ROOM.max(2 * self.given), "room for {} after {}", into.len(), self.given);
        let n = self.rest.read(into)?;
        self.given += n;
        Ok(n)
    }
}

fn read_watched(stream: &[u8]) -> Option<(Tree, Vec<u8>)> {
    let mut watched = Watched { rest: stream, given: 0 };
    let (tree, mut rest) = read_stream(&mut watched, ZXID, TYPES).ok()?;
    rest.extend_from_slice(watched.rest);
    Some((tree, rest))
}

/// Reads the stream with the code for snapshot files.
fn as_a_file_is_read(stream: &[u8]) -> Option<(Restored, Vec<u8>)> {
    let mut input = stream;
    let mut restored = Restored::default();
    let mut reader = BodyReader::new(&mut input);
    reader.body(&mut restored).ok()?;
    let mut rest = reader.into_rest();
    rest.extend_from_slice(input);
    let rest = rest.strip_prefix(SIGNATURE)?.to_vec();
    restored.finish(ZXID, SnapshotTrailer::default());
    Some((restored, rest))
}

type Sessions = Vec<(SessionId, i32)>;
type Node = (Option<Vec<u8>>, Option<Arc<[Acl]>>, StatPersisted);

#[derive(Debug, PartialEq, Eq)]
struct Contents {
    last: Zxid,
    digest: u64,
    sessions: Sessions,
    ephemerals: usize,
    nodes: BTreeMap<String, Node>,
}

/// Everything in a tree, in an order that does not depend on how the tree was made.
fn contents(tree: &Tree) -> Contents {
    let frozen = tree.freeze();
    let node = |node: &ostler_tree::Znode| {
        (
            node.path.to_string(),
            (
                node.data.as_deref().map(<[u8]>::to_vec),
                tree.acl(node).map(|list| list.shared().clone()),
                node.stat,
            ),
        )
    };
    Contents {
        last: tree.last_processed(),
        digest: tree.digest(),
        sessions: tree.sessions().collect(),
        ephemerals: tree.ephemeral_count(),
        nodes: frozen.nodes().map(node).collect(),
    }
}
