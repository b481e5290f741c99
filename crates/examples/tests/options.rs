//! Each program starts, and explains its options. With a test of this kind `cargo test` builds the programs, so the
//! check in interop/examples finds them built.

use std::process::Command;

#[test]
fn each_program_explains_its_options() {
    for program in [
        env!("CARGO_BIN_EXE_job-scheduler"),
        env!("CARGO_BIN_EXE_config-watcher"),
        env!("CARGO_BIN_EXE_greeter"),
        env!("CARGO_BIN_EXE_gateway"),
        env!("CARGO_BIN_EXE_shard-worker"),
        env!("CARGO_BIN_EXE_rate-limited-queue"),
    ] {
        let shown = Command::new(program).arg("--help").output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.status.success() && text.contains("--servers"), "{program}: {text}");
    }
}
