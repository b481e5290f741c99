//! The Rust of docs/ is compiled with this crate's tests of documentation. `interop/book/run.py` looks for each page here.

#[doc = include_str!("../../../docs/get-started/rust.md")]
mod get_started {}
