//! Searches for a smaller run that still fails: fewer faults, clients and servers, and less time.

use crate::plan::{Plan, PlannedFault};
use std::collections::BTreeSet;

/// Makes a failing plan smaller as long as it still fails, with at most `runs` runs. A scene is returned as it is.
pub fn shrink(plan: &Plan, runs: usize, fails: impl FnMut(&Plan) -> bool) -> Plan {
    if plan.scene.is_some() {
        return plan.clone();
    }
    let mut shrinker = Shrinker { best: plan.clone(), left: runs, fails };
    shrinker.faults();
    shrinker.smaller();
    shrinker.faults();
    shrinker.shorter();
    shrinker.best
}

struct Shrinker<F> {
    best: Plan,
    left: usize,
    fails: F,
}

impl<F: FnMut(&Plan) -> bool> Shrinker<F> {
    /// Runs a plan, and keeps it as the best one if it fails, too.
    fn attempt(&mut self, plan: Plan) -> bool {
        if plan == self.best || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&plan);
        if fails {
            self.best = plan;
        }
        fails
    }

    fn happening(&self) -> Vec<PlannedFault> {
        self.best.schedule().into_iter().filter(|of| self.best.happens(of)).collect()
    }

    /// Leaves out faults: halves, then quarters, down to single ones.
    fn faults(&mut self) {
        let mut size = self.happening().len().div_ceil(2);
        while size > 0 && self.left > 0 {
            let numbers: Vec<u32> = self.happening().iter().map(|of| of.number).collect();
            // The last faults are the most likely to be needless.
            for part in numbers.rchunks(size) {
                let skip: BTreeSet<u32> = self.best.skip.iter().chain(part).copied().collect();
                self.attempt(Plan { skip, ..self.best.clone() });
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    fn smaller(&mut self) {
        for clients in 0..self.best.clients {
            if self.attempt(Plan { clients, ..self.best.clone() }) {
                break;
            }
        }
        for contenders in 0..self.best.contenders {
            if self.attempt(Plan { contenders, ..self.best.clone() }) {
                break;
            }
        }
        for observers in 0..self.best.observers {
            if self.attempt(Plan { observers, ..self.best.clone() }) {
                break;
            }
        }
        for voters in [1, 3, 5].into_iter().filter(|voters| *voters < self.best.voters).collect::<Vec<_>>() {
            if self.attempt(Plan { voters, ..self.best.clone() }) {
                break;
            }
        }
    }

    /// Shortens the run to the time of the last fault and the end, or a little more.
    fn shorter(&mut self) {
        let needed = |plan: &Plan| {
            let last = plan.schedule().into_iter().filter(|of| plan.happens(of)).map(|of| of.number).max();
            let ms: u64 = plan
                .schedule()
                .into_iter()
                .filter(|of| last.is_some_and(|last| of.number <= last))
                .map(|of| of.pause)
                .sum();
            plan.seconds - (plan.faults_end().saturating_sub(ms)) / 1_000
        };
        let seconds = needed(&self.best);
        for seconds in [seconds, seconds + 3, seconds + 10].map(|seconds| seconds.max(Plan::SECONDS_MIN)) {
            if seconds < self.best.seconds && self.attempt(Plan { seconds, ..self.best.clone() }) {
                break;
            }
        }
        // Skipped faults may be after the new end.
        let planned = self.best.schedule().len() as u32;
        self.best.skip.retain(|number| *number < planned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan that fails as long as two of its faults happen and there is a client.
    #[test]
    fn only_the_faults_and_clients_that_a_failure_needs_are_left() {
        let plan = Plan::new(5, 5, 60);
        let schedule = plan.schedule();
        let needed = [&schedule[3], &schedule[9]];
        let mut runs = 0;
        let small = shrink(&plan, 200, |plan| {
            runs += 1;
            plan.clients > 0 && needed.iter().all(|of| plan.schedule().contains(of) && plan.happens(of))
        });
        let left: Vec<PlannedFault> = small.schedule().into_iter().filter(|of| small.happens(of)).collect();
        assert_eq!(left, needed.map(|of| *of));
        assert_eq!((small.clients, small.observers, small.voters), (1, 0, 1));
        assert!(small.seconds < 60 && runs <= 200, "{small}");
    }
}
