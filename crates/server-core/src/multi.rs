//! multi: all of its operations or none.

use crate::{prepare::Preparer, work};
use alloc::vec::Vec;
use ostler_proto::{error::ErrorCode, request::MultiOp, txn::Txn};

impl Preparer<'_> {
    /// Prepares each operation on top of those before it. After a failure nothing of it stays in the
    /// overlay; the transaction keeps what stood before the failure, since upstream logs it so.
    pub(crate) fn multi<'a>(&mut self, ops: &[MultiOp<'a>]) -> Txn<'a> {
        self.overlay.begin();
        let mut failed = false;
        let mut txns = Vec::with_capacity(ops.len());
        for op in ops {
            if failed {
                txns.push(Txn::Error(ErrorCode::RuntimeInconsistency.code()));
                continue;
            }
            self.work.add(work::WRITE);
            let prepared = match op {
                MultiOp::Create(create) => self.create(create),
                MultiOp::Delete(delete) => self.delete(delete),
                MultiOp::SetData(set) => self.set_data(set),
                MultiOp::Check(check) => self.check_op(check),
            };
            txns.push(prepared.unwrap_or_else(|error| {
                failed = true;
                Txn::Error(error.code())
            }));
        }
        if failed {
            self.overlay.roll_back();
        } else {
            self.overlay.keep();
        }
        Txn::Multi(txns)
    }
}
