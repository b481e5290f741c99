//! The text of limits in the znodes below /zookeeper/quota, and changes of it.

use super::command::Limits;
use ostler_tree::quota::QuotaNumbers;

/// The text as zkCli.sh writes it. Servers of all versions can read it.
pub(crate) fn limits_text(limits: QuotaNumbers) -> String {
    let QuotaNumbers { count, bytes, count_hard, bytes_hard } = limits;
    format!("count={count},bytes={bytes}=;byteHardLimit={bytes_hard};countHardLimit={count_hard}")
}

/// `old`, with the limits of `new` that are set.
pub(crate) fn with(old: QuotaNumbers, new: QuotaNumbers) -> QuotaNumbers {
    let pick = |old, new| if new >= 0 { new } else { old };
    QuotaNumbers {
        count: pick(old.count, new.count),
        bytes: pick(old.bytes, new.bytes),
        count_hard: pick(old.count_hard, new.count_hard),
        bytes_hard: pick(old.bytes_hard, new.bytes_hard),
    }
}

/// The limits without those of `which`.
pub(crate) fn without(old: QuotaNumbers, which: Limits) -> QuotaNumbers {
    let pick = |old, gone| if gone { -1 } else { old };
    QuotaNumbers {
        count: pick(old.count, which.count),
        bytes: pick(old.bytes, which.bytes),
        count_hard: pick(old.count_hard, which.count_hard),
        bytes_hard: pick(old.bytes_hard, which.bytes_hard),
    }
}

/// Warnings about limits below the usage.
pub(crate) fn exceeded(limits: QuotaNumbers, usage: QuotaNumbers) -> Vec<String> {
    let below = |limit: i64, used| limit >= 0 && limit < used;
    let mut said = Vec::new();
    if below(limits.count, usage.count) || below(limits.count_hard, usage.count) {
        said.push(format!(
            "[Warning]: the count quota you create is less than the existing count:{}",
            usage.count
        ));
    }
    if below(limits.bytes, usage.bytes) || below(limits.bytes_hard, usage.bytes) {
        said.push(format!(
            "[Warning]: the bytes quota you create is less than the existing bytes:{}",
            usage.bytes
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_changed_and_removed() {
        let old = QuotaNumbers { count: 4, ..QuotaNumbers::UNSET };
        let new = with(old, QuotaNumbers { bytes_hard: 10, ..QuotaNumbers::UNSET });
        assert_eq!(limits_text(new), "count=4,bytes=-1=;byteHardLimit=10;countHardLimit=-1");
        assert_eq!(QuotaNumbers::parse(limits_text(new).as_bytes()), new);
        let which = Limits { count: true, ..Limits::default() };
        assert_eq!(without(new, which), QuotaNumbers { count: -1, ..new });
    }

    #[test]
    fn limits_below_the_usage_give_warnings() {
        let usage = QuotaNumbers { count: 5, bytes: 5, ..QuotaNumbers::UNSET };
        let limits = QuotaNumbers { count: 5, count_hard: 4, bytes: 6, ..QuotaNumbers::UNSET };
        let said = exceeded(limits, usage);
        assert_eq!(said, ["[Warning]: the count quota you create is less than the existing count:5"]);
        assert_eq!(exceeded(QuotaNumbers::UNSET, usage).len(), 0);
    }
}
