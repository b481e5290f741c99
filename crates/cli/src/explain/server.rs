//! `ostler explain server`: what is wrong with an ensemble now, in sentences, with the way out.

mod findings;
mod observed;

use crate::{
    admin_http::{AdminClient, TlsFilesError},
    tls_options::{TlsOptions, UnreadableFile},
};
use clap::Args;
use findings::{Finding, Gravity, findings};
use observed::{Observed, observe};
use std::{process::ExitCode, thread};

/// Say what is wrong with an ensemble now, and what to do
///
/// Asks the HTTP admin server of each member. Exit codes: 0 nothing was found, 1 something was, 2 no server answered.
#[derive(Args)]
#[command(
    after_help = "Example: ostler explain server --admin http://host1:8080,http://host2:8080,http://host3:8080"
)]
pub(super) struct ServerArgs {
    /// The admin servers of all members, joined by commas.
    #[arg(long, value_delimiter = ',', value_name = "URL,...", default_value = "http://127.0.0.1:8080")]
    admin: Vec<String>,
    /// Print the findings as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tls: TlsOptions,
}

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error("cannot read {}: {}", .0.path.display(), .0.cause)]
    File(UnreadableFile),
    #[error("{0}")]
    Tls(#[from] TlsFilesError),
}

/// The exit code if no server answered.
const NOBODY: u8 = 2;

impl ServerArgs {
    pub(super) fn run(self) -> ExitCode {
        let client = self.tls.read().map_err(ExplainError::File);
        let client = client.and_then(|files| AdminClient::new(files.as_ref()).map_err(ExplainError::Tls));
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                eprintln!("ostler explain: {error}");
                return ExitCode::from(NOBODY);
            }
        };
        let all = ask_all(&client, &self.admin);
        let found = findings(&all);
        if self.json {
            println!("{}", serde_json::json!({ "servers": all, "findings": found }));
        } else {
            print(&all, &found);
        }
        if all.iter().all(|observed| observed.answer.is_err()) {
            return ExitCode::from(NOBODY);
        }
        if found.iter().any(|finding| finding.gravity != Gravity::Note) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// Asks all servers at once.
fn ask_all(client: &AdminClient, servers: &[String]) -> Vec<Observed> {
    thread::scope(|scope| {
        let asked: Vec<_> =
            servers.iter().map(|server| (server, scope.spawn(move || observe(client, server)))).collect();
        let joined = asked.into_iter().map(|(server, asking)| {
            let answer = asking.join().unwrap_or_else(|_| Err("was not asked".into()));
            Observed { url: server.clone(), answer }
        });
        joined.collect()
    })
}

fn print(all: &[Observed], found: &[Finding]) {
    for observed in all {
        match &observed.answer {
            Ok(server) => println!("{}: {}", observed.url, server.headline()),
            Err(problem) => println!("{}: {problem}", observed.url),
        }
    }
    println!();
    if found.is_empty() {
        println!("Nothing is wrong that these servers know of.");
    }
    for finding in found {
        println!("{}: {}", finding.gravity.name(), finding.text);
    }
}
