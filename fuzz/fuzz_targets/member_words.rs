#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ostler_fuzz_checks::member_words::check(bytes));
