//! Load by the crate `zookeeper-client`, and by its lock, of which one cannot wait until it is released.

use client_load::{DATA, Failure, Outcome, Plan, ROOT, SESSION_TIMEOUT, Task, Work, measure};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, LockOptions, LockPrefix};

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
const CONTAINER: CreateOptions<'static> = CreateMode::Container.with_acls(Acls::anyone_all());

enum Turn {
    Get(Client, String),
    Set(Client, String),
    /// With the lock's path.
    Drop(Client, String),
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
            Turn::Drop(client, lock) => {
                let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(CONTAINER)?;
                drop(client.lock(LockPrefix::new_curator(lock, "lock-")?, &[], options).await?);
            }
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let plan = Plan::from_arguments();
    let mut turns = Vec::new();
    if let Work::Drop = plan.work {
        for _ in 0..plan.count {
            turns.push(Turn::Drop(connect(&plan).await?, plan.lock()));
        }
        return measure(&plan, turns).await;
    }
    let client = connect(&plan).await?;
    provide(&client, ROOT).await?;
    for path in plan.paths() {
        provide(&client, &path).await?;
        let client = client.clone();
        turns.push(match plan.work {
            Work::Get => Turn::Get(client, path),
            Work::Set => Turn::Set(client, path),
            Work::Lock | Work::Drop => {
                return Err(Failure::from("this client's lock is released in the background"));
            }
        });
    }
    measure(&plan, turns).await
}

async fn connect(plan: &Plan) -> Result<Client, Error> {
    Client::connector().with_session_timeout(SESSION_TIMEOUT).connect(&plan.server).await
}

async fn provide(client: &Client, path: &str) -> Result<(), Error> {
    match client.create(path, &DATA, &PERSISTENT).await {
        Err(Error::NodeExists) => client.set_data(path, &DATA, None).await.map(drop),
        made => made.map(drop),
    }
}
