//! Load by the crate `zookeeper-client`. Of its lock one cannot wait until it is released, so there is no figure for it.

use client_load::{DATA, Failure, Outcome, Plan, ROOT, SESSION_TIMEOUT, Task, Work, measure};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

enum Turn {
    Get(Client, String),
    Set(Client, String),
}

impl Task for Turn {
    async fn once(&mut self) -> Outcome {
        match self {
            Turn::Get(client, path) => {
                client.get_data(path).await?;
            }
            Turn::Set(client, path) => {
                client.set_data(path, &DATA, None).await?;
            }
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let plan = Plan::from_arguments();
    let client = Client::connector().with_session_timeout(SESSION_TIMEOUT).connect(&plan.server).await?;
    provide(&client, ROOT).await?;
    let mut turns = Vec::new();
    for path in plan.paths() {
        provide(&client, &path).await?;
        let client = client.clone();
        turns.push(match plan.work {
            Work::Get => Turn::Get(client, path),
            Work::Set => Turn::Set(client, path),
            Work::Lock => return Err(Failure::from("this client's lock is released in the background")),
        });
    }
    measure(&plan, turns).await
}

async fn provide(client: &Client, path: &str) -> Result<(), Error> {
    match client.create(path, &DATA, &PERSISTENT).await {
        Err(Error::NodeExists) => client.set_data(path, &DATA, None).await.map(drop),
        made => made.map(drop),
    }
}
