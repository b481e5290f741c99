//! The real programs that the interop step meets: fetching them is mostly waiting, which can go on beside other steps.

use crate::program::is_installed;
use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

/// Waited for at the end, so that nothing goes on behind the caller's back.
pub(crate) struct Fetching(Option<Child>);

/// Begins to fetch them, where that can be done. The step itself does it again, waits for this one, and says what is
/// missing; so nothing is reported here.
pub(crate) fn fetch(checkout: &Path) -> Fetching {
    let begun = || {
        let logs = checkout.join("target/xtask");
        fs::create_dir_all(&logs).ok()?;
        let log = File::create(logs.join("peers.log")).ok()?;
        let mut get = Command::new("python3");
        get.arg("interop/peers/get").current_dir(checkout).stdin(Stdio::null());
        get.stdout(log.try_clone().ok()?).stderr(log).spawn().ok()
    };
    Fetching(is_installed("python3").then(begun).flatten())
}

impl Drop for Fetching {
    fn drop(&mut self) {
        if let Some(get) = &mut self.0 {
            let _ = get.wait();
        }
    }
}
