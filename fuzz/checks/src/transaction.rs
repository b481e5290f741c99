//! Fuzzes transaction records, as in logs and between servers.

use ostler_inspect::view::{DataForm, TxnView};
use ostler_proto::txn::TxnRecord;

/// A record that is decoded, encoded and decoded again is the same. `ostler inspect` can show it.
pub fn check(bytes: &[u8]) {
    let Ok(record) = TxnRecord::read(bytes) else { return };
    let shown =
        serde_json::to_vec(&TxnView::of(&record, DataForm::Text)).expect("a view has numbers and strings");
    assert!(shown.len() <= (16 << 10) + 400 * bytes.len(), "{} bytes", shown.len());
    let mut written = Vec::new();
    record.write(&mut written);
    if bytes.iter().all(|byte| *byte < 0xF0) {
        check_again(&written, &record);
    } else {
        // No znode has a path with a character outside the basic plane. If a record has one, it is written as Java
        // writes it, which Java cannot read back. After that it stays the same.
        let record = TxnRecord::read(&written).expect("what was written is read");
        let mut written = Vec::new();
        record.write(&mut written);
        check_again(&written, &record);
    }
}

fn check_again(written: &[u8], record: &TxnRecord<'_>) {
    let again = TxnRecord::read(written).expect("what was written is read");
    assert_eq!(again, *record);
    let mut twice = Vec::new();
    again.write(&mut twice);
    assert_eq!(twice, written);
}
