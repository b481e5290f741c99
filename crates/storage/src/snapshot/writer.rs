//! Writes a snapshot file under a temporary name, and gives it its name when it is complete and durable.

use super::{Compression, HEADER, SnapshotTrailer, body::BodyWriter, snappy::SnappyWriter, spare};
use crate::{
    disk::{Disk, DiskFile, sync_names, write_back},
    error::{IoContext, Result},
    names::{Building, snapshot_name, unfinished_name},
};
use flate2::write::GzEncoder;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    jute::Writer as _,
    stat::StatPersisted,
};
use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The file of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotTarget<'a> {
    /// The folder of the snapshots.
    pub dir: &'a Path,
    /// The last transaction that the snapshot has for certain.
    pub zxid: Zxid,
    /// How the file is compressed.
    pub compression: Compression,
    /// A server can write a snapshot of each kind at the same time.
    pub building: Building,
}

impl<'a> SnapshotTarget<'a> {
    /// The file of a snapshot that is written in the background.
    pub fn new(dir: &'a Path, zxid: Zxid, compression: Compression) -> SnapshotTarget<'a> {
        SnapshotTarget { dir, zxid, compression, building: Building::Background }
    }
}

/// Writes one snapshot. The file gets its name when it is complete and durable. If the writer is dropped before, it
/// removes the file.
pub struct SnapshotWriter<'d> {
    disk: &'d dyn Disk,
    dir: PathBuf,
    unfinished: PathBuf,
    finished: PathBuf,
    body: Option<BodyWriter<Encoder>>,
}

impl<'d> SnapshotWriter<'d> {
    /// Begins a snapshot with its sessions and ACLs. The znodes follow.
    pub fn begin<'a>(
        disk: &'d dyn Disk,
        file: SnapshotTarget<'_>,
        sessions: impl ExactSizeIterator<Item = (SessionId, i32)>,
        acls: impl ExactSizeIterator<Item = (i64, &'a [Acl])>,
    ) -> Result<SnapshotWriter<'d>> {
        let SnapshotTarget { dir, zxid, compression, building } = file;
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

    /// Writes a znode. The root ("/") comes first, and parents before their children.
    pub fn node(&mut self, path: &str, data: Option<&[u8]>, acl: i64, stat: &StatPersisted) -> Result<()> {
        self.write(|body| body.node(path, data, acl, stat))
    }

    /// The number of bytes so far, before compression. Callers that write slowly pause by it.
    pub fn written(&self) -> u64 {
        self.body.as_ref().map_or(0, BodyWriter::written)
    }

    /// Completes the file, makes it durable and gives it its name. An older file with this name is replaced. Returns
    /// the path.
    ///
    /// By default Java's digest is on, and then Java cannot read a snapshot without the section of the digest. So leave
    /// it out only if the configuration switches the digest off.
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

    /// Abandons the snapshot and removes its file slowly, as long as `go_on` returns true. If it returns false at once,
    /// because the server ends, the file stays, and the next start makes it the spare.
    pub fn give_up(mut self, go_on: &dyn Fn() -> bool) {
        self.finished = PathBuf::new();
        self.body = None;
        if go_on() {
            // On an error the next start removes the file.
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
        // The snapshot is not finished. On an error here the next start removes the file.
        if self.finished != Path::new("") {
            self.body = None;
            let _ = self.disk.remove(&self.unfinished);
        }
    }
}

/// Compresses and writes to the file.
enum Encoder {
    Plain(FileWriter),
    Gz(BufWriter<GzEncoder<FileWriter>>),
    Snappy(Box<SnappyWriter<BufWriter<FileWriter>>>),
}

impl Encoder {
    fn new(compression: Compression, file: Box<dyn DiskFile>) -> io::Result<Encoder> {
        let file = FileWriter { file, position: 0, sent: 0 };
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
    /// The file is sent to the disk up to this byte.
    sent: u64,
}

impl FileWriter {
    /// Cuts off the rest of an older snapshot behind the end of this one, and returns the file.
    fn finish(self) -> io::Result<Box<dyn DiskFile>> {
        if self.file.size()? > self.position {
            self.file.truncate(self.position)?;
        }
        Ok(self.file)
    }
}

/// The number of bytes after which a snapshot is sent to the disk. If all of it were sent at the end, a sync of the
/// transaction log would wait for that. It is not synced before its end: a sync makes the disk empty its cache, and the
/// log would wait for that too.
const WRITE_BACK_EVERY: u64 = 256 << 10;

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        if self.position - self.sent >= WRITE_BACK_EVERY {
            write_back(&*self.file, self.sent, self.position - self.sent)?;
            self.sent = self.position;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
