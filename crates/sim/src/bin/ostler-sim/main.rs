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

/// Run simulated ensembles with clients and faults on virtual time, and check what the service promises.
///
/// The seed of a run decides everything that happens in it, so a run that fails once fails every time. After a failure
/// a smaller run that still fails is searched, and printed as the command that repeats it; with --explain that command
/// prints all events of the run.
#[derive(Parser)]
#[command(
    name = "ostler-sim",
    version,
    after_help = "Example: ostler-sim --seed 1 --seeds 100 --servers 3,5"
)]
struct SimArgs {
    /// First seed.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Number of seeds to run, counted up from the first.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seeds: u64,
    /// Number of servers that vote; of several numbers, each seed takes the next [default: decided by the seed, mostly
    /// 3 or 5].
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = clap::value_parser!(u8).range(1..=7))]
    servers: Vec<u8>,
    /// Length of each run, in virtual seconds.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(Plan::SECONDS_MIN..))]
    seconds: u64,
    /// Number of observers [default: decided by the seed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=4))]
    observers: Option<u8>,
    /// Number of clients that send random requests [default: decided by the seed].
    #[arg(long, value_name = "N")]
    clients: Option<u8>,
    /// Number of processes that compete for locks and leaderships [default: decided by the seed].
    #[arg(long, value_name = "N")]
    contenders: Option<u8>,
    /// Kinds of faults to leave out, for example kill,power-loss [default: none].
    #[arg(long, value_delimiter = ',', value_name = "KIND,...", value_parser = fault_kind)]
    without: Vec<FaultKind>,
    /// Numbers of single faults to leave out, as --explain prints them [default: none].
    #[arg(long, default_value = "", hide_default_value = true, value_name = "N,N-N,...", value_parser = parse_skip)]
    skip: BTreeSet<u32>,
    /// Scene to play instead of random faults, for example later-epoch; the seed decides the times of its events
    /// [default: random faults].
    #[arg(long, value_name = "NAME", value_parser = scene)]
    scene: Option<Scene>,
    /// Number of processes that run seeds [default: the number of processors].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run only the first seed, and print all its events.
    #[arg(long)]
    explain: bool,
    /// Plant this bug, and search for a run that finds it; `list` prints the names of the bugs.
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "BUG")]
    plant: Option<String>,
    /// Plant every bug in turn, and print a table of the runs that found them.
    #[cfg(feature = "planted-bugs")]
    #[arg(long)]
    planted: bool,
    /// Run the plans that are read from the standard input; the program starts its own worker processes with this.
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
