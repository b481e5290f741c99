//! Numbers drawn in blocks.

use crate::counter::{AtomicNumber, CounterError, DistributedAtomicNumber, Result};
use std::num::NonZeroU16;

/// Draws numbers in blocks, and gives them out one by one. Curator's `CachedAtomicLong` and `CachedAtomicInteger`.
///
/// No number is given out twice, in any process. The rest of a block is lost when this is dropped.
#[derive(Debug)]
pub struct CachedAtomicNumber<N> {
    number: DistributedAtomicNumber<N>,
    /// The size of a block.
    factor: N,
    /// The rest of the block: the next number, and the first number after the block.
    left: Option<(N, N)>,
}

impl<N: AtomicNumber + PartialEq + From<bool> + From<u16>> CachedAtomicNumber<N> {
    /// Draws `factor` numbers at a time.
    pub fn new(number: DistributedAtomicNumber<N>, factor: NonZeroU16) -> CachedAtomicNumber<N> {
        CachedAtomicNumber { number, factor: N::from(factor.get()), left: None }
    }

    /// The next number, counted from 0 in a new znode.
    ///
    /// # Errors
    /// [`CounterError::Contended`] if no new block could be drawn because other writers were faster. Those of
    /// [`add`](DistributedAtomicNumber::add). After connection loss a block may be lost.
    pub async fn next(&mut self) -> Result<N> {
        let (next, end) = match self.left.take() {
            Some(left) => left,
            None => {
                let drawn = self.number.add(self.factor).await?;
                if !drawn.succeeded {
                    return Err(CounterError::Contended { path: self.number.path().into() });
                }
                (drawn.before, drawn.after)
            }
        };
        let following = next.plus(N::from(true));
        self.left = (following != end).then_some((following, end));
        Ok(next)
    }
}
