//! Many servers' lines in one order.
//!
//! Servers count milliseconds, each from a start of its own, so two of them may disagree by one or two about what came
//! first. Where one line is known to be the cause of another it goes first.

use ostler_proto::id::{Epoch, ServerId};

/// Something that other lines can be a consequence of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// A server told the others whom it backs: server, candidate, round.
    Told(ServerId, Option<ServerId>, u64),
    /// The leader found itself elected.
    Elected(ServerId),
    /// A server promised an epoch.
    Promised(Epoch),
    /// An epoch began.
    Begun(Epoch),
    /// The leader committed its first transaction.
    Commit(Epoch),
}

/// One line of one server.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// On the common clock.
    pub(super) at: i64,
    pub(super) server: ServerId,
    pub(super) text: String,
    pub(super) mark: Option<Mark>,
    /// The event that must have happened before, if a server reports it.
    pub(super) after: Option<Mark>,
}

impl Line {
    fn causes(&self, other: &Line) -> bool {
        self.mark.is_some() && self.mark == other.after
    }
}

/// Each list is one server's, in its order. `slack` is how far apart two servers' clocks can be.
pub(super) fn merge(mut lists: Vec<Vec<Line>>, slack: i64) -> Vec<Line> {
    // A line that was moved may move others.
    while delay_for_causes(&mut lists, slack) {}
    let mut heads = vec![0; lists.len()];
    let mut merged: Vec<Line> = Vec::new();
    loop {
        let first = |n: &usize| lists[*n].get(heads[*n]);
        let earliest = (0..lists.len()).filter_map(|n| first(&n)).map(|line| line.at).min();
        let Some(earliest) = earliest else { return merged };
        let due: Vec<usize> =
            (0..lists.len()).filter(|n| first(n).is_some_and(|line| line.at == earliest)).collect();
        let waits = |n: &usize| {
            let line = &lists[*n][heads[*n]];
            let told = merged.iter().any(|other| other.causes(line));
            let mut pending = due.iter().flat_map(|other| &lists[*other][heads[*other]..]);
            !told && pending.any(|other| other.at == earliest && other.causes(line))
        };
        let next = due.iter().copied().find(|n| !waits(n)).unwrap_or(due[0]);
        merged.push(lists[next][heads[next]].clone());
        heads[next] += 1;
    }
}

/// Moves lines behind their causes, if those are within reach. Whether anything moved.
fn delay_for_causes(lists: &mut [Vec<Line>], slack: i64) -> bool {
    let mut moved = false;
    for of in 0..lists.len() {
        for at in 0..lists[of].len() {
            let line = &lists[of][at];
            let causes = lists.iter().flatten().filter(|other| other.causes(line));
            let cause = causes.map(|other| other.at).min().filter(|cause| *cause <= line.at + slack);
            let before = if at > 0 { lists[of][at - 1].at } else { i64::MIN };
            let earliest = before.max(cause.unwrap_or(i64::MIN));
            if line.at < earliest {
                lists[of][at].at = earliest;
                moved = true;
            }
        }
    }
    moved
}
