//! Three sites that agree, three of which one is against it, and three of which one is silent. `cargo run -p
//! ostler-recipes --example two_phase_commit` runs it against a server of its own; with a connect string, against that.

use ostler_client::{Client, Result};
use ostler_recipes::two_phase_commit::{Transaction, Vote};
use ostler_testkit::TestServer;
use std::time::Duration;
use tokio::time::timeout;

const SITES: [&str; 3] = ["east", "north", "west"];

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let (coordinator, sites) = (Client::connect(&servers).await?, Client::connect(&servers).await?);
    let (yes, no) = (Some(Vote::Commit), Some(Vote::Abort));
    for (number, votes) in [[yes, yes, yes], [yes, no, yes], [yes, yes, None]].into_iter().enumerate() {
        let path = format!("/examples-transaction-{number}");
        let transaction = Transaction::begin(&coordinator, &path, &SITES).await?;
        let mut waiting = Vec::new();
        for (site, vote) in SITES.into_iter().zip(votes) {
            let transaction = Transaction::join(&sites, &path);
            waiting.push(tokio::spawn(async move { site_of(&transaction, site, vote).await }));
        }
        let decision = match timeout(Duration::from_millis(500), transaction.announce()).await {
            Ok(decision) => decision?,
            Err(_) => {
                println!("{number}: a site is silent: abort for all that have not voted");
                transaction.abort_undecided().await?;
                transaction.announce().await?
            }
        };
        for site in waiting {
            site.await??;
        }
        println!("{number}: the decision is to {decision}");
        transaction.end().await?;
    }
    Ok(())
}

/// A site: votes, unless `vote` is `None`, and waits for the announced decision.
async fn site_of(transaction: &Transaction, site: &str, vote: Option<Vote>) -> Result<()> {
    if let Some(vote) = vote {
        transaction.vote(site, vote).await?;
    }
    println!(
        "   {site} votes {}, result {}",
        vote.map_or("-".to_owned(), |vote| vote.to_string()),
        transaction.announced().await?
    );
    Ok(())
}
