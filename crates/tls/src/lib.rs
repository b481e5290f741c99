//! Key stores, trust stores and certificates, as ZooKeeper's servers and clients have them.

pub mod config;
pub mod crl;
pub mod detect;
pub mod files;
pub mod names;
pub mod principal;
pub mod settings;
pub mod store;
pub mod trust;
pub mod verify;
