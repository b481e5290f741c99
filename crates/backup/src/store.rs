//! The place of a backup: a folder, S3-compatible storage, or memory in tests.
//!
//! An object appears whole or not at all. In a folder it is durable when [`Store::put`] returns.

use crate::error::{BackupError, FileContext, Result};
use futures_util::{StreamExt, TryStreamExt};
use object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, local::LocalFileSystem, memory::InMemory,
    path::Path as ObjectPath,
};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::runtime::{Builder, Runtime};

/// The size of the pieces in which a large file is stored.
const PIECE: usize = 8 << 20;
/// The largest object that is read into memory at once.
pub const LARGEST_IN_MEMORY: u64 = 1 << 30;

/// An open place of a backup.
#[derive(Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    location: String,
    folder: Option<PathBuf>,
    runtime: Runtime,
    /// The number of writes after which all fail, as if the process had died.
    #[cfg(test)]
    pub(crate) writes_left: std::cell::Cell<u32>,
}

/// A file that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256, in lower-case hex.
    pub sha256: String,
}

impl Stored {
    pub(crate) fn new(bytes: u64, sum: Sha256) -> Stored {
        Stored { bytes, sha256: hex(&sum.finalize()) }
    }
}

impl Store {
    /// Opens a place for a backup: a folder, which is made for its owner alone if it is missing, or `s3://bucket/prefix`.
    ///
    /// # Errors
    /// The folder cannot be made, or the URL or the environment (`AWS_*`) is not usable.
    pub fn create(location: &str) -> Result<Store> {
        if !location.contains("://") {
            let folder = Path::new(location);
            make_private(folder)?;
        }
        Store::open(location)
    }

