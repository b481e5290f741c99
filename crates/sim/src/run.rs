//! Runs a plan to its end.

use crate::{
    fingerprint::Fingerprint,
    plan::{Plan, RandomStream},
    world::World,
};
use std::collections::BTreeMap;

/// The result of a run in which no promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The hash of all events.
    pub fingerprint: Fingerprint,
    /// The length of the run in virtual ms.
    pub virtual_ms: u64,
    /// How often each thing happened, by its name.
    pub tally: BTreeMap<&'static str, u64>,
}

/// Runs a plan: first its scene or its faults, then a time without faults in which the ensemble must come back. With
/// `explain` every event is printed. Panics if a promise is broken.
pub fn run(plan: &Plan, explain: bool) -> Report {
    let mut world = World::new(plan.chance(RandomStream::World), plan.shape());
    world.traced |= explain;
    world.start_all();
    match plan.scene {
        Some(scene) => scene.play(&mut world),
        None => inject_faults(&mut world, plan),
    }
    world.must_come_back();
    let rest = (plan.seconds * 1_000).saturating_sub(world.elapsed());
    world.run(rest);
    let mut tally = std::mem::take(&mut world.tally);
    tally.insert("epochs", world.reference.epochs() as u64);
    tally.insert("transactions", world.reference.len() as u64);
    Report { fingerprint: world.fingerprint, virtual_ms: world.elapsed(), tally }
}

fn inject_faults(world: &mut World, plan: &Plan) {
    for fault in plan.schedule() {
        world.run(fault.pause);
        if world.elapsed() >= plan.faults_end() {
            break;
        }
        if plan.happens(&fault) {
            world.inject(&fault);
        }
    }
}
