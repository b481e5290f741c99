//! Watches set again on a new connection, in chunks that a server takes.

use crate::{
    input::WatchId,
    watch_table::{WatchKind, WatchTable},
};
use alloc::{borrow::Cow, vec::Vec};
use ostler_proto::{id::Zxid, request::SetWatches};

/// Bytes of paths in one setWatches; upstream's clients cut there too, well below any server's limit.
const CHUNK: usize = 128 << 10;
/// Bytes that a path takes beside its own.
const PATH_OVERHEAD: usize = 4;
/// Bytes that a setWatches takes beside its paths: the header, the zxid, and the lengths of five lists.
const FRAME_OVERHEAD: usize = 8 + 8 + 5 * 4;

/// Bytes of a setWatches with this path alone.
pub(crate) fn size_alone(path: &str) -> usize {
    FRAME_OVERHEAD + PATH_OVERHEAD + path.len()
}

/// One setWatches, and who must be told that there may have been a gap once it is answered.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) request: SetWatches<'a>,
    pub(crate) gaps: Vec<WatchId>,
}

/// All watches in chunks of at most `packet_max` bytes, given that none is larger [alone](size_alone). `seen` is the
/// last change that the client has heard of in a reply: the server reports what came after it. For persistent watches
/// no server does that, so their watchers are to be told.
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
