//! Sets watches again on a new connection, in chunks that a server accepts.

use crate::{
    input::WatchId,
    watch_table::{WatchKind, WatchTable},
};
use alloc::{borrow::Cow, vec::Vec};
use ostler_proto::{id::Zxid, request::SetWatches};

/// Bytes of paths in one setWatches. ZooKeeper's clients use the same limit, which is well below any server's.
const CHUNK: usize = 128 << 10;
/// Bytes of a path's length field.
const PATH_OVERHEAD: usize = 4;
/// Bytes of a setWatches without its paths: the header, the zxid, and the lengths of five lists.
const FRAME_OVERHEAD: usize = 8 + 8 + 5 * 4;

/// Bytes of a setWatches with this path alone.
pub(crate) fn size_alone(path: &str) -> usize {
    FRAME_OVERHEAD + PATH_OVERHEAD + path.len()
}

/// One setWatches, and the watches that get a [`Gap`](crate::EventKind::Gap) once it is answered.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) request: SetWatches<'a>,
    pub(crate) gaps: Vec<WatchId>,
}

/// All watches in chunks of at most `packet_max` bytes, if none is larger [alone](size_alone). `seen` is the last zxid
/// that the client has seen in a reply: the server reports later changes to one-shot watches. Servers do not report them
/// to persistent watches, so those get a gap event.
pub(crate) fn chunks(table: &WatchTable, seen: Zxid, packet_max: usize) -> Vec<Chunk<'_>> {
    let new = || Chunk {
        request: SetWatches { relative_zxid: seen.to_wire(), ..SetWatches::default() },
        gaps: Vec::new(),
    };
    let limit = CHUNK.min(packet_max.saturating_sub(FRAME_OVERHEAD));
    let (mut chunks, mut size) = (Vec::new(), 0);
    for (kind, path, watchers) in table.paths() {
        let more = path.len() + PATH_OVERHEAD;
        if chunks.is_empty() || size + more > limit {
            chunks.push(new());
            size = 0;
        }
        size += more;
        let chunk = chunks.last_mut().expect("one was pushed if there was none");
        list_of(&mut chunk.request, kind).push(Cow::Borrowed(path));
        if !kind.is_one_shot() {
            chunk.gaps.extend(watchers);
        }
    }
    chunks
}

fn list_of<'a, 'b>(set: &'b mut SetWatches<'a>, kind: WatchKind) -> &'b mut Vec<Cow<'a, str>> {
    match kind {
        WatchKind::Data => &mut set.data,
        WatchKind::Exist => &mut set.exist,
        WatchKind::Child => &mut set.child,
        WatchKind::Persistent => &mut set.persistent,
        WatchKind::Recursive => &mut set.persistent_recursive,
    }
}
