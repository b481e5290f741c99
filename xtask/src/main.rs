//! Tasks of this checkout: `cargo xtask test` sets up and runs every test, `cargo xtask mutants` tests the tests,
//! `cargo xtask api` lists the public API.

mod api;
mod beside;
mod features;
mod licences;
mod metadata;
mod mutants;
mod outcome;
mod package;
mod program;
mod published;
mod python;
mod readme;
mod steps;
mod tally;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::{env, path::PathBuf, process::ExitCode};

/// Tasks of this checkout.
#[derive(Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Test(test::TestArgs),
    Mutants(mutants::MutantsArgs),
    Api(api::ApiArgs),
}

fn main() -> ExitCode {
    let Cli { task } = Cli::parse();
    let done = match task {
        Task::Test(args) => test::run(&args, &checkout()),
        Task::Mutants(args) => mutants::run(&args, &checkout()),
        Task::Api(args) => api::run(&args, &checkout()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The checkout for which cargo runs this program. Without cargo: the checkout in which it was built.
fn checkout() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(xtask).join("..").components().collect()
}
