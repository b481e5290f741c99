#![no_main]

use ostler_storage::snapshot::Compression;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ostler_fuzz_checks::snapshot_file::check(bytes, Compression::Gz));
