//! The errors of reading a store. The caller knows the path and the name of the setting, and says both.

use super::StoreKind;
use crate::pem::PemError;

/// The reason for which a store cannot be used. No text has a part of a password or of a key in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The content is of another kind than was asked for.
    #[error("this is not a {asked} store but a {found} one: set the type of the store to {found}")]
    OtherKind {
        /// The kind by the setting or the suffix.
        asked: StoreKind,
        /// The kind by the content.
        found: StoreKind,
    },
    /// The content is of no kind.
    #[error(
        "this is not a {asked} store, nor one of another type that can be read (JKS, PEM, PKCS12): check that it is \
         the right file, and whole"
    )]
    Unknown {
        /// The kind by the setting or the suffix.
        asked: StoreKind,
    },
    /// The store is JCEKS, which Java's servers do not read either.
    #[error(
        "this is a JCEKS store, which is not read: convert it with keytool -importkeystore -deststoretype PKCS12"
    )]
    Jceks,
    /// The program is built without the feature `key-stores`.
    #[error(
        "this program reads only PEM files whose key is not encrypted: convert the store with keytool and openssl, or \
         build the program with the feature key-stores"
    )]
    NotBuiltIn,
    /// A JKS store of another version than 2.
    #[error(
        "this is a JKS store of version {version}; only version 2 is read: convert it with keytool -importkeystore \
         -deststoretype PKCS12"
    )]
    JksVersion {
        /// The version in the file.
        version: u32,
    },
    /// The bytes break the rules of the format.
    #[error("the store is damaged at byte {offset}, at {part}: copy it again, or make it anew")]
    Damaged {
        /// The offset in the file, from 0.
        offset: usize,
        /// The part of the format that cannot be read.
        part: &'static str,
    },
    /// A PKCS12 store that cannot be read.
    #[error(
        "the PKCS12 store cannot be read ({reason}): copy it again, or make it anew with keytool or openssl pkcs12"
    )]
    Pkcs12 {
        /// The reason, in the words of the reader.
        reason: String,
    },
    /// An encrypted key in a PEM file that cannot be read.
    #[error("the encrypted private key cannot be read ({reason}): make it anew with openssl pkcs8 -topk8")]
    EncryptedKey {
        /// The reason, in the words of the reader.
        reason: String,
    },
    /// A PEM file that cannot be read.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A certificate is not one.
    #[error("certificate {number} of the store is damaged: put it in again")]
    BadCertificate {
        /// The number of the certificate in the file, from 1.
        number: usize,
    },
    /// The password opens nothing.
    #[error("the password of the store is wrong, or the store is damaged: check the password")]
    WrongPassword,
    /// The store needs a password.
    #[error("the store is protected, and no password is given: set its password or the file with it")]
    NoPassword,
    /// The key in the store has a password of its own.
    #[error(
        "the key in the store has another password than the store: give it the same with keytool -keypasswd (JKS), or \
         make the store anew"
    )]
    OtherKeyPassword,
    /// The key is encrypted in a way that is not read.
    #[error("the key or the store is encrypted by {method}, which is not read: {advice}")]
    UnknownEncryption {
        /// The method.
        method: &'static str,
        /// The way out, for the message.
        advice: &'static str,
    },
    /// The private key is not one.
    #[error("the private key of the store is damaged: put it in again")]
    BadKey,
    /// There is no private key.
    #[error("the store has no private key: put the key of the certificate into it")]
    NoPrivateKey,
    /// There is a private key without a certificate.
    #[error(
        "the store has a private key and no certificate for it: put the certificate and its chain into it"
    )]
    NoCertificate,
    /// A trust store trusts nobody.
    #[error(
        "the store has no trusted certificate: import the certificate of the authority with keytool -importcert, or \
         put it into the PEM file"
    )]
    NoTrustedCertificate,
}
