//! Tests of the program `ostler-sim`.
#![allow(clippy::unwrap_used)]

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

/// As with `ostler-sim --explain | head`.
#[test]
fn explain_ends_without_a_message_when_its_reader_ends_early() {
    let mut story = Command::new(env!("CARGO_BIN_EXE_ostler-sim"))
        .args(["--seed", "1", "--explain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(story.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("ostler-sim --seed 1 "), "{first}");
    let mut complaint = String::new();
    story.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    story.wait().unwrap();
    assert_eq!(complaint, "");
}
