//! Load by Ostler's own client and its mutex.

use client_load::{DATA, Outcome, Plan, ROOT, SESSION_TIMEOUT, Task, Work, measure};
use ostler_client::{Client, Error};
use ostler_recipes::lock::InterProcessMutex;

enum Turn {
    Get(Client, String),
    Set(Client, String),
    Lock(InterProcessMutex),
    Drop(InterProcessMutex),
}

impl Task for Turn {
    async fn once(&mut self) -> Outcome {
        match self {
            Turn::Get(client, path) => {
                client.get_data(path).await?;
            }
            Turn::Set(client, path) => {
                client.set_data(path, &DATA).await?;
            }
            Turn::Lock(mutex) => mutex.acquire().await?.release().await?,
            Turn::Drop(mutex) => drop(mutex.acquire().await?),
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let plan = Plan::from_arguments();
    let mut turns = Vec::new();
    if let Work::Lock | Work::Drop = plan.work {
        for _ in 0..plan.count {
            let mutex = InterProcessMutex::new(&connect(&plan).await?, &plan.lock());
            turns.push(if let Work::Lock = plan.work { Turn::Lock(mutex) } else { Turn::Drop(mutex) });
        }
    } else {
        let client = connect(&plan).await?;
        client.create(ROOT, b"").or_set_data().await?;
        for path in plan.paths() {
            client.create(&path, &DATA).or_set_data().await?;
            let client = client.clone();
            turns.push(match plan.work {
                Work::Set => Turn::Set(client, path),
                _ => Turn::Get(client, path),
            });
        }
    }
    measure(&plan, turns).await
}

async fn connect(plan: &Plan) -> Result<Client, Error> {
    Client::builder(&plan.server).session_timeout(SESSION_TIMEOUT).connect().await
}
