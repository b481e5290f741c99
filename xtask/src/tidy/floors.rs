//! Checks the floors of ARCHITECTURE.md: a crate imports only crates of floors below its own.

use crate::metadata::{Metadata, Package};
use anyhow::{Context, Result};
use std::fs;

/// A crate and its floor.
struct Room {
    name: &'static str,
    floor: u8,
    /// Whether the crate is `no_std`, so that it cannot use a socket, a file, a clock or a thread.
    no_std: bool,
}

const fn room(name: &'static str, floor: u8, no_std: bool) -> Room {
    Room { name, floor, no_std }
}

const ROOMS: [Room; 16] = [
    room("ostler", 7, false),
    room("ostler-sim", 6, false),
    room("ostler-recipes", 5, false),
    room("ostler-testkit", 5, false),
    room("ostler-fuzz-checks", 5, false),
    room("ostler-server", 4, false),
    room("ostler-client", 4, false),
    room("ostler-console", 4, false),
    room("ostler-persistence", 3, false),
    room("ostler-server-core", 2, true),
    room("ostler-client-core", 2, true),
    room("ostler-tree", 1, true),
    room("ostler-zab", 1, true),
    room("ostler-storage", 1, false),
    room("ostler-proto", 0, true),
    // Imports no crate of the workspace, and none imports it.
    room("xtask", 0, false),
];

/// The only allowed import on the same floor.
const SIDEWAYS: (&str, &str) = ("ostler-server", "ostler-console");

/// Crates below this floor do not use sockets and tasks.
const FLOOR_OF_IO: u8 = 4;
const IO_CRATES: [&str; 4] = ["tokio", "tokio-util", "mio", "socket2"];

pub(crate) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.member) {
        let Some(room) = find(&package.name) else {
            let name = &package.name;
            complaints.push(format!(
                "{name} has no floor; give it one in xtask/src/tidy/floors.rs and ARCHITECTURE.md"
            ));
            continue;
        };
        complaints.extend(imports(package, room));
        if room.no_std && !is_no_std(package)? {
            complaints.push(format!("{}: src/lib.rs must say #![no_std]", room.name));
        }
    }
    Ok(complaints)
}

fn find(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

fn imports(package: &Package, room: &Room) -> Vec<String> {
    let forbidden = package.imports.iter().filter_map(|import| {
        if IO_CRATES.contains(&&**import) && room.floor < FLOOR_OF_IO && room.name != "xtask" {
            return Some(format!("{} is below the floor of sockets, but imports {import}", room.name));
        }
        let other = find(import)?;
        let allowed = other.floor < room.floor || (room.name, other.name) == SIDEWAYS;
        (!allowed).then(|| {
            format!(
                "{} (floor {}) imports {import} (floor {}): only floors below",
                room.name, room.floor, other.floor
            )
        })
    });
    forbidden.collect()
}

fn is_no_std(package: &Package) -> Result<bool> {
    let path = package.folder.join("src/lib.rs");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().any(|line| line == "#![no_std]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, imports_of_it: &[&str]) -> usize {
        let package = Package {
            name: name.to_owned(),
            version: String::new(),
            licence: None,
            folder: Default::default(),
            member: true,
            imports: imports_of_it.iter().map(|name| (*name).to_owned()).collect(),
        };
        imports(&package, find(name).unwrap()).len()
    }

    #[test]
    fn imports_go_down() {
        assert_eq!(
            complaints("ostler-server-core", &["ostler-tree", "ostler-zab", "ostler-proto", "sha1"]),
            0
        );
        assert_eq!(complaints("ostler-tree", &["ostler-zab"]), 1);
        assert_eq!(complaints("ostler-proto", &["ostler-tree"]), 1);
        assert_eq!(complaints("ostler-server", &["ostler-console", "ostler-client", "tokio"]), 1);
        assert_eq!(complaints("ostler-storage", &["tokio"]), 1);
        assert_eq!(complaints("xtask", &["ostler"]), 1);
    }
}
