//! `ostler explain`: what servers did, in words, from their own records.

mod admin_access;
mod ask;
mod server;
mod session;

use clap::{Args, Subcommand};
use ostler_explain::{
    file::{AskedServer, ElectionsFile},
    occasion::occasions,
    page::Page,
    witness::Witness,
};
use std::process::ExitCode;

/// Explain what is wrong with an ensemble, how servers elected their leader, or why a session ended
#[derive(Args)]
#[command(
    after_help = "Examples: ostler explain election host1:2181,host2:2181,host3:2181\n          ostler explain session \
                  0x100a3f77c2d10004 --admin http://host1:8080,http://host2:8080,http://host3:8080"
)]
pub(crate) struct Explain {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    Election(ElectionArgs),
    Server(server::ServerArgs),
    Session(session::SessionArgs),
}

/// How the leader came to lead: who voted for whom and why, and how long it took
///
/// Asks every server for its record of the last elections and puts the records together. The servers must allow the
/// word elec: 4lw.commands.whitelist=srvr,elec in zoo.cfg.
#[derive(Args)]
#[command(after_help = "Example: ostler explain election host1:2181,host2:2181,host3:2181 --last 3")]
struct ElectionArgs {
    /// The client addresses of the ensemble, joined by commas; a server that does not answer is left out.
    #[arg(required = true, value_delimiter = ',', value_name = "HOST:PORT,...")]
    servers: Vec<String>,
    /// How many elections to explain, the latest at the end.
    #[arg(long, default_value_t = 1, value_name = "N")]
    last: usize,
    /// Print the result as one JSON object, the latest election first. The console opens it by drag and drop.
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Asks, and prints what came out.
    pub(crate) fn run(self) -> ExitCode {
        // A reader that has seen enough, as `head`, ends this quietly.
        sigpipe::reset();
        match self.subject {
            Subject::Election(args) => args.run(),
            Subject::Server(args) => args.run(),
            Subject::Session(args) => args.run(),
        }
    }
}

impl ElectionArgs {
    fn run(self) -> ExitCode {
        let args = self;
        let (witnesses, silent) = ask::all(&args.servers);
        let occasions = occasions(&witnesses);
        if args.json {
            let silent = silent.iter().map(|(server, why)| {
                let reason = format!("{server} {why}.");
                AskedServer::silent(None, server.clone(), "silent", reason)
            });
            let asked = (&*witnesses, silent.collect());
            let file = ElectionsFile::new(&occasions, args.last, asked, ask::wall_ms());
            println!("{}", serde_json::json!(file));
        } else {
            let last = &occasions[occasions.len().saturating_sub(args.last)..];
            print!("{}", Page::new(last, &witnesses, &silent));
        }
        if occasions.is_empty() {
            eprintln!("ostler explain: {}", nothing(&witnesses));
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }
}

fn nothing(witnesses: &[Witness]) -> &'static str {
    if witnesses.is_empty() {
        "no server answered, so there is nothing to explain"
    } else {
        "the servers that answered have taken part in no election"
    }
}
