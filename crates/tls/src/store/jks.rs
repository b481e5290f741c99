//! Java's own format of key stores and trust stores.
//!
//! ```text
//! store = feedfeed version:u32=2 count:u32 entry* sha1[20]
//! entry = 1:u32 alias created:u64 length:u32 key[length] count:u32 certificate*
//!       | 2:u32 alias created:u64 certificate
//! alias = length:u16 text[length]
//! certificate = length:u16 "X.509" length:u32 der[length]
//! ```
//!
//! The checksum is SHA-1 over the password in UTF-16, the words "Mighty Aphrodite", and everything before it. A key is
//! DER: an algorithm, and an octet string of salt, encrypted key and check value.

use super::{KeyStore, StoreError};
use crate::{
    der::{self, DerReader},
    password::Password,
    principal::subject_name,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

const VERSION: u32 = 2;
const KEY: u32 = 1;
const CERTIFICATE: u32 = 2;
const CERTIFICATE_TYPE: &[u8] = b"X.509";
const HASH_BYTES: usize = 20;
const PHRASE: &[u8] = b"Mighty Aphrodite";
/// The content of the object identifier 1.3.6.1.4.1.42.2.17.1.1, which names the encryption of keys.
const KEY_PROTECTOR: &[u8] = &[0x2b, 6, 1, 4, 1, 0x2a, 2, 0x11, 1, 1];

/// The entries of a store whose checksum is right.
struct Entries<'a> {
    /// Each encrypted key with its offset in the file and its chain.
    keys: Vec<(usize, &'a [u8], Vec<CertificateDer<'static>>)>,
    trusted: Vec<CertificateDer<'static>>,
}

pub(super) fn key_store(bytes: &[u8], password: &Password) -> Result<KeyStore, StoreError> {
    let entries = Entries::read(bytes, password)?;
    let (offset, key, chain) = entries.keys.into_iter().next().ok_or(StoreError::NoPrivateKey)?;
    if chain.is_empty() {
        return Err(StoreError::NoCertificate);
    }
    Ok(KeyStore { chain, key: decrypted(key, offset, password)? })
}

pub(super) fn trust_store(
    bytes: &[u8],
    password: &Password,
) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    Ok(Entries::read(bytes, password)?.trusted)
}

impl<'a> Entries<'a> {
    fn read(bytes: &'a [u8], password: &Password) -> Result<Self, StoreError> {
        let mut reader = Reader { bytes, at: super::JKS_MAGIC.len(), certificates: 0 };
        let version = reader.u32("the version")?;
        if version != VERSION {
            return Err(StoreError::JksVersion { version });
        }
        let count = reader.u32("the number of entries")?;
        let mut entries = Entries { keys: Vec::new(), trusted: Vec::new() };
        for _ in 0..count {
            entries.read_one(&mut reader)?;
        }
        let end = reader.at;
        let checksum = reader.take(HASH_BYTES, "the checksum")?;
        if reader.at != bytes.len() {
            return Err(reader.damaged("the bytes after the checksum"));
        }
        let hash = Sha1::new().chain_update(&*password.utf16_bytes()).chain_update(PHRASE);
        if *hash.chain_update(&bytes[..end]).finalize() != *checksum {
            return Err(wrong(password));
        }
        Ok(entries)
    }

    fn read_one(&mut self, reader: &mut Reader<'a>) -> Result<(), StoreError> {
        let start = reader.at;
        let tag = reader.u32("the type of an entry")?;
        let alias = reader.u16("the name of an entry")?;
        reader.take(alias.into(), "the name of an entry")?;
        reader.take(size_of::<u64>(), "the time of an entry")?;
        match tag {
            KEY => {
                let (offset, key) = (reader.at, reader.long("a key")?);
                let mut chain = Vec::new();
                for _ in 0..reader.u32("the length of a chain")? {
                    chain.push(reader.certificate()?);
                }
                self.keys.push((offset, key, chain));
            }
            CERTIFICATE => self.trusted.push(reader.certificate()?),
            _ => return Err(StoreError::Damaged { offset: start, part: "the type of an entry" }),
        }
        Ok(())
    }
}

