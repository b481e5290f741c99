//! The folder of an authority. Each file is replaced as a whole: servers read changed files again.

use super::{
    CertsError,
    authority::{self, Authority, Issued},
};
use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Only the owner may read and write.
const PRIVATE: u32 = 0o600;
/// Everybody may read.
const PUBLIC: u32 = 0o644;

pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Folder {
        Folder(path.into())
    }

    /// The certificates to trust: the authority's, and during a rotation the old one's, too.
    pub(super) fn trust(&self) -> PathBuf {
        self.0.join("ca.pem")
    }

    pub(super) fn authority_key(&self) -> PathBuf {
        self.0.join("ca-key.pem")
    }

    /// The certificate of the authority that issues.
    fn authority(&self) -> PathBuf {
        self.0.join("ca-current.pem")
    }

    pub(super) fn create(&self) -> Result<(), CertsError> {
        fs::create_dir_all(&self.0).map_err(|cause| CertsError::File { file: self.0.clone(), cause })
    }

    pub(super) fn write_authority(&self, authority: &Authority) -> Result<(), CertsError> {
        if self.authority_key().exists() {
            return Err(CertsError::HasAuthority(self.authority_key()));
        }
        write(&self.authority(), &authority.certificate, PUBLIC)?;
        write(&self.trust(), &authority.certificate, PUBLIC)?;
        // The key comes last: without it there is no authority, and `init` begins again.
        write(&self.authority_key(), &authority.key, PRIVATE)
    }

    pub(super) fn read_authority(&self) -> Result<Authority, CertsError> {
        if !self.authority_key().exists() {
            return Err(CertsError::NoAuthority(self.0.clone()));
        }
        let key = read(&self.authority_key())?;
        let certificate = read(&self.authority())?;
        if authority::is_key_of(&key, &certificate) {
            return Ok(Authority { certificate, key });
        }
        // A rotation was broken off between the key and its certificate, which is the first of those to trust.
        let trust = read(&self.trust())?;
        let certificate = authority::first_certificate(&trust);
        match authority::is_key_of(&key, certificate) {
            true => Ok(Authority { certificate: certificate.to_owned(), key }),
            false => Err(CertsError::OtherKey(self.authority_key())),
        }
    }

    pub(super) fn write_issued(&self, name: &str, issued: &Issued) -> Result<PathBuf, CertsError> {
        let path = self.0.join(name);
        write(&path, &format!("{}{}", issued.key, issued.certificate), PRIVATE)?;
        Ok(path)
    }

    fn is_rotating(&self) -> Result<bool, CertsError> {
        Ok(read(&self.trust())? != read(&self.authority())?)
    }

    /// Issues by this authority from now on, and trusts both.
    pub(super) fn begin_rotation(&self, new: &Authority) -> Result<(), CertsError> {
        if self.is_rotating()? {
            return Err(CertsError::Rotating(self.0.clone()));
        }
        // The trust comes first: nothing is issued that is not trusted. The old key is gone once the new one is there, so
        // `read_authority` takes the certificate that belongs to the key.
        write(&self.trust(), &format!("{}{}", new.certificate, read(&self.authority())?), PUBLIC)?;
        write(&self.authority_key(), &new.key, PRIVATE)?;
        write(&self.authority(), &new.certificate, PUBLIC)
    }

    pub(super) fn end_rotation(&self) -> Result<(), CertsError> {
        if !self.authority_key().exists() {
            return Err(CertsError::NoAuthority(self.0.clone()));
        }
        if !self.is_rotating()? {
            return Err(CertsError::NotRotating(self.0.clone()));
        }
        let Authority { certificate, .. } = self.read_authority()?;
        write(&self.authority(), &certificate, PUBLIC)?;
        write(&self.trust(), &certificate, PUBLIC)
    }
}

fn read(path: &Path) -> Result<String, CertsError> {
    fs::read_to_string(path).map_err(|cause| CertsError::File { file: path.into(), cause })
}

/// Replaces a file at once. Nobody else can read a private file at any time.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertsError> {
    let replaced = || -> io::Result<()> {
        let new = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The name is on disk before the next file is written.
        fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    replaced().map_err(|cause| CertsError::File { file: path.into(), cause })
}
