//! Key stores, trust stores and certificates, as ZooKeeper's servers and clients have them.
//!
//! The crate takes bytes and returns values. It opens no connection and looks at no clock; only [`files`] and
//! [`material`] read files.
//! Any bytes give a value or an error: no length of a file is trusted before it is compared with the bytes that are
//! left. No error, and no text of `Debug`, has a password or a key in it.
//!
//! - [`store`]: reads key stores and trust stores in the formats JKS, PEM and PKCS12.
//! - [`password`]: the password of a store.
//! - [`principal`]: the name of a certificate's subject, letter by letter as Java writes it. ACLs contain this name.
//! - [`certificate`]: the facts of a certificate that logs and checks need.
//! - [`crl`]: lists of revoked certificates.
//! - [`trust`], [`verify`], [`names`]: the checks of the other side's certificate.
//! - [`settings`], [`material`], [`config`]: from the keys of zoo.cfg by way of the files to a configuration of rustls.
//! - [`mod@log_text`]: texts that the other side has chosen, for the log.
//! - [`detect`]: whether a connection begins with TLS.

pub mod certificate;
pub mod config;
pub mod crl;
#[cfg_attr(
    not(feature = "key-stores"),
    allow(dead_code, reason = "only the readers of stores need all of it")
)]
mod der;
pub mod detect;
pub mod files;
pub mod log_text;
pub mod material;
pub mod names;
pub mod password;
mod pem;
pub mod principal;
mod provider;
pub mod settings;
pub mod store;
pub mod trust;
pub mod verify;

pub use certificate::{Certificate, CertificateError, has_public_key};
pub use crl::{CrlError, read_crls};
pub use log_text::log_text;
pub use password::Password;
pub use pem::PemError;
pub use principal::{NameError, is_distinguished_name, subject_name};
pub use store::{KeyStore, StoreError, StoreKind, StoreKindError, read_key_store, read_trust_store};

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
