//! Reads the files of stores and passwords. The other modules take what was read.

use crate::password::Password;
use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};
use zeroize::Zeroizing;

/// No store and no list of revoked certificates has more bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// No password file has more bytes.
const PASSWORD_BYTES_MAX: u64 = 1 << 16;

/// The bytes of a file with a store or with lists of revoked certificates.
///
/// # Errors
/// The file cannot be read, or has more than [`FILE_BYTES_MAX`] bytes. The path is not in the error.
pub fn read_file(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    read_up_to(path, FILE_BYTES_MAX)
}

/// The password in a file: see [`Password::from_file_text`].
///
/// # Errors
/// The file cannot be read, is not UTF-8, or is too long for a password. The path is not in the error.
pub fn read_password_file(path: &Path) -> io::Result<Password> {
    let bytes = read_up_to(path, PASSWORD_BYTES_MAX)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "the password in the file is not UTF-8 text"))?;
    Ok(Password::from_file_text(text))
}

fn read_up_to(path: &Path, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    // One byte more shows that the file goes on. A pipe has no length to look at before.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("the file has more than {most} bytes")));
    }
    Ok(bytes)
}
