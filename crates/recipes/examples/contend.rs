//! `contend SERVERS RECIPE,RECIPE... NAME`: takes /contended/RECIPE again and again, and leaves a trace of each turn.
//! The counterpart of `interop/recipes/Contend.java`, for one lock with it; `interop/recipes/contend.py` runs both.
//!
//! Whoever holds alone has an ephemeral znode /held/RECIPE, whoever shares one below /sharing/RECIPE, and every turn is
//! written into /journal/RECIPE: all in one transaction, which is done only if the holder's znode is there. So the
//! server's own history says who held when. A contradiction is printed as a VIOLATION.
//!
//! A contender whose connection is in doubt ends: what it holds goes with its session, all at once.

use ostler_client::{Client, ConnectionState, Error as ClientError, ErrorCode, RetryPolicy};
use ostler_recipes::{
    Error, Result,
    fencing::Fence,
    leader::{LeaderLatch, LeaderSelector, Leadership},
    lock::{InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore, InterProcessSemaphoreMutex},
};
use std::{process::exit, sync::Arc, time::Duration};
use tokio::time::sleep;

const SESSION: Duration = Duration::from_secs(2);
/// Of the semaphore, here and in Contend.java.
const LEASES: usize = 2;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [servers, recipes, name] = &arguments[..] else {
        eprintln!("usage: contend SERVERS RECIPE,RECIPE... NAME");
        exit(2);
    };
    let retry = RetryPolicy::exponential(Duration::from_millis(20), Duration::from_millis(500), 30);
    let client = match Client::builder(servers).session_timeout(SESSION).retry(retry).connect().await {
        Ok(client) => client,
        Err(error) => trouble(&error),
    };
    println!("ready");
    for recipe in recipes.split(',') {
        let contender =
            Contender { client: client.clone(), recipe: recipe.to_owned(), name: name.to_owned() };
        tokio::spawn(async move {
            match contender.contend().await {
                Ok(()) => trouble(&"it has ended"),
                Err(error) => trouble(&error),
            }
        });
    }
    let mut states = client.states();
    while let Some(state) = states.next().await {
        if !matches!(state.state, ConnectionState::Connected) {
            break;
        }
    }
    trouble(&"the connection is in doubt");
}

fn trouble(what: &dyn std::fmt::Display) -> ! {
    println!("trouble: {what}");
    exit(3)
}

fn violation(what: &str) -> ! {
    println!("VIOLATION: {what}");
    exit(1)
}

#[derive(Clone)]
struct Contender {
    client: Client,
    recipe: String,
    name: String,
}

impl Contender {
    async fn contend(&self) -> Result<()> {
        let (client, path) = (&self.client, &*format!("/contended/{}", self.recipe));
        match &*self.recipe {
            "mutex" => self.mutex(&InterProcessMutex::new(client, path)).await,
            "semaphore-mutex" => self.semaphore_mutex(&InterProcessSemaphoreMutex::new(client, path)).await,
            "semaphore" => self.semaphore(&InterProcessSemaphore::new(client, path, LEASES as u32)).await,
            "read-write" => self.read_write(&InterProcessReadWriteLock::new(client, path)).await,
            "latch" => self.latch(path).await,
            "selector" => self.selector(path).await,
            other => trouble(&format!("no recipe {other}")),
        }
    }

    async fn mutex(&self, lock: &InterProcessMutex) -> Result<()> {
        loop {
            let guard = lock.acquire().await?;
            self.turn(guard.fence()).await?;
            guard.release().await?;
        }
    }

    async fn semaphore_mutex(&self, lock: &InterProcessSemaphoreMutex) -> Result<()> {
        loop {
            let guard = lock.acquire().await?;
            self.turn(guard.fence()).await?;
            guard.release().await?;
        }
    }

    async fn semaphore(&self, semaphore: &InterProcessSemaphore) -> Result<()> {
        loop {
            let lease = semaphore.acquire().await?;
            self.share(lease.fence()).await?;
            lease.release().await?;
        }
    }

