//! Items that are left alone for a while.

use crate::until_answered::wait_after_refusals;
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use tokio::time::Instant;

/// Items about which a server has refused something, so that the rest does not have to wait for them.
#[derive(Debug, Default)]
pub(crate) struct SetAside(HashMap<String, Refused>);

#[derive(Debug)]
struct Refused {
    times: u32,
    until: Instant,
}

impl SetAside {
    /// For how long more an item is to be left; `None` if it can be looked at.
    pub(crate) fn left(&self, name: &str) -> Option<Duration> {
        let left = self.0.get(name)?.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// It was refused, perhaps once more.
    pub(crate) fn add(&mut self, name: String) {
        let now = Instant::now();
        let refused = self.0.entry(name).or_insert(Refused { times: 0, until: now });
        refused.times = refused.times.saturating_add(1);
        refused.until = now + wait_after_refusals(refused.times);
    }

    /// Forgets all that are not in the queue any more.
    pub(crate) fn retain(&mut self, names: &[String]) {
        if !self.0.is_empty() {
            let there: HashSet<&str> = names.iter().map(String::as_str).collect();
            self.0.retain(|name, _| there.contains(name.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn item_refused_again_is_left_for_longer() {
        let (mut aside, bad) = (SetAside::default(), || "bad".to_owned());
        assert_eq!(aside.left("bad"), None);
        aside.add(bad());
        let first = aside.left("bad").unwrap();
        tokio::time::advance(first).await;
        assert_eq!(aside.left("bad"), None);
        for _ in 0..20 {
            aside.add(bad());
        }
        assert!(aside.left("bad").unwrap() > first);
        aside.retain(&[bad()]);
        assert!(aside.left("bad").is_some());
        aside.retain(&["good".to_owned()]);
        assert_eq!(aside.left("bad"), None);
    }
}
