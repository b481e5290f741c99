//! The numbers of a moment that the console's charts show.

use super::handle::AdminHandle;
use crate::admin::process_metrics;
use ostler_proto::id::{Epoch, ServerId};
use ostler_server_core::{quorum::MemberMode, report::figures::Figures, stats::Summary};
use rustix::fs::statvfs;
use std::path::Path;

/// The load and the size of a server, and of its process. Counts are those since the start or their reset (`srst`).
#[derive(Debug, Clone, Copy)]
pub struct ServerFigures {
    /// The core's numbers.
    pub core: Figures,
    /// The times of the syncs of the log, ms.
    pub syncs: Summary,
    /// Resident memory of the process, bytes.
    pub memory: u64,
    /// Open files and sockets of the process.
    pub descriptors: u64,
    /// Free bytes of the disk with the snapshots; `None` if the system does not say it.
    pub data_free: Option<u64>,
    /// Free bytes of the disk with the logs.
    pub log_free: Option<u64>,
    /// This server; `None` for a standalone server.
    pub me: Option<ServerId>,
    /// Its place in its ensemble.
    pub place: Place,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
    /// Milliseconds since the server has started.
    pub up_ms: u64,
}

/// A server's place in its ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// `None` for a standalone server.
    pub mode: Option<MemberMode>,
    /// The leader whom it knows.
    pub leader: Option<ServerId>,
    /// The epoch that it takes part in, or has taken part in last.
    pub epoch: Epoch,
    /// When it began to serve in this epoch, in milliseconds since 1970.
    pub serves_since_ms: Option<i64>,
}

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this server can still write.
    pub free_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
}

impl Space {
    /// The space where a folder is; `None` if the system does not say it.
    pub fn of(folder: &Path) -> Option<Space> {
        let of = statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(of.f_frsize);
        Some(Space { free_bytes: bytes(of.f_bavail), total_bytes: bytes(of.f_blocks) })
    }
}

impl AdminHandle {
    /// The numbers of this moment. It reads files of the system: call it where a thread may wait.
    pub fn figures(&self) -> ServerFigures {
        let reports = &self.state.reports;
        let now = self.state.driver.clock.now();
        let (core, mode, member, quorum) =
            self.inspect(|server| (server.figures(), server.mode(), server.member_report(), server.quorum()));
        let serves_since = quorum.and_then(|quorum| quorum.serves_since);
        let place = Place {
            mode,
            leader: member.as_ref().and_then(|member| member.leader),
            epoch: member.map_or(Epoch(0), |member| member.epoch),
            serves_since_ms: serves_since
                .map(|since| now.wall_ms - now.mono.0.saturating_sub(since.0) as i64),
        };
        let (memory, descriptors) = process_metrics::memory_and_files();
        let free = |folder: &Path| Space::of(folder).map(|space| space.free_bytes);
        ServerFigures {
            core,
            syncs: reports.disk.sync_times(),
            memory,
            descriptors,
            data_free: free(&reports.folders.snapshots),
            log_free: free(&reports.folders.logs),
            me: self.id(),
            place,
            wall_ms: now.wall_ms,
            up_ms: reports.started.elapsed().as_millis() as u64,
        }
    }
}
