//! Writing a snapshot file.

use super::{Compression, HEADER, SnapshotTrailer, body::BodyWriter, snappy::SnappyWriter, spare};
use crate::{
    disk::{Disk, DiskFile, sync_names, write_back},
    error::{IoContext, Result},
    names::{Building, snapshot_name, unfinished_name},
};
use flate2::write::GzEncoder;
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    jute::Writer as _,
    planted::{self, Bug},
    stat::StatPersisted,
};
use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Writes one snapshot. It gets its name when it is complete and durable; dropped before, it leaves nothing.
pub struct SnapshotWriter<'d> {
    disk: &'d dyn Disk,
    dir: PathBuf,
    unfinished: PathBuf,
    finished: PathBuf,
    body: Option<BodyWriter<Encoder>>,
}

impl<'d> SnapshotWriter<'d> {
    /// Starts the snapshot of `zxid` in `dir`, with its sessions and ACLs. The znodes follow.
    pub fn begin<'a>(
        disk: &'d dyn Disk,
        dir: &Path,
        zxid: Zxid,
        compression: Compression,
        sessions: impl ExactSizeIterator<Item = (SessionId, i32)>,
        acls: impl ExactSizeIterator<Item = (i64, &'a [Acl])>,
    ) -> Result<SnapshotWriter<'d>> {
        SnapshotWriter::begin_as(Building::ByAndBy, disk, dir, zxid, compression, sessions, acls)
    }

    /// The same, where two may be written at a time, each in a way of its own.
    pub fn begin_as<'a>(
        building: Building,
        disk: &'d dyn Disk,
        dir: &Path,
        zxid: Zxid,
        compression: Compression,
        sessions: impl ExactSizeIterator<Item = (SessionId, i32)>,
        acls: impl ExactSizeIterator<Item = (i64, &'a [Acl])>,
    ) -> Result<SnapshotWriter<'d>> {
        let name = snapshot_name(zxid, compression);
        let unfinished = dir.join(unfinished_name(building, &name));
        let file = spare::take(disk, dir, &unfinished)?;
        let mut writer =
            SnapshotWriter { disk, dir: dir.to_path_buf(), finished: dir.join(name), unfinished, body: None };
        let encoder = Encoder::new(compression, file).during("write", &writer.unfinished)?;
        writer.body = Some(BodyWriter::new(encoder));
        writer.write(|body| {
            body.raw().raw(&HEADER);
            body.sessions(sessions)?;
            body.acls(acls)
        })?;
        Ok(writer)
    }

    /// A znode: the root ("/") first, parents before children.
    pub fn node(&mut self, path: &str, data: Option<&[u8]>, acl: i64, stat: &StatPersisted) -> Result<()> {
        self.write(|body| body.node(path, data, acl, stat))
    }

    /// Bytes so far, before compression: for callers that do not want to hold the disk all the time.
    pub fn written(&self) -> u64 {
        self.body.as_ref().map_or(0, BodyWriter::written)
    }

    /// Completes the file and gives it its name; an older file of that name is replaced.
    ///
    /// Java expects the digest's section if its own digest is switched on, as it is by default, and cannot read
    /// the file otherwise: so leave it out only where the digest is switched off in the configuration.
    pub fn finish(mut self, trailer: SnapshotTrailer) -> Result<PathBuf> {
        self.write(|body| {
            body.end()?;
            body.seal()?;
            if let Some(digest) = trailer.digest {
                body.raw().i64(digest.zxid.to_wire());
                body.raw().i32(digest.version);
                body.raw().i64(digest.digest as i64);
                body.seal()?;
            }
            if let Some(zxid) = trailer.last_processed {
                body.raw().i64(zxid.to_wire());
                body.seal()?;
            }
            Ok(())
        })?;
        if let Some(body) = self.body.take() {
            let file = body.finish().and_then(Encoder::finish).during("write", &self.unfinished)?;
            if !planted::is(Bug::SnapshotNotSynced) {
                file.sync_data().during("sync", &self.unfinished)?;
            }
        }
        self.disk.rename(&self.unfinished, &self.finished).during("rename", &self.unfinished)?;
        sync_names(self.disk, &self.dir)?;
        Ok(std::mem::take(&mut self.finished))
    }

    /// Gives it up: the file goes, as far as `go_on` lets it take its time. Where the server ends it stays, for the next
    /// start makes a spare of it.
    pub fn give_up(mut self, go_on: &dyn Fn() -> bool) {
        self.finished = PathBuf::new();
        self.body = None;
        if go_on() {
            // Should this fail, the next start removes the file.
            let _ = self.disk.remove_while(&self.unfinished, go_on);
        }
    }

    fn write(&mut self, part: impl FnOnce(&mut BodyWriter<Encoder>) -> io::Result<()>) -> Result<()> {
        match &mut self.body {
            Some(body) => part(body).during("write", &self.unfinished),
            None => Ok(()),
        }
    }
}

impl Drop for SnapshotWriter<'_> {
    fn drop(&mut self) {
        // Not finished. Should this fail too, the next start removes the file.
        if self.finished != Path::new("") {
            self.body = None;
            let _ = self.disk.remove(&self.unfinished);
        }
    }
}

/// The file behind its compression.
enum Encoder {
    Plain(FileWriter),
    Gz(BufWriter<GzEncoder<FileWriter>>),
    Snappy(Box<SnappyWriter<BufWriter<FileWriter>>>),
}

impl Encoder {
    fn new(compression: Compression, file: Box<dyn DiskFile>) -> io::Result<Encoder> {
        let file = FileWriter { file, position: 0, settled: 0 };
        Ok(match compression {
            Compression::None => Encoder::Plain(file),
            Compression::Gz => {
                Encoder::Gz(BufWriter::new(GzEncoder::new(file, flate2::Compression::default())))
            }
            Compression::Snappy => {
                Encoder::Snappy(Box::new(SnappyWriter::new(BufWriter::with_capacity(1 << 18, file))?))
            }
        })
    }

    fn finish(self) -> io::Result<Box<dyn DiskFile>> {
        let file = match self {
            Encoder::Plain(file) => file,
            Encoder::Gz(gz) => gz.into_inner()?.finish()?,
            Encoder::Snappy(snappy) => snappy.finish()?.into_inner()?,
        };
        file.finish()
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::Plain(file) => file.write(bytes),
            Encoder::Gz(gz) => gz.write(bytes),
            Encoder::Snappy(snappy) => snappy.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct FileWriter {
    file: Box<dyn DiskFile>,
    position: u64,
    settled: u64,
}

impl FileWriter {
    /// The file without what an older snapshot left behind the end of this one.
    fn finish(self) -> io::Result<Box<dyn DiskFile>> {
        if self.file.size()? > self.position {
            self.file.truncate(self.position)?;
        }
        Ok(self.file)
    }
}

/// A snapshot goes to the disk as it grows. Left to the end, all of it would go at once, and a sync of the
/// transaction log would wait for it. Nor is it synced before its end: that makes the disk empty its cache,
/// and the log wait again.
const SETTLE_EVERY: u64 = 256 << 10;

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        if self.position - self.settled >= SETTLE_EVERY {
            write_back(&*self.file, self.settled, self.position - self.settled)?;
            self.settled = self.position;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
