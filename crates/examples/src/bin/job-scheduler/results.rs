//! The results in PostgreSQL, fenced by the token of the leader that writes them.
//!
//! The table `leader` has one row: the largest token that the database has seen. Each write is one statement that
//! locks this row, compares the token and inserts the result. It is one statement, and no transaction of several,
//! because a leader that is paused between two statements would keep the row locked, and the next leader waiting.

use ostler_recipes::fencing::Token;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, Statement, types::ToSql};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS leader (
        one   boolean PRIMARY KEY DEFAULT true CHECK (one),
        token bigint NOT NULL,
        name  text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS results (
        written bigint GENERATED ALWAYS AS IDENTITY,
        job     bigint PRIMARY KEY,
        token   bigint NOT NULL,
        leader  text NOT NULL,
        result  text NOT NULL
    )";

/// Instances that start at the same time would create the same tables, which PostgreSQL refuses to one of them.
const ALONE: &str = "SELECT pg_advisory_xact_lock(7270)";

const TAKE_OVER: &str = "
    INSERT INTO leader (token, name) VALUES ($1, $2)
    ON CONFLICT (one) DO UPDATE SET token = $1, name = $2 WHERE leader.token <= $1";

const WRITE: &str = "
    WITH fence AS (UPDATE leader SET token = $1 WHERE token <= $1 RETURNING token)
    INSERT INTO results (job, token, leader, result) SELECT $2, $1, $3, $4 FROM fence";

const NEXT_JOB: &str = "SELECT coalesce(max(job), 0) + 1 FROM results";

/// How long the database may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the database has taken a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The token is the largest so far.
    Written,
    /// The database has seen a larger token. Nothing was written.
    Refused,
}

/// The table of the results, as one instance writes it.
pub(crate) struct Results {
    database: Client,
    name: String,
    write: Statement,
}

/// The reason for which there is no answer of the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
    #[error("PostgreSQL has not answered within {0:?}")]
    NoAnswerWithin(Duration),
}

type Result<T> = std::result::Result<T, DatabaseError>;

impl Results {
    /// Connects, and creates the tables if they are missing.
    pub(crate) async fn open(database: &str, name: &str) -> Result<Results> {
        let (database, connection) = in_time(tokio_postgres::connect(database, NoTls)).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::error!("PostgreSQL: {error}");
            }
        });
        // Without notices about tables that are there.
        in_time(database.batch_execute("SET client_min_messages = warning")).await?;
        in_time(database.batch_execute(&format!("BEGIN; {ALONE}; {TABLES}; COMMIT"))).await?;
        let write = in_time(database.prepare(WRITE)).await?;
        Ok(Results { database, name: name.to_owned(), write })
    }

    /// Lets the database refuse the leaders before this one.
    pub(crate) async fn take_over(&self, token: Token) -> Result<Outcome> {
        Ok(outcome(in_time(self.database.execute(TAKE_OVER, &[&token.as_i64(), &self.name])).await?))
    }

    /// The first job without a result.
    pub(crate) async fn next_job(&self) -> Result<i64> {
        Ok(in_time(self.database.query_one(NEXT_JOB, &[])).await?.get(0))
    }

    /// Writes a result, unless a later leader has taken over.
    pub(crate) async fn write(&self, token: Token, job: i64, result: &str) -> Result<Outcome> {
        let values: [&(dyn ToSql + Sync); 4] = [&token.as_i64(), &job, &self.name, &result];
        Ok(outcome(in_time(self.database.execute(&self.write, &values)).await?))
    }
}

/// Waits for an answer, but not for ever. A write that is not waited for any more may still be done, which does no harm:
/// it has its token.
async fn in_time<T>(
    answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    let answer = timeout(PATIENCE, answer).await.map_err(|_| DatabaseError::NoAnswerWithin(PATIENCE))?;
    Ok(answer?)
}

fn outcome(rows: u64) -> Outcome {
    if rows == 0 { Outcome::Refused } else { Outcome::Written }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test(start_paused = true)]
    async fn database_that_does_not_answer_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let database = format!("host=127.0.0.1 port={} user=postgres", silent.local_addr().unwrap().port());
        let opened = timeout(10 * PATIENCE, Results::open(&database, "a")).await.unwrap();
        assert!(matches!(opened.err(), Some(DatabaseError::NoAnswerWithin(_))));
    }
}
