//! The real programs that the interop step meets: fetching them is mostly waiting, which can go on beside other steps.

use crate::program::{Runner, is_installed};
use std::{
    path::Path,
    process::{Child, Command},
};

/// Waited for at the end, so that nothing goes on behind the caller's back.
pub(crate) struct Fetching(Option<Child>);

/// Begins to fetch them, where that can be done. The step itself does it again, waits for this one, and says what is
/// missing; so nothing is reported here.
pub(crate) fn fetch(checkout: &Path) -> Fetching {
    let begin =
        || Runner::new(checkout, "peers").start(Command::new("python3").arg("interop/peers/get")).ok();
    Fetching(is_installed("python3").then(begin).flatten())
}

impl Drop for Fetching {
    fn drop(&mut self) {
        if let Some(get) = &mut self.0 {
            let _ = get.wait();
        }
    }
}