    /// Opens the place of a backup that exists: a folder, or `s3://bucket/prefix`.
    ///
    /// # Errors
    /// The folder does not exist, or the URL or the environment (`AWS_*`) is not usable.
    pub fn open(location: &str) -> Result<Store> {
        if let Some(rest) = location.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let objects = s3(location, bucket)?;
            let prefix =
                ObjectPath::parse(prefix.trim_matches('/')).map_err(|error| bad(location, &error))?;
            return Store::over(objects, prefix, location.to_owned(), None);
        }
        if location.contains("://") {
            return Err(bad(location, &"write a folder, or s3://BUCKET/PREFIX"));
        }
        let folder = fs::canonicalize(location).during("find", Path::new(location))?;
        let objects = LocalFileSystem::new_with_prefix(&folder)
            .map_err(|error| bad(location, &error))?
            .with_fsync(true);
        Store::over(Arc::new(objects), ObjectPath::default(), location.to_owned(), Some(folder))
    }

    /// A place in memory, for tests. Two stores of the same objects are two processes at one place.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn in_memory(objects: Arc<InMemory>) -> Result<Store> {
        Store::over(objects, ObjectPath::from("prefix"), "memory".to_owned(), None)
    }

    fn over(
        objects: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        location: String,
        folder: Option<PathBuf>,
    ) -> Result<Store> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(BackupError::Runtime)?;
        Ok(Store {
            objects,
            prefix,
            location,
            folder,
            runtime,
            #[cfg(test)]
            writes_left: std::cell::Cell::new(u32::MAX),
        })
    }

    /// The place as the operator has named it.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Stores bytes under a name. An object with this name is replaced.
    ///
    /// # Errors
    /// The store refuses or cannot be reached.
    pub fn put(&self, name: &str, bytes: Vec<u8>) -> Result<Stored> {
        #[cfg(test)]
        self.count_write(name)?;
        self.make_folder_of(name)?;
        let stored = stored(&bytes);
        let payload = PutPayload::from(bytes);
        self.runtime
            .block_on(self.objects.put(&self.path(name), payload))
            .map_err(self.failed("write", name))?;
        self.make_private(name)?;
        Ok(stored)
    }

    /// Stores bytes under a name that no object has.
    ///
    /// # Errors
    /// [`BackupError::AnotherWriter`] if there is an object with this name. The store refuses or cannot be reached.
    pub fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        #[cfg(test)]
        self.count_write(name)?;
        self.make_folder_of(name)?;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let path = self.path(name);
        let put = self.objects.put_opts(&path, PutPayload::from(bytes), options);
        match self.runtime.block_on(put) {
            Ok(_) => self.make_private(name),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Err(self.another_writer(name))
            }
            Err(error) => Err(self.failed("write", name)(error)),
        }
    }

    /// Stores a file in pieces.
    ///
    /// # Errors
    /// The file cannot be read. The store refuses or cannot be reached; then there is no object with this name.
    pub fn put_file(&self, name: &str, mut file: impl Read, path: &Path) -> Result<Stored> {
        let mut first = Vec::new();
        file.by_ref().take(PIECE as u64).read_to_end(&mut first).during("read", path)?;
        if first.len() < PIECE {
            return self.put(name, first);
        }
        self.make_folder_of(name)?;
        let (mut sum, mut bytes) = (Sha256::new(), 0);
        let mut upload = self
            .runtime
            .block_on(self.objects.put_multipart(&self.path(name)))
            .map_err(self.failed("write", name))?;
        let mut piece = first;
        while !piece.is_empty() {
            sum.update(&piece);
            bytes += piece.len() as u64;
            let put = upload.put_part(PutPayload::from(std::mem::take(&mut piece)));
            if let Err(error) = self.runtime.block_on(put) {
                // The rest of an upload that is not ended is removed by the store's own rules.
                let _ = self.runtime.block_on(upload.abort());
                return Err(self.failed("write", name)(error));
            }
            file.by_ref().take(PIECE as u64).read_to_end(&mut piece).during("read", path)?;
        }
        self.runtime.block_on(upload.complete()).map_err(self.failed("write", name))?;
        self.make_private(name)?;
        Ok(Stored::new(bytes, sum))
    }

    /// Makes the folder of an object for its owner alone, before the object is there.
    fn make_folder_of(&self, name: &str) -> Result<()> {
        let folder = self.folder.as_ref().and_then(|folder| Some(folder.join(name).parent()?.to_path_buf()));
        folder.map_or(Ok(()), |folder| make_private(&folder))
    }

    /// Takes the rights of others at an object away. Its folder has kept them away until here.
    fn make_private(&self, name: &str) -> Result<()> {
        let Some(path) = self.folder.as_ref().map(|folder| folder.join(name)) else { return Ok(()) };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).during("set the rights of", &path)
    }

    /// Whether there is an object with this name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has(&self, name: &str) -> Result<bool> {
        match self.runtime.block_on(self.objects.head(&self.path(name))) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("read", name)(error)),
        }
    }

    /// The bytes of an object. `None` if there is none with this name.
    ///
    /// # Errors
    /// The store cannot be read, or the object has more than [`LARGEST_IN_MEMORY`] bytes.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let read = async {
            let found = self.objects.get(&self.path(name)).await?;
            if found.meta.size > LARGEST_IN_MEMORY {
                return Ok(None);
            }
            found.bytes().await.map(Some)
        };
        match self.runtime.block_on(read) {
            Ok(Some(bytes)) => Ok(Some(bytes.into())),
            Ok(None) => Err(self.damaged(name, "it is larger than any object that a backup writes")),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name)(error)),
        }
    }

    /// The bytes of an object, which must have this size and SHA-256.
    ///
    /// # Errors
    /// The object is missing or damaged, or the store cannot be read.
    pub fn get_checked(&self, name: &str, expected: &Stored) -> Result<Vec<u8>> {
        let bytes = self.get(name)?.ok_or_else(|| self.damaged(name, "it is missing"))?;
        self.compare(name, expected, &stored(&bytes))?;
        Ok(bytes)
    }

    /// Copies an object into a file. It must have this size and SHA-256.
    ///
    /// # Errors
    /// The object is missing or damaged, the store cannot be read, or the file cannot be written.
    pub fn fetch(&self, name: &str, expected: &Stored, mut into: &File, path: &Path) -> Result<()> {
        let found =
            self.runtime.block_on(self.objects.get(&self.path(name))).map_err(|error| match error {
                object_store::Error::NotFound { .. } => self.damaged(name, "it is missing"),
                error => self.failed("read", name)(error),
            })?;
        let mut stream = found.into_stream();
        let (mut sum, mut bytes) = (Sha256::new(), 0);
        while let Some(piece) = self.runtime.block_on(stream.next()) {
            let piece = piece.map_err(self.failed("read", name))?;
            sum.update(&piece);
            bytes += piece.len() as u64;
            into.write_all(&piece).during("write", path)?;
        }
        self.compare(name, expected, &Stored::new(bytes, sum))
    }

    /// The names of all objects whose name ends with `ending`, in the order of the names.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, ending: &str) -> Result<Vec<String>> {
        let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
        let objects = self.objects.list(prefix).map_ok(|object| object.location).try_collect::<Vec<_>>();
        let objects = self.runtime.block_on(objects).map_err(self.failed("list", "the objects"))?;
        let mut names: Vec<String> = objects
            .iter()
            .filter_map(|path| {
                let name = path.as_ref().strip_prefix(self.prefix.as_ref())?.trim_start_matches('/');
                name.ends_with(ending).then(|| name.to_owned())
            })
            .collect();
        names.sort();
        Ok(names)
    }

    pub(crate) fn damaged(&self, name: &str, reason: &str) -> BackupError {
        let (object, location) = (name.to_owned(), self.location.clone());
        BackupError::Damaged { object, location, reason: reason.to_owned() }
    }

    pub(crate) fn another_writer(&self, name: &str) -> BackupError {
        BackupError::AnotherWriter { location: self.location.clone(), object: name.to_owned() }
    }

    /// The folder of the backup, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn path(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, action: &'static str, name: &str) -> impl FnOnce(object_store::Error) -> BackupError {
        let (object, location) = (name.to_owned(), self.location.clone());
        move |source| BackupError::Store { action, object, location, source: Box::new(source) }
    }

    #[cfg(test)]
    fn count_write(&self, name: &str) -> Result<()> {
        let left = self.writes_left.get();
        if left == 0 {
            let source =
                object_store::Error::NotImplemented { operation: "dead".into(), implementer: "test".into() };
            return Err(self.failed("write", name)(source));
        }
        self.writes_left.set(left - 1);
        Ok(())
    }

    fn compare(&self, name: &str, expected: &Stored, found: &Stored) -> Result<()> {
        if found.bytes != expected.bytes {
            let reason = format!("it has {} bytes, and its manifest says {}", found.bytes, expected.bytes);
            return Err(self.damaged(name, &reason));
        }
        if found.sha256 != expected.sha256 {
            return Err(self.damaged(name, "its SHA-256 is not that of its manifest"));
        }
        Ok(())
    }
}

