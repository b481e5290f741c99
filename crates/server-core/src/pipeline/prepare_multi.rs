//! Prepares a multi: all of its operations or none.

use crate::{pipeline::prepare::Preparer, work};
use alloc::vec::Vec;
use ostler_proto::{error::ErrorCode, request::MultiOp, txn::Txn};

impl Preparer<'_> {
    /// Prepares each operation after those before it. If one fails, none of them stays in the pending changes; the
    /// transaction still has the operations before the failure, as upstream logs it so.
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
