#![no_main]

use ostler_storage::snapshot::Compression;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ostler_fuzz::snapshot_file::check(bytes, Compression::Gz));