/// Makes a folder, and those above it, for its owner alone. A folder that is there stays as it is.
fn make_private(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.during("make", folder)?;
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(above).and_then(|above| above.sync_all()).during("sync", above)
}

fn bad(location: &str, reason: &dyn std::fmt::Display) -> BackupError {
    BackupError::BadLocation { location: location.to_owned(), reason: reason.to_string() }
}

#[cfg(feature = "s3")]
fn s3(location: &str, bucket: &str) -> Result<Arc<dyn ObjectStore>> {
    // Keys, region and endpoint come from the environment variables of AWS.
    let builder = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket);
    Ok(Arc::new(builder.build().map_err(|error| bad(location, &error))?))
}

#[cfg(not(feature = "s3"))]
fn s3(location: &str, _: &str) -> Result<Arc<dyn ObjectStore>> {
    Err(bad(
        location,
        &"this program was built without S3; build it with --features s3, or write to a folder",
    ))
}

/// Size and SHA-256 of bytes.
pub fn stored(bytes: &[u8]) -> Stored {
    Stored { bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores() -> Vec<(Store, Option<tempfile::TempDir>)> {
        let dir = tempfile::tempdir().unwrap();
        let folder = Store::create(dir.path().join("a/b").to_str().unwrap()).unwrap();
        vec![(folder, Some(dir)), (Store::in_memory(Arc::default()).unwrap(), None)]
    }

    #[test]
    fn objects_are_read_as_they_were_stored() {
        for (store, _dir) in stores() {
            let expected = store.put("00000001/part.json", b"abc".to_vec()).unwrap();
            assert_eq!(store.get("00000001/part.json").unwrap().unwrap(), b"abc");
            assert_eq!(store.get_checked("00000001/part.json", &expected).unwrap(), b"abc");
            assert_eq!(store.get("00000002/part.json").unwrap(), None);
            store.put("00000001/log.1", b"x".to_vec()).unwrap();
            assert_eq!(store.list("/part.json").unwrap(), ["00000001/part.json"]);
            assert!(store.put_new("00000001/log.2", b"x".to_vec()).is_ok());
            let refused = store.put_new("00000001/log.2", b"y".to_vec());
            assert!(matches!(refused, Err(BackupError::AnotherWriter { .. })), "{refused:?}");
        }
    }

    #[test]
    fn a_file_in_several_pieces_is_fetched_whole() {
        for (store, _dir) in stores() {
            let bytes: Vec<u8> = (0..PIECE * 2 + 5).map(|n| (n % 251) as u8).collect();
            let expected = store.put_file("1/snapshot.5", &*bytes, Path::new("x")).unwrap();
            assert_eq!(expected, stored(&bytes));
            let mut file = tempfile::tempfile().unwrap();
            store.fetch("1/snapshot.5", &expected, &file, Path::new("y")).unwrap();
            let mut read = Vec::new();
            std::io::Seek::rewind(&mut file).unwrap();
            file.read_to_end(&mut read).unwrap();
            assert!(read == bytes);
        }
    }

    #[test]
    fn an_object_that_was_changed_or_removed_is_refused() {
        let store = Store::in_memory(Arc::default()).unwrap();
        let expected = store.put("a", b"abc".to_vec()).unwrap();
        store.put("a", b"abd".to_vec()).unwrap();
        assert!(store.get_checked("a", &expected).unwrap_err().to_string().contains("SHA-256"));
        store.put("a", b"ab".to_vec()).unwrap();
        assert!(store.get_checked("a", &expected).unwrap_err().to_string().contains("2 bytes"));
        assert!(store.get_checked("b", &expected).unwrap_err().to_string().contains("missing"));
    }

    #[test]
    fn only_the_owner_can_read_a_backup() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a/b");
        // The folder above is not the backup's: others may have it as it is.
        fs::create_dir(dir.path().join("a")).unwrap();
        let store = Store::create(place.to_str().unwrap()).unwrap();
        let large = vec![7; PIECE + 1];
        store.put_file("00000001/snapshot.5", &*large, Path::new("x")).unwrap();
        store.put_file("00000002/snapshot.6", &b"small"[..], Path::new("x")).unwrap();
        store.put_new("00000001/part.json", b"x".to_vec()).unwrap();
        store.put("00000001/part.json", b"y".to_vec()).unwrap();
        store.put("restores/1.json", b"y".to_vec()).unwrap();
        let mut folders = vec![place];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            assert_eq!(mode(&folder), 0o700, "{folder:?}");
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    assert_eq!(mode(&path), 0o600, "{path:?}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, 4);
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_place_that_is_no_folder_is_refused() {
        assert!(matches!(Store::open("http://x/y"), Err(BackupError::BadLocation { .. })));
        assert!(Store::open("/nowhere/at/all").is_err());
    }
}
