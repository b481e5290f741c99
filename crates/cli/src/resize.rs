//! `ostler resize`: makes an ensemble of numbered servers larger or smaller, as when a StatefulSet is scaled.

use clap::Args;
use ostler_client::{Client, Error};
use ostler_proto::{error::ErrorCode, id::ServerId, membership::Membership};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};
use thiserror::Error as ThisError;
use tokio::runtime::Builder;

/// Add or remove members until an ensemble has the servers 1 to N.
///
/// A server that is added follows already, as an observer of its own. One that is removed loses its vote before it is
/// stopped. All this is a `reconfig`, so the servers need reconfigEnabled=true. If OSTLER_SUPER_PASSWORD is set, it is
/// the password of the super user. Exit codes: 0 the ensemble is as wanted, 1 it is not.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler resize zk:2181 --to 5 --server 'zk-%.zk-headless:2888:3888;2181'")]
pub(crate) struct ResizeArgs {
    /// Servers of the ensemble, as for clients.
    #[arg(value_name = "HOST:PORT,...")]
    servers: String,
    /// The number of servers. Those with a larger id are removed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=255))]
    to: i64,
    /// The line of a new server. Each % in it stands for the id less one, the number of a pod.
    #[arg(long, value_name = "HOST:PORT:PORT;PORT")]
    server: String,
    /// Only remove members: what comes before pods are stopped.
    #[arg(long)]
    remove_only: bool,
    /// Seconds in which new servers have to follow.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    patience: u64,
}

/// The variable with the password of the super user.
const PASSWORD: &str = "OSTLER_SUPER_PASSWORD";
/// The time between two attempts.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, ThisError)]
enum ResizeError {
    #[error("{0}")]
    Client(#[from] Error),
    #[error("the server's configuration makes no sense: {0}")]
    Configuration(String),
    #[error(
        "the server is not a member of an ensemble; start it with standaloneEnabled=false and server.N lines"
    )]
    Standalone,
    #[error("{action}: not done after {seconds} s: {last}")]
    NotInTime { action: String, seconds: u64, last: String },
    #[error("threads cannot be started: {0}")]
    Threads(std::io::Error),
}

/// One reconfig.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Remove(Vec<i64>),
    Add { id: i64, line: String },
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Remove(ids) => write!(f, "remove {}", joined(ids)),
            Step::Add { line, .. } => write!(f, "add {line}"),
        }
    }
}

fn joined(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The next reconfig; `None` if the ensemble is as wanted. New servers come one by one, so that each is safe before the
/// next one counts.
fn next_step(now: &Membership, args: &ResizeArgs) -> Option<Step> {
    let above: Vec<i64> = now.servers.keys().map(|id| id.0).filter(|id| *id > args.to).collect();
    if !above.is_empty() {
        return Some(Step::Remove(above));
    }
    let missing = (1..=args.to).find(|id| !now.servers.contains_key(&ServerId(*id)));
    let id = missing.filter(|_| !args.remove_only)?;
    let line = args.server.replace('%', &(id - 1).to_string());
    Some(Step::Add { id, line: format!("server.{id}={line}") })
}

/// Whether a later attempt may succeed: the new servers do not follow yet, or the leader is being replaced.
fn may_pass(error: &Error) -> bool {
    match error.code() {
        Some(code) => [ErrorCode::NewConfigNoQuorum, ErrorCode::ReconfigInProgress, ErrorCode::BadVersion]
            .contains(&code),
        None => !error.is_closed(),
    }
}

/// Runs until the ensemble is as wanted.
pub(crate) fn run(args: &ResizeArgs) -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(ResizeError::Threads);
    match runtime.and_then(|runtime| runtime.block_on(resize(args))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ostler: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn resize(args: &ResizeArgs) -> Result<(), ResizeError> {
    let until = Instant::now() + Duration::from_secs(args.patience);
    let mut builder = Client::builder(&args.servers);
    if let Ok(password) = std::env::var(PASSWORD) {
        builder = builder.auth("digest", format!("super:{password}"));
    }
    let client = builder.connect().await?;
    loop {
        let now = members(&client).await?;
        let Some(step) = next_step(&now, args) else {
            println!("members: {}", joined(&now.servers.keys().map(|id| id.0).collect::<Vec<_>>()));
            client.close().await;
            return Ok(());
        };
        // A change by somebody else meanwhile is noticed.
        let version = i64::try_from(now.version).unwrap_or(-1);
        let done = match &step {
            Step::Remove(ids) => client.reconfig().leaving(&joined(ids)).config_version(version).await,
            Step::Add { line, .. } => client.reconfig().joining(line).config_version(version).await,
        };
        match done {
            Ok(_) => println!("{step}"),
            Err(error) if may_pass(&error) && Instant::now() < until => {
                eprintln!("{step}: {error}; again in {} s", AGAIN_AFTER.as_secs());
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            Err(error) if may_pass(&error) => {
                let (action, seconds) = (step.to_string(), args.patience);
                return Err(ResizeError::NotInTime { action, seconds, last: error.to_string() });
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn members(client: &Client) -> Result<Membership, ResizeError> {
    let (data, _) = client.get_config().await?;
    if data.trim_ascii().is_empty() {
        return Err(ResizeError::Standalone);
    }
    Membership::parse(&String::from_utf8_lossy(&data))
        .map_err(|error| ResizeError::Configuration(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(members: &[i64], to: i64, remove_only: bool) -> Option<String> {
        let lines: Vec<String> = members.iter().map(|id| format!("server.{id}=h{id}:1:2;3")).collect();
        let now = Membership::parse(&lines.join("\n")).unwrap();
        let args = ResizeArgs {
            servers: String::new(),
            to,
            server: "zk-%.zk:2888:3888;2181".into(),
            remove_only,
            patience: 1,
        };
        next_step(&now, &args).map(|step| step.to_string())
    }

    #[test]
    fn members_above_the_number_go_before_others_come() {
        for (members, to, remove_only, expected) in [
            (&[1, 2, 3][..], 3, false, None),
            (&[1, 2, 3, 4, 5], 3, false, Some("remove 4,5")),
            (&[1, 2, 3, 4, 5], 3, true, Some("remove 4,5")),
            (&[1, 2, 3], 5, false, Some("add server.4=zk-3.zk:2888:3888;2181")),
            (&[1, 2, 3], 5, true, None),
            (&[1, 3, 7], 3, false, Some("remove 7")),
            (&[1, 3], 3, false, Some("add server.2=zk-1.zk:2888:3888;2181")),
        ] {
            assert_eq!(step(members, to, remove_only).as_deref(), expected, "{members:?} to {to}");
        }
    }
}
