//! Sums of bytes and znodes, level by level.

/// The sums of a path: the znode and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) znodes: u64,
}

/// Adds up znodes that come parents first. The sum of a znode is complete when all znodes below it have come.
#[derive(Debug)]
pub(crate) struct Tally {
    depth_max: usize,
    /// One sum for each level, beginning with the first znode's.
    open: Vec<Sum>,
}

impl Tally {
    /// Gives the sums of znodes that are at most this number of levels below the first.
    pub(crate) fn new(depth_max: usize) -> Tally {
        Tally { depth_max, open: Vec::new() }
    }

    /// Adds a znode. Returns the sums that are complete now.
    pub(crate) fn add(&mut self, path: &str, depth: usize, bytes: u64) -> Vec<Sum> {
        let done = self.close(depth);
        self.open.push(Sum { path: path.to_owned(), bytes, znodes: 1 });
        done
    }

    /// Returns the other sums at the end.
    pub(crate) fn end(mut self) -> Vec<Sum> {
        self.close(0)
    }

    fn close(&mut self, depth: usize) -> Vec<Sum> {
        let mut done = Vec::new();
        while self.open.len() > depth {
            let Some(sum) = self.open.pop() else { break };
            if let Some(above) = self.open.last_mut() {
                above.bytes += sum.bytes;
                above.znodes += sum.znodes;
            }
            if self.open.len() <= self.depth_max {
                done.push(sum);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_contain_all_znodes_below() {
        let mut tally = Tally::new(1);
        let mut sums = Vec::new();
        for (path, depth, bytes) in
            [("/", 0, 1), ("/a", 1, 10), ("/a/b", 2, 100), ("/a/b/c", 3, 0), ("/d", 1, 5)]
        {
            sums.extend(tally.add(path, depth, bytes));
        }
        sums.extend(tally.end());
        let seen: Vec<(&str, u64, u64)> =
            sums.iter().map(|sum| (&*sum.path, sum.bytes, sum.znodes)).collect();
        assert_eq!(seen, [("/a", 110, 3), ("/d", 5, 1), ("/", 116, 5)]);
    }
}
