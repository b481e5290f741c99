//! Checks the floors of ARCHITECTURE.md: a crate imports only crates of floors below its own.

use crate::metadata::{imports, is_member};
use anyhow::{Context, Result};
use cargo_metadata::{Dependency, Metadata, Package};
use std::fs;

/// A crate and its floor.
struct CrateFloor {
    name: &'static str,
    floor: u8,
    /// Whether the crate is `no_std`, so that it cannot use a socket, a file, a clock or a thread.
    no_std: bool,
}

const fn crate_floor(name: &'static str, floor: u8, no_std: bool) -> CrateFloor {
    CrateFloor { name, floor, no_std }
}

const CRATES: [CrateFloor; 24] = [
    crate_floor("ostler", 6, false),
    crate_floor("ostler-examples", 6, false),
    crate_floor("ostler-sim", 6, false),
    crate_floor("ostler-backup", 5, false),
    crate_floor("ostler-console", 5, false),
    crate_floor("ostler-recipes", 5, false),
    crate_floor("ostler-testkit", 5, false),
    crate_floor("ostler-fuzz-checks", 5, false),
    crate_floor("ostler-server", 4, false),
    crate_floor("ostler-client", 4, false),
    crate_floor("ostler-data-dir", 3, false),
    crate_floor("ostler-explain", 3, false),
    crate_floor("ostler-inspect", 3, false),
    crate_floor("ostler-kerberos", 2, false),
    crate_floor("ostler-server-core", 2, true),
    crate_floor("ostler-client-core", 2, true),
    crate_floor("ostler-tree", 1, true),
    crate_floor("ostler-zab", 1, true),
    crate_floor("ostler-sasl", 1, true),
    crate_floor("ostler-storage", 1, false),
    crate_floor("ostler-tls", 1, false),
    crate_floor("ostler-planted", 0, true),
    crate_floor("ostler-proto", 0, true),
    // Imports no crate of the workspace, and none imports it.
    crate_floor("xtask", 0, false),
];

/// Crates below this floor do not use sockets and tasks.
const FLOOR_OF_IO: u8 = 4;
const IO_CRATES: [&str; 4] = ["tokio", "tokio-util", "mio", "socket2"];

/// The feature of tokio with a clock that can be stopped. Only the simulator has it outside of tests.
const STOPPABLE_CLOCK: &str = "test-util";
const SIMULATOR: &str = "ostler-sim";

pub(crate) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for package in metadata.packages.iter().filter(|package| is_member(package)) {
        let name = &*package.name;
        let Some(own) = find(name) else {
            complaints.push(format!(
                "{name} has no floor; give it one in xtask/src/tidy/floors.rs and ARCHITECTURE.md"
            ));
            continue;
        };
        complaints.extend(imports(package).filter_map(|import| complaint_about_import(own, &import.name)));
        let stops_clock = |import: &Dependency| import.features.iter().any(|name| name == STOPPABLE_CLOCK);
        if name != SIMULATOR && imports(package).any(stops_clock) {
            complaints
                .push(format!("{name}: only {SIMULATOR} has tokio's {STOPPABLE_CLOCK} outside of tests"));
        }
        if own.no_std && !is_no_std(package)? {
            complaints.push(format!("{name}: src/lib.rs must say #![no_std]"));
        }
    }
    Ok(complaints)
}

fn find(name: &str) -> Option<&'static CrateFloor> {
    CRATES.iter().find(|own| own.name == name)
}

fn complaint_about_import(own: &CrateFloor, import: &str) -> Option<String> {
    if IO_CRATES.contains(&import) && own.floor < FLOOR_OF_IO && own.name != "xtask" {
        return Some(format!("{} is below the floor of sockets, but imports {import}", own.name));
    }
    let other = find(import)?;
    (other.floor >= own.floor).then(|| {
        format!(
            "{} (floor {}) imports {import} (floor {}): only floors below",
            own.name, own.floor, other.floor
        )
    })
}

fn is_no_std(package: &Package) -> Result<bool> {
    let path = package.manifest_path.with_file_name("src/lib.rs");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(text.lines().any(|line| line == "#![no_std]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, imports: &[&str]) -> usize {
        let own = find(name).unwrap();
        imports.iter().filter_map(|import| complaint_about_import(own, import)).count()
    }

    #[test]
    fn imports_go_down() {
        assert_eq!(
            complaints("ostler-server-core", &["ostler-tree", "ostler-zab", "ostler-proto", "sha1"]),
            0
        );
        assert_eq!(complaints("ostler-tree", &["ostler-zab"]), 1);
        assert_eq!(complaints("ostler-proto", &["ostler-tree"]), 1);
        assert_eq!(complaints("ostler-server", &["ostler-data-dir", "ostler-client", "tokio"]), 1);
        assert_eq!(complaints("ostler-storage", &["tokio"]), 1);
        assert_eq!(complaints("ostler", &["ostler-sim"]), 1);
        assert_eq!(complaints("xtask", &["ostler"]), 1);
    }
}