fn wrong(password: &Password) -> StoreError {
    if password.is_empty() { StoreError::NoPassword } else { StoreError::WrongPassword }
}

/// A key from its encrypted form at an offset in the file.
fn decrypted(key: &[u8], offset: usize, password: &Password) -> Result<PrivateKeyDer<'static>, StoreError> {
    let protected = || {
        let mut parts = DerReader::new(key).inside(der::SEQUENCE)?;
        let algorithm = parts.inside(der::SEQUENCE)?.content_of(der::OBJECT_IDENTIFIER)?;
        Some((algorithm, parts.content_of(der::OCTET_STRING)?))
    };
    let damaged = StoreError::Damaged { offset, part: "a key" };
    let (algorithm, protected) = protected().ok_or_else(|| damaged.clone())?;
    if algorithm != KEY_PROTECTOR {
        return Err(StoreError::UnknownEncryption {
            method: "another method than that of Java's JKS stores",
            advice: "make the store anew with keytool",
        });
    }
    let (salt, rest) = protected.split_at_checked(HASH_BYTES).ok_or_else(|| damaged.clone())?;
    let (cipher, check) = rest.split_last_chunk::<HASH_BYTES>().ok_or(damaged)?;
    let password = password.utf16_bytes();
    let mut plain = Zeroizing::new(Vec::with_capacity(cipher.len()));
    let mut block = Zeroizing::new(<[u8; HASH_BYTES]>::try_from(salt).unwrap_or_default());
    for part in cipher.chunks(HASH_BYTES) {
        *block = Sha1::new().chain_update(&*password).chain_update(*block).finalize().into();
        plain.extend(part.iter().zip(block.iter()).map(|(byte, mask)| byte ^ mask));
    }
    if *Sha1::new().chain_update(&*password).chain_update(&*plain).finalize() != *check {
        return Err(StoreError::OtherKeyPassword);
    }
    Ok(PrivatePkcs8KeyDer::from(std::mem::take(&mut *plain)).into())
}

/// Reads a store from its start to its end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of certificates that were read.
    certificates: usize,
}

impl<'a> Reader<'a> {
    fn damaged(&self, part: &'static str) -> StoreError {
        StoreError::Damaged { offset: self.at, part }
    }

    fn take(&mut self, count: usize, part: &'static str) -> Result<&'a [u8], StoreError> {
        let (taken, _) = self.bytes[self.at..].split_at_checked(count).ok_or_else(|| self.damaged(part))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], StoreError> {
        let taken = self.bytes[self.at..].first_chunk().ok_or_else(|| self.damaged(part))?;
        self.at += N;
        Ok(*taken)
    }

    fn u16(&mut self, part: &'static str) -> Result<u16, StoreError> {
        self.array(part).map(u16::from_be_bytes)
    }

    fn u32(&mut self, part: &'static str) -> Result<u32, StoreError> {
        self.array(part).map(u32::from_be_bytes)
    }

    /// Bytes after their length in four bytes.
    fn long(&mut self, part: &'static str) -> Result<&'a [u8], StoreError> {
        let length = self.u32(part)?;
        // On a machine with less than 32 bits in a length, a longer part cannot be in the file.
        self.take(usize::try_from(length).unwrap_or(usize::MAX), part)
    }

    fn certificate(&mut self) -> Result<CertificateDer<'static>, StoreError> {
        let start = self.at;
        let length = self.u16("the type of a certificate")?;
        if self.take(length.into(), "the type of a certificate")? != CERTIFICATE_TYPE {
            return Err(StoreError::Damaged { offset: start, part: "the type of a certificate" });
        }
        let certificate = CertificateDer::from(self.long("a certificate")?.to_vec());
        self.certificates += 1;
        subject_name(&certificate).map_err(|_| StoreError::BadCertificate { number: self.certificates })?;
        Ok(certificate)
    }
}
