//! The numbers of strings in parts, added up over blocks of parts. With them the place of a string, and the string at a
//! place, are found in few steps among millions.

use super::Part;
use alloc::vec::Vec;

/// The parts of a block.
pub(super) const BLOCK: usize = 256;

/// The number of strings in each whole block. The parts behind the last whole block have no sum, so a short list needs
/// no memory here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sums(Vec<u32>);

fn count(parts: &[Part]) -> u32 {
    parts.iter().map(|part| u32::from(part.count)).sum()
}

impl Sums {
    pub(super) const fn new() -> Sums {
        Sums(Vec::new())
    }

    /// The part at `at` has become longer or shorter by this number of strings.
    pub(super) fn add(&mut self, at: usize, strings: i32) {
        if let Some(sum) = self.0.get_mut(at / BLOCK) {
            *sum = sum.saturating_add_signed(strings);
        }
    }

    /// The part at `at` is new. Each part behind it has moved by one.
    pub(super) fn insert(&mut self, parts: &[Part], at: usize) {
        let first = at / BLOCK;
        for block in first..self.0.len() {
            let comes = if block == first { at } else { block * BLOCK };
            self.0[block] += u32::from(parts[comes].count);
            self.0[block] -= u32::from(parts[(block + 1) * BLOCK].count);
        }
        if parts.len().is_multiple_of(BLOCK) {
            self.0.push(count(&parts[parts.len() - BLOCK..]));
        }
    }

    /// A part with this number of strings was at `at`. Each part behind it has moved by one.
    pub(super) fn remove(&mut self, parts: &[Part], (at, strings): (usize, u16)) {
        self.0.truncate(parts.len() / BLOCK);
        let first = at / BLOCK;
        for block in first..self.0.len() {
            let goes = if block == first { strings } else { parts[block * BLOCK - 1].count };
            self.0[block] -= u32::from(goes);
            self.0[block] += u32::from(parts[(block + 1) * BLOCK - 1].count);
        }
    }

    /// The number of strings before the part at `at`.
    pub(super) fn before(&self, parts: &[Part], at: usize) -> usize {
        let blocks = at / BLOCK;
        let sum: usize = self.0.iter().take(blocks).map(|sum| *sum as usize).sum();
        sum + count(&parts[blocks * BLOCK..at]) as usize
    }

    /// The part that has the string at a place, and the place within the part.
    pub(super) fn part_at(&self, parts: &[Part], mut place: usize) -> (usize, usize) {
        let mut at = 0;
        for sum in &self.0 {
            let Some(rest) = place.checked_sub(*sum as usize) else { break };
            (at, place) = (at + BLOCK, rest);
        }
        while let Some(rest) = parts.get(at).and_then(|part| place.checked_sub(part.count.into())) {
            (at, place) = (at + 1, rest);
        }
        (at, place)
    }

    /// The sums of these parts.
    #[cfg(test)]
    pub(super) fn of(parts: &[Part]) -> Sums {
        Sums(parts.chunks_exact(BLOCK).map(count).collect())
    }
}
