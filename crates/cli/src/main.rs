//! `ostler`: one program, a subcommand for each thing to do.

mod admin_http;
mod backup;
mod bench;
mod certs;
mod check;
mod ensemble;
mod entrypoint;
mod explain;
mod inspect;
mod krb5_conf;
mod manual;
mod resize;
mod restore;
mod server;
mod shell;
mod systemd;
mod testserver;
mod tls_options;

use clap::{CommandFactory, Parser, Subcommand};
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
    Entrypoint(entrypoint::EntrypointArgs),
    Resize(resize::ResizeArgs),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
    Backup(backup::BackupArgs),
    Restore(Box<restore::RestoreArgs>),
    Inspect(inspect::InspectArgs),
    Testserver(testserver::TestserverArgs),
}

fn main() -> ExitCode {
    krb5_conf::take_from_jvm_flags();
    run(Cli::parse_from(shell::modernized(std::env::args_os())).command)
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Server(args) => server::run(&args),
        Command::Shell(args) => shell::run(*args),
        Command::Ensemble(args) => ensemble::run(&args),
        Command::Bench(bench) => bench.run(),
        Command::Explain(explain) => explain.run(),
        Command::Certs(args) => certs::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Entrypoint(args) => {
            let commands = Cli::command();
            let names: Vec<String> =
                commands.get_subcommands().map(|command| command.get_name().into()).collect();
            match entrypoint::prepare(args, &names) {
                Ok(line) => run(Cli::parse_from(shell::modernized(line.into_iter())).command),
                Err(code) => code,
            }
        }
        Command::Resize(args) => resize::run(&args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::man(&args, Cli::command()),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Testserver(args) => testserver::run(&args),
    }
}
