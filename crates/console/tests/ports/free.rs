//! Ports for servers that name them in their files.

use std::{
    net::{Ipv4Addr, TcpListener},
    process,
    sync::atomic::{AtomicU16, Ordering::Relaxed},
};

/// Below the ports that the system gives to connections: those could take one before its server listens.
const FIRST: u16 = 10_000;
const LAST: u16 = 20_000;

/// Ports that were free just now, and that no other test of this process gets.
pub(crate) fn free<const N: usize>() -> [u16; N] {
    [(); N].map(|()| next())
}

fn next() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Another process begins elsewhere.
    let own = (process::id() % 100) as u16 * 100;
    loop {
        let port = FIRST + (own + TAKEN.fetch_add(1, Relaxed)) % (LAST - FIRST);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
