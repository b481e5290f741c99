//! Passes every seed to the check of its target, so that a broken promise or a check that does not build is found
//! without libFuzzer.

use ostler_fuzz_checks::{
    client_session, config_file, connection, election_door, election_records, epoch_file, frames, handshake,
    jaas, log_files, logins, member_words, membership, quorum_packets, reply, request, sasl, snapshot_file,
    stores, transaction, tree_stream, vote, words,
};
use ostler_storage::snapshot::Compression;
use std::{collections::BTreeSet, fs, path::Path};

type Check = fn(&[u8]);

const CHECKS: [(&str, Check); 25] = [
    ("client_session", client_session::check),
    ("connect", handshake::check),
    ("connection", connection::check),
    ("election_door", election_door::check),
    ("election_records", election_records::check),
    ("epoch_file", epoch_file::check),
    ("four_letter_words", words::check),
    ("frames", frames::check),
    ("jaas", jaas::check),
    ("log_reader", log_files::check),
    ("logins", logins::check),
    ("member_words", member_words::check),
    ("membership", membership::check),
    ("quorum_packets", quorum_packets::check),
    ("reply", reply::check),
    ("request", request::check),
    ("sasl_tokens", sasl::check),
    ("snapshot_gz", |bytes| snapshot_file::check(bytes, Compression::Gz)),
    ("snapshot_plain", |bytes| snapshot_file::check(bytes, Compression::None)),
    ("snapshot_snappy", |bytes| snapshot_file::check(bytes, Compression::Snappy)),
    ("stores", stores::check),
    ("tree_stream", tree_stream::check),
    ("txn_record", transaction::check),
    ("vote", vote::check),
    ("zoo_cfg", config_file::check),
];

#[test]
fn every_seed_passes_the_check_of_its_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (target, check) in CHECKS {
        let files: Vec<_> = fs::read_dir(seeds.join(target)).unwrap().map(|entry| entry.unwrap()).collect();
        assert!(!files.is_empty(), "{target} has no seed");
        for file in files {
            println!("{}", file.path().display());
            check(&fs::read(file.path()).unwrap());
        }
    }
}

#[test]
fn every_target_is_here_and_has_a_check() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files = fs::read_dir(targets).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.to_str().unwrap().replace(".rs", "")).collect();
    assert_eq!(files, CHECKS.map(|(target, _)| target.to_owned()).into());
}
