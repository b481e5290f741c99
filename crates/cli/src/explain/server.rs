//! `ostler explain server`: what is wrong with an ensemble now, in sentences, with the way out.

mod observed;

use super::admin_access::AdminAccess;
use crate::admin_http::AdminClient;
use clap::Args;
use observed::observe;
use ostler_explain::ensemble::{Finding, Gravity, Observed, Verdict, findings, verdict};
use serde_json::json;
use std::{process::ExitCode, thread};

/// Say what is wrong with an ensemble now, and what to do
///
/// Asks the HTTP admin server of each member. Exit codes: 0 nothing was found, 1 something was, 2 no server answered.
#[derive(Args)]
#[command(
    after_help = "Example: ostler explain server --admin http://host1:8080,http://host2:8080,http://host3:8080"
)]
pub(super) struct ServerArgs {
    /// Print the findings as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AdminAccess,
}

/// The exit code if no server answered.
const NOBODY: u8 = 2;

impl ServerArgs {
    pub(super) fn run(self) -> ExitCode {
        let client = match self.access.client() {
            Ok(client) => client,
            Err(error) => {
                eprintln!("ostler explain: {error}");
                return ExitCode::from(NOBODY);
            }
        };
        let all = ask_all(&client, &self.access.admin);
        let found = findings(&all);
        let verdict = verdict(&all, &found);
        if self.json {
            println!("{}", answer(&all, &found, &verdict));
        } else {
            print(&all, &found, &verdict);
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
            Observed { url: server.clone(), id: None, answer }
        });
        joined.collect()
    })
}

/// The answer for programs. A finding's `text` is both of its sentences.
fn answer(all: &[Observed], found: &[Finding], verdict: &Verdict) -> serde_json::Value {
    let finding = |of: &Finding| {
        let (gravity, sentence, way_out, servers) = (of.gravity, &of.sentence, &of.way_out, &of.servers);
        json!({ "gravity": gravity, "text": of.text(), "sentence": sentence, "way_out": way_out, "servers": servers })
    };
    let found: Vec<_> = found.iter().map(finding).collect();
    json!({ "servers": all, "findings": found, "verdict": verdict })
}

fn print(all: &[Observed], found: &[Finding], verdict: &Verdict) {
    for observed in all {
        match &observed.answer {
            Ok(server) => println!("{}: {}", observed.url, server.headline()),
            Err(problem) => println!("{}: {problem}", observed.url),
        }
    }
    println!("\n{}", verdict.sentence);
    if found.is_empty() {
        println!("Nothing is wrong that these servers know of.");
    }
    for finding in found {
        println!("{}: {}", finding.gravity.name(), finding.text());
    }
}
