//! `ostler`: one program, a subcommand for each thing to do.

mod bench;
mod certs;
mod check;
mod ensemble;
mod explain;
mod inspect;
mod krb5_conf;
mod server;
mod shell;
mod tls_options;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A coordination service that speaks ZooKeeper's protocol.
#[derive(Parser)]
#[command(
    name = "ostler",
    version,
    arg_required_else_help = true,
    after_help = "Example: ostler server conf/zoo.cfg\n`ostler COMMAND --help` has an example of each command."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Server(server::ServerArgs),
    Shell(Box<shell::ShellArgs>),
    Ensemble(ensemble::EnsembleArgs),
    Bench(bench::Bench),
    Explain(explain::Explain),
    Certs(certs::CertsArgs),
    Check(check::CheckArgs),
    Inspect(inspect::InspectArgs),
}

fn main() -> ExitCode {
    krb5_conf::take_from_jvm_flags();
    match Cli::parse_from(shell::modernized(std::env::args_os())).command {
        Command::Server(args) => server::run(&args),
        Command::Shell(args) => shell::run(*args),
        Command::Ensemble(args) => ensemble::run(&args),
        Command::Bench(bench) => bench.run(),
        Command::Explain(explain) => explain.run(),
        Command::Certs(args) => certs::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Inspect(args) => inspect::run(&args),
    }
}
