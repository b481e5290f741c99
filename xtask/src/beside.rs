//! Begins work of later steps beside earlier ones: downloads mostly wait, and tests that wait leave time for a build.

use crate::{
    program::{Runner, cargo_program, is_installed},
    steps::PROGRAM,
};
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
pub(crate) fn build_release(checkout: &Path, package: &'static str) -> BackgroundProgram {
    let begin = || {
        let mut command = Command::new(cargo_program());
        command.args(release(checkout, package));
        Runner::new(checkout, &format!("release-{package}")).nice().start(&mut command).ok()
    };
    BackgroundProgram(is_installed("nice").then(begin).flatten())
}

/// The cargo arguments that build the release of one package. Packages are built one by one: built together, `ostler`
/// would get the features of tokio that only the simulator needs. Where MIT Kerberos can be had, `ostler` has it.
pub(crate) fn release(checkout: &Path, package: &'static str) -> Vec<&'static str> {
    let mut arguments = vec!["build", "--locked", "--release", "--package", package];
    if package == PROGRAM && has_kerberos(checkout) {
        arguments.push("--features=gssapi");
    }
    arguments
}

/// Whether MIT Kerberos is there to build with. It is installed if this machine lets us: that takes half a minute, once.
pub(crate) fn has_kerberos(checkout: &Path) -> bool {
    let mut command = Command::new("python3");
    command.args(["interop/peers/get", "gssapi"]);
    is_installed("python3")
        && Runner::new(checkout, "gssapi").run(&mut command).is_ok_and(|finished| finished.success)
}
