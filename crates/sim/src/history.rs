//! The transactions that a server has, in compact form: the counters of an epoch have no gaps, so the last one is
//! enough.

use ostler_proto::id::{Epoch, Zxid};
use std::collections::BTreeMap;

/// The last counter of each epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History(BTreeMap<Epoch, u32>);

impl History {
    pub(crate) fn push(&mut self, zxid: Zxid) {
        let last = self.0.last_key_value().map_or(Epoch::default(), |(epoch, _)| *epoch);
        assert!(zxid.epoch() >= last, "{zxid} comes after {last:?}");
        let count = self.0.entry(zxid.epoch()).or_default();
        assert_eq!(zxid.counter(), *count + 1, "{zxid} leaves a gap");
        *count += 1;
    }

    pub(crate) fn cut(&mut self, to: Zxid) {
        self.0.retain(|epoch, _| *epoch <= to.epoch());
        if let Some(count) = self.0.get_mut(&to.epoch()) {
            *count = (*count).min(to.counter());
        }
        self.0.retain(|_, count| *count > 0);
    }

    pub(crate) fn upto(&self, zxid: Zxid) -> History {
        let mut history = self.clone();
        history.cut(zxid);
        history
    }

    pub(crate) fn last(&self) -> Zxid {
        self.0.last_key_value().map_or(Zxid::ZERO, |(epoch, count)| Zxid::new(*epoch, *count))
    }

    /// Whether both have the same transactions up to a zxid.
    pub(crate) fn agrees(&self, other: &History, upto: Zxid) -> bool {
        self.counts_upto(upto).eq(other.counts_upto(upto))
    }

    fn counts_upto(&self, upto: Zxid) -> impl Iterator<Item = (Epoch, u32)> {
        let earlier = self.0.range(..upto.epoch()).map(|(epoch, count)| (*epoch, *count));
        let same = self.0.get(&upto.epoch()).map(|count| (upto.epoch(), (*count).min(upto.counter())));
        earlier.chain(same).filter(|(_, count)| *count > 0)
    }

    /// The highest counter of all epochs.
    pub(crate) fn longest_epoch(&self) -> u32 {
        self.0.values().copied().max().unwrap_or(0)
    }

    /// The transactions that both have.
    pub(crate) fn common(&self, other: &History) -> History {
        let both = self.0.iter().filter_map(|(epoch, count)| Some((*epoch, *count.min(other.0.get(epoch)?))));
        History(both.collect())
    }

    /// Whether this has every transaction of the other.
    pub(crate) fn has_all_of(&self, other: &History) -> bool {
        other.0.iter().all(|(epoch, count)| self.0.get(epoch).is_some_and(|own| own >= count))
    }

    pub(crate) fn has(&self, zxid: Zxid) -> bool {
        self.0.get(&zxid.epoch()).is_some_and(|count| zxid.counter() <= *count)
    }

    pub(crate) fn after(&self, zxid: Zxid) -> impl Iterator<Item = Zxid> {
        let epochs = self.0.range(zxid.epoch()..);
        let all = epochs.flat_map(|(epoch, count)| (1..=*count).map(|n| Zxid::new(*epoch, n)));
        all.filter(move |of| *of > zxid)
    }
}
