//! Transaction records: as they stand in logs, and later between servers.

use ostler_proto::txn::TxnRecord;

/// Decoded, encoded and decoded again, a record is the same. Only characters outside the basic plane change,
/// once: they are written as Java writes them, and Java itself does not read those bytes back.
pub fn check(bytes: &[u8]) {
    let Ok(record) = TxnRecord::read(bytes) else { return };
    let mut first = Vec::new();
    record.write(&mut first);
    let again = TxnRecord::read(&first).expect("what was written is read");
    let has_astral = bytes.iter().any(|byte| *byte >= 0xF0);
    assert!(again == record || has_astral, "{record:?} became {again:?}");

    let mut second = Vec::new();
    again.write(&mut second);
    assert_eq!(first, second);
}
