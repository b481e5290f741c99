//! The tree that a leader sends: what a learner makes of it, in whatever pieces it comes.

use crate::{
    restored::{Restored, TYPES, check_tree},
    script::Script,
};
use ostler_persistence::recovery::{read_stream, write_stream};
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

/// What ends a tree is put behind the bytes: a changed body is seldom followed by it.
const ENDED: u8 = 1;
/// The end mark, and the signature behind it.
pub const END: &[u8] = b"\0\0\0\x01/\0\0\0\x0aBenWasHere";
const SIGNATURE: &[u8] = b"\0\0\0\x0aBenWasHere";
/// The first packet that follows may be there already.
const BEHIND: &[u8] = b"\0\0\0\x0c, and more";
const ZXID: Zxid = Zxid(0x1_0000_0007);
/// No read has more room than this, or twice what came.
const ROOM: usize = 256 << 10;

/// The first byte says whether the stream ends as it should, the second how large its pieces are. All of it at once,
/// its pieces, and the loader of files over the same bytes make the same tree and leave the same bytes, or none makes
/// one. A tree that was read is one, and comes out of its own stream again.
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
        comes_out_again(&tree);
    }
}

fn comes_out_again(tree: &Tree) {
    let mut written = Vec::new();
    write_stream(&tree.freeze(), &mut written).expect("memory does not fail");
    written.extend(BEHIND);
    let (again, rest) = read_watched(&written).expect("what was written is read");
    assert_eq!(rest, BEHIND);
    assert_eq!(contents(tree), contents(&again));
}

/// Gives what is asked for, and sees how much room there is for it.
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

/// By the parts that read snapshot files, with the sink that the checks of files use.
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

/// Everything, in an order that does not depend on how it came.
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
