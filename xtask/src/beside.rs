//! What later steps need and can be had beside earlier ones: fetching is mostly waiting, and tests that wait leave time
//! to build in.

use crate::program::{Runner, cargo_program, is_installed};
use std::{
    path::Path,
    process::{Child, Command},
};

/// Waited for at the end, so that nothing goes on behind the caller's back.
pub(crate) struct Beside(Option<Child>);

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(program) = &mut self.0 {
            let _ = program.wait();
        }
    }
}

/// Begins to fetch the programs that the interop step meets, where that can be done. The step itself does it again,
/// waits for this one, and says what is missing; so nothing is reported here.
pub(crate) fn fetch_peers(checkout: &Path) -> Beside {
    let begin =
        || Runner::new(checkout, "peers").start(Command::new("python3").arg("interop/peers/get")).ok();
    Beside(is_installed("python3").then(begin).flatten())
}

/// Begins to build the release, with what the processors have left. The steps build it again, wait for this one, and
/// say what is wrong.
pub(crate) fn build_release(checkout: &Path) -> Beside {
    let begin = || {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(cargo_program()).args(RELEASE);
        Runner::new(checkout, "release").start(&mut command).ok()
    };
    Beside(is_installed("nice").then(begin).flatten())
}

/// How cargo builds what the steps run.
pub(crate) const RELEASE: [&str; 5] = ["build", "--locked", "--release", "--package", "ostler"];
