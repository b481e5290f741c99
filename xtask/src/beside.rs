//! Begins work of later steps beside earlier ones: downloads mostly wait, and tests that wait leave time for a build.

use crate::program::{Runner, cargo_program, is_installed};
use std::{
    path::Path,
    process::{Child, Command},
};

/// A program that runs beside the steps. When this is dropped it waits for the program's end.
pub(crate) struct BackgroundProgram(Option<Child>);

impl Drop for BackgroundProgram {
    fn drop(&mut self) {
        if let Some(program) = &mut self.0 {
            let _ = program.wait();
        }
    }
}

/// Begins to fetch the programs that the interop step needs. Errors are not reported: the step fetches them again,
/// waits for this program, and reports what is missing.
pub(crate) fn fetch_peers(checkout: &Path) -> BackgroundProgram {
    let begin =
        || Runner::new(checkout, "peers").start(Command::new("python3").arg("interop/peers/get")).ok();
    BackgroundProgram(is_installed("python3").then(begin).flatten())
}

/// Begins to build the release of a package with low priority. Errors are not reported: the steps build it again, wait
/// for this build, and report what is wrong.
pub(crate) fn build_release(checkout: &Path, package: &str) -> BackgroundProgram {
    let begin = || {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(cargo_program()).args(release(package));
        Runner::new(checkout, &format!("release-{package}")).start(&mut command).ok()
    };
    BackgroundProgram(is_installed("nice").then(begin).flatten())
}

/// The cargo arguments that build the release of one package. Packages are built one by one: built together, `ostler`
/// would get the features of tokio that only the simulator needs.
pub(crate) fn release(package: &str) -> [&str; 5] {
    ["build", "--locked", "--release", "--package", package]
}