    async fn read_write(&self, lock: &InterProcessReadWriteLock) -> Result<()> {
        loop {
            let guard = lock.acquire_read().await?;
            self.read(guard.fence()).await?;
            guard.release().await?;

            let guard = lock.acquire_write().await?;
            self.turn(guard.fence()).await?;
            guard.release().await?;

            let guard = lock.acquire_write().await?;
            self.turn(guard.fence()).await?;
            let guard = guard.downgrade().await?;
            self.read(guard.fence()).await?;
            guard.release().await?;
        }
    }

    async fn latch(&self, path: &str) -> Result<()> {
        loop {
            let latch = LeaderLatch::new(&self.client, path, &self.name);
            latch.start();
            self.turn(&latch.wait_for_leadership().await?).await?;
            latch.close().await;
        }
    }

    async fn selector(&self, path: &str) -> Result<()> {
        let contender = Arc::new(self.clone());
        let lead = move |leadership: Leadership| {
            let contender = contender.clone();
            async move {
                if let Err(error) = contender.turn(leadership.fence()).await {
                    trouble(&error);
                }
            }
        };
        let selector =
            LeaderSelector::builder(&self.client, path, lead).id(&self.name).auto_requeue().start();
        selector.wait_for(|_| false).await;
        Ok(())
    }

    /// Holds alone.
    async fn turn(&self, fence: &Fence) -> Result<()> {
        let mark = format!("/held/{}", self.recipe);
        self.mark(fence, &mark, true).await?;
        let readers = self.client.get_children(&format!("/sharing/{}", self.recipe)).await?;
        if !readers.is_empty() {
            violation(&format!("{} holds {} alone, beside {readers:?}", self.name, fence.node()));
        }
        self.pause(fence).await;
        fence.session().delete(&mark).await?;
        Ok(())
    }

    /// Holds with others, no more than there are leases.
    async fn share(&self, fence: &Fence) -> Result<()> {
        let mark = format!("/sharing/{}/{}", self.recipe, self.name);
        self.mark(fence, &mark, true).await?;
        let holders = self.client.get_children(&format!("/sharing/{}", self.recipe)).await?;
        if holders.len() > LEASES {
            violation(&format!("{LEASES} leases, and {holders:?} hold"));
        }
        self.pause(fence).await;
        fence.session().delete(&mark).await?;
        Ok(())
    }

    /// Reads, with other readers and no writer.
    async fn read(&self, fence: &Fence) -> Result<()> {
        let mark = format!("/sharing/{}/{}", self.recipe, self.name);
        self.mark(fence, &mark, false).await?;
        for _ in 0..2 {
            let held = format!("/held/{}", self.recipe);
            if self.client.exists(&held).await?.is_some() {
                let writer = self.client.get_data(&held).await;
                violation(&format!("{} reads by {}, beside {writer:?}", self.name, fence.node()));
            }
            self.pause(fence).await;
        }
        fence.session().delete(&mark).await?;
        Ok(())
    }

    /// Says that it holds, if by the server it does.
    async fn mark(&self, fence: &Fence, mark: &str, journal: bool) -> Result<()> {
        let mut multi = fence.multi().create(mark, &self.name).ephemeral();
        if journal {
            let entry = format!("/journal/{}/at-", self.recipe);
            multi = multi.create(&entry, &self.name).sequential();
        }
        match multi.await {
            Err(Error::Client(ClientError::Multi { code: ErrorCode::NodeExists, .. })) => {
                let other = self.client.get_data(mark).await;
                violation(&format!("{} holds {}, and so does {other:?}", self.name, fence.node()));
            }
            Err(error @ Error::NotHeld { .. }) if fence.session().is_alive() => {
                violation(&format!("{} holds, and the server knows nothing of it: {error}", self.name));
            }
            marked => marked.map(drop),
        }
    }

    async fn pause(&self, fence: &Fence) {
        sleep(Duration::from_millis(fence.token().number() % 3)).await;
    }
}
