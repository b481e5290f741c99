//! The advice in the error messages of the log works: after it, the next start and the one after it continue from the
//! records on disk.

use crate::{
    faulty_disk::{Fault, FaultyDisk},
    sinks::{Contents, begin_snapshot, record},
};
use ostler_proto::id::Zxid;
use ostler_storage::{
    StorageError,
    folders::DataFolders,
    recover::{RecoverOptions, recover},
    snapshot::SnapshotTrailer,
    txnlog::{LogOptions, TxnLog},
};
use std::{io::ErrorKind, path::Path, sync::Arc};

struct Server {
    disk: FaultyDisk,
    folders: DataFolders,
    log: TxnLog,
    last: Zxid,
}

impl Server {
    fn new() -> Server {
        let (disk, folders) = (FaultyDisk::default(), DataFolders::at(Path::new("/data"), None));
        begin_snapshot(&disk, &folders.snapshots, 0).unwrap().finish(SnapshotTrailer::default()).unwrap();
        Server::on(disk, folders)
    }

    fn on(disk: FaultyDisk, folders: DataFolders) -> Server {
        let mut contents = Contents::default();
        let found = recover(&disk, &folders, RecoverOptions::default(), &mut contents).unwrap();
        let options = LogOptions { prealloc_bytes: 8192, ..LogOptions::default() };
        let mut log = TxnLog::open(Arc::new(disk.clone()), folders.logs.clone(), options);
        log.continue_after(found.last_zxid);
        Server { disk, folders, log, last: found.last_zxid }
    }

    /// Writes one more transaction. Without an error it is acknowledged.
    fn write(&mut self) -> Result<(), StorageError> {
        let next = Zxid(self.last.0 + 1);
        self.log.append(next, &record(next, 50)).and_then(|()| self.log.commit())?;
        self.last = next;
        Ok(())
    }

    fn restart(self) -> Server {
        Server::on(self.disk, self.folders)
    }
}

/// Writes until a write fails.
fn fails(server: &mut Server) -> Option<StorageError> {
    for count in 0..4 {
        if let Err(error) = server.write() {
            return Some(error);
        }
        if count == 1 {
            server.log.roll();
        }
    }
    None
}

#[test]
fn a_server_with_a_failed_or_full_disk_continues_after_a_restart() {
    let mut tried = 0;
    for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
        for at in 0..30 {
            let mut server = Server::new();
            // A full disk stays full until space is freed.
            server.disk.fail(Some(Fault { at, lasting: kind == ErrorKind::StorageFull, kind }));
            let Some(error) = fails(&mut server) else { continue };
            let said = error.to_string();
            if kind == ErrorKind::StorageFull {
                let words = "then restart the server; nothing that was acknowledged is lost";
                assert!(said.contains("Free some space") && said.contains(words), "{said}");
            }
            let said = server.write().unwrap_err().to_string();
            assert!(
                said.contains("is closed after an earlier write error") && said.contains("Restart"),
                "{said}"
            );
            server.disk.fail(None);
            let mut acknowledged = server.last;
            for _ in 0..2 {
                server = server.restart();
                assert!(server.last >= acknowledged, "{kind:?} at {at}: {acknowledged} was acknowledged");
                server.write().unwrap();
                acknowledged = server.last;
            }
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

/// The next start reads files that another server has put there while this one ran.
#[test]
fn a_server_continues_a_log_that_appeared_while_it_ran_after_a_restart() {
    let mut server = Server::new();
    server.write().unwrap();
    server.log.roll();
    let mut other = Server::on(server.disk.clone(), server.folders.clone());
    other.write().unwrap();
    drop(other);
    let said = server.write().unwrap_err().to_string();
    assert!(said.contains("exists and has transactions") && said.contains("then restart"), "{said}");
    for last in 2..4 {
        server = server.restart();
        assert_eq!(server.last, Zxid(last));
        server.write().unwrap();
    }
}
