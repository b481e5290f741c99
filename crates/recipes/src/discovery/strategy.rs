//! Strategies that choose one of several instances.

use crate::discovery::ServiceInstance;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use uuid::Uuid;

/// Chooses one of several instances.
pub trait ProviderStrategy<P>: Send + Sync {
    /// One of `instances`, which are in the order of their ids; `None` if there are none.
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>]) -> Option<Arc<ServiceInstance<P>>>;
}

/// Chooses one instance after the other. Curator's `RoundRobinStrategy`.
#[derive(Debug, Default)]
pub struct RoundRobin {
    next: AtomicUsize,
}

impl<P> ProviderStrategy<P> for RoundRobin
where
    P: Send + Sync,
{
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>]) -> Option<Arc<ServiceInstance<P>>> {
        let at = self.next.fetch_add(1, Relaxed).checked_rem(instances.len())?;
        instances.get(at).cloned()
    }
}

/// Chooses a random instance. Curator's `RandomStrategy`.
#[derive(Debug)]
pub struct Random {
    random: Mutex<SplitMix64>,
}

impl Default for Random {
    fn default() -> Self {
        Random::seeded(Uuid::new_v4().as_u64_pair().0)
    }
}

impl Random {
    /// Random choices from this seed, which can be repeated.
    pub fn seeded(seed: u64) -> Random {
        Random { random: Mutex::new(SplitMix64::seed_from_u64(seed)) }
    }
}

impl<P> ProviderStrategy<P> for Random
where
    P: Send + Sync,
{
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>]) -> Option<Arc<ServiceInstance<P>>> {
        let chance = self.random.lock().unwrap_or_else(PoisonError::into_inner).next_u64();
        let at = usize::try_from(chance.checked_rem(instances.len() as u64)?).ok()?;
        instances.get(at).cloned()
    }
}

/// Chooses the same instance as long as it exists; then another one by another strategy. Curator's `StickyStrategy`.
#[derive(Debug, Default)]
pub struct Sticky<S> {
    other: S,
    id: Mutex<Option<String>>,
}

impl<S> Sticky<S> {
    /// Chooses a new instance by `other`.
    pub fn new(other: S) -> Sticky<S> {
        Sticky { other, id: Mutex::new(None) }
    }
}

impl<P, S> ProviderStrategy<P> for Sticky<S>
where
    S: ProviderStrategy<P>,
{
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>]) -> Option<Arc<ServiceInstance<P>>> {
        let mut id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        let same = instances.iter().find(|instance| id.as_ref() == Some(&instance.id));
        let chosen = same.cloned().or_else(|| self.other.choose(instances));
        *id = chosen.as_ref().map(|instance| instance.id.clone());
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instances(ids: &str) -> Vec<Arc<ServiceInstance<()>>> {
        let instance = |id: char| {
            let instance = ServiceInstance::new("s", "h", 1);
            Arc::new(ServiceInstance { id: id.to_string(), ..instance })
        };
        ids.chars().map(instance).collect()
    }

    fn chosen(strategy: &impl ProviderStrategy<()>, sets: &[&str]) -> String {
        let choose =
            |ids: &&str| strategy.choose(&instances(ids)).map_or("-".to_owned(), |one| one.id.clone());
        sets.iter().map(choose).collect()
    }

    #[test]
    fn strategies_choose_in_turn_the_same_or_at_random() {
        assert_eq!(chosen(&RoundRobin::default(), &["abc", "abc", "abc", "abc", "", "ab"]), "abca-b");
        let sticky = Sticky::new(RoundRobin::default());
        assert_eq!(chosen(&sticky, &["abc", "abc", "xabc", "bc", "abc", "", "ab"]), "aaacc-b");
        let random = chosen(&Random::seeded(1), &["ab"; 40]);
        assert!(random.contains('a') && random.contains('b'));
        assert_eq!(chosen(&Random::default(), &["", "a"]), "-a");
    }
}
