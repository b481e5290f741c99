//! `ostler-sim`: runs ensembles on virtual time, from seeds.

mod campaign;
#[cfg(feature = "planted-bugs")]
mod planted;
mod worker;

use campaign::Campaign;
use clap::Parser;
use ostler_sim::{FaultKind, Plan, Scene, parse_skip};
use std::{collections::BTreeSet, process::ExitCode};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run ensembles with their clients on virtual time, with faults, and check what they promise
///
/// Each seed decides everything that happens in a run, so a seed that fails fails every time. The shortest run that
/// still fails is searched for, and printed as the command that repeats it; --explain tells its story.
#[derive(Parser)]
#[command(
    name = "ostler-sim",
    version,
    after_help = "Example: ostler-sim --seed 1 --seeds 100 --servers 3,5"
)]
struct SimArgs {
    /// The first seed.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How many seeds to run, counted up from the first.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seeds: u64,
    /// How many servers vote; several numbers are used in turn by the seeds [default: mostly 3 or 5, chosen by the seed].
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = clap::value_parser!(u8).range(1..=7))]
    servers: Vec<u8>,
    /// How long each run lasts, in virtual seconds.
    #[arg(long, default_value_t = 60, value_name = "S", value_parser = clap::value_parser!(u64).range(Plan::SECONDS_MIN..))]
    seconds: u64,
    /// How many observers there are [default: decided by the seed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=4))]
    observers: Option<u8>,
    /// How many clients there are [default: decided by the seed].
    #[arg(long, value_name = "N")]
    clients: Option<u8>,
    /// How many clients compete for one lock [default: decided by the seed].
    #[arg(long, value_name = "N")]
    contenders: Option<u8>,
    /// Kinds of faults to leave out.
    #[arg(long, value_delimiter = ',', value_name = "KIND,...", value_parser = fault_kind)]
    without: Vec<FaultKind>,
    /// Numbers of single faults to leave out.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "N,N-N,...", value_parser = parse_skip)]
    skip: BTreeSet<u32>,
    /// Run a fixed course of events instead of random faults; the seed decides the times of the events.
    #[arg(long, value_name = "NAME", value_parser = scene)]
    scene: Option<Scene>,
    /// How many processes run seeds [default: the number of processors].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print everything that happens in the run of one seed.
    #[arg(long)]
    explain: bool,
    /// Plant a bug and see whether a seed finds it; `list` prints the names of the bugs.
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "BUG")]
    plant: Option<String>,
    /// Plant every bug in turn, and print how many seeds it took to find each.
    #[cfg(feature = "planted-bugs")]
    #[arg(long)]
    planted: bool,
    /// Run what comes in at the standard input; this is how the program runs itself
    #[arg(long, hide = true)]
    worker: bool,
}

fn fault_kind(name: &str) -> Result<FaultKind, String> {
    let names = || FaultKind::ALL.map(FaultKind::name).join(", ");
    FaultKind::named(name).ok_or_else(|| format!("the kinds are {}", names()))
}

fn scene(name: &str) -> Result<Scene, String> {
    let names = || Scene::ALL.map(Scene::name).join(", ");
    Scene::named(name).ok_or_else(|| format!("the scenes are {}", names()))
}

fn main() -> ExitCode {
    SimArgs::parse().run()
}

impl SimArgs {
    fn run(&self) -> ExitCode {
        #[cfg(feature = "planted-bugs")]
        if self.planted || self.plant.is_some() {
            return planted::run(self);
        }
        self.run_seeds()
    }

    fn run_seeds(&self) -> ExitCode {
        if self.worker {
            return worker::serve();
        }
        if self.explain {
            return worker::explain(&self.plan(self.seed));
        }
        Campaign::new(self).run()
    }

    fn plan(&self, seed: u64) -> Plan {
        if let Some(scene) = self.scene {
            return Plan::of_scene(scene, seed);
        }
        let voters = match &self.servers[..] {
            [] => Plan::usual_voters(seed),
            sizes => sizes[seed as usize % sizes.len()],
        };
        let plan = Plan::new(seed, voters, self.seconds);
        Plan {
            observers: self.observers.unwrap_or(plan.observers),
            clients: self.clients.unwrap_or(plan.clients),
            contenders: self.contenders.unwrap_or(plan.contenders),
            without: self.without.iter().copied().collect(),
            skip: self.skip.clone(),
            ..plan
        }
    }

    fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.jobs.unwrap_or_else(processors).max(1)
    }
}
