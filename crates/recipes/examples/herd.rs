//! `herd SERVER fair|unfair CONTENDERS HAND_OVERS`: CONTENDERS participants contend in one election, each in a session
//! of its own; the leader leaves and comes back as the last, HAND_OVERS times. Prints the watch events and requests
//! that this took, as the clients have counted them and as the server has (`mntr`). `interop/recipes/herd.py` makes a
//! table of it.
//!
//! One process, for its clients' counts; one session for each contender, as contenders are processes: within one
//! session a watch that many have asked for would be one at the server.

use ostler_client::Client;
use ostler_recipes::{
    Result,
    leader::{LeaderLatch, UnfairElection},
};
use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Notify, mpsc},
    time::sleep,
};

/// Long, so that no pings are among the requests.
const SESSION: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, kind, contenders, hand_overs] = &words[..] else {
        return Err("usage: herd SERVER fair|unfair CONTENDERS HAND_OVERS".into());
    };
    let (contenders, hand_overs): (usize, u64) = (contenders.parse()?, hand_overs.parse()?);
    let fair = kind == "fair";
    let mut herd = Herd::gather(server, fair, contenders).await?;
    // Whoever leads watches itself in the fair election, and nothing in the unfair one.
    let watches = if fair { contenders } else { contenders - 1 };
    let mut leader = herd.next_leader().await?;
    herd.settle(watches).await;

    let (begun, at_server) = (herd.counts(), ServerCounts::ask(server).await?);
    let (mut before, mut most) = (begun.clone(), (0, 0));
    for _ in 0..hand_overs {
        herd.contenders[leader].leave.notify_one();
        leader = herd.next_leader().await?;
        herd.settle(watches).await;
        let after = herd.counts();
        most.0 = most.0.max(after.events - before.events);
        most.1 = most.1.max(after.requests() - before.requests());
        before = after;
    }
    let (done, at_server_done) = (before, ServerCounts::ask(server).await?);
    println!(
        "{kind} contenders={contenders} hand_overs={hand_overs} events={} most_events={} requests={} most_requests={} \
         received={} server_events={} server_requests={} {}",
        done.events - begun.events,
        most.0,
        done.requests() - begun.requests(),
        most.1,
        done.received - begun.received,
        at_server_done.events - at_server.events,
        at_server_done.requests - at_server.requests,
        done.by_operation_since(&begun),
    );
    Ok(())
}

struct Herd {
    contenders: Vec<Contender>,
    leaders: mpsc::UnboundedReceiver<Result<usize>>,
}

struct Contender {
    client: Client,
    /// Told when it is to give up leadership.
    leave: Arc<Notify>,
}

impl Herd {
    async fn gather(server: &str, fair: bool, size: usize) -> Result<Herd> {
        let (leads, leaders) = mpsc::unbounded_channel();
        let mut contenders = Vec::new();
        for number in 0..size {
            let client = Client::builder(server).session_timeout(SESSION).connect().await?;
            let leave = Arc::new(Notify::new());
            contenders.push(Contender { client: client.clone(), leave: leave.clone() });
            let leads = leads.clone();
            tokio::spawn(async move {
                let contended = async {
                    loop {
                        if fair {
                            let latch = LeaderLatch::new(&client, "/herd/fair", "");
                            latch.start();
                            latch.wait_for_leadership().await?;
                            let _ = leads.send(Ok(number));
                            leave.notified().await;
                            latch.close().await;
                        } else {
                            let leadership =
                                UnfairElection::new(&client, "/herd/unfair", "").campaign().await?;
                            let _ = leads.send(Ok(number));
                            leave.notified().await;
                            leadership.resign().await?;
                        }
                    }
                };
                let ended: Result<()> = contended.await;
                if let Err(error) = ended {
                    let _ = leads.send(Err(error));
                }
            });
        }
        Ok(Herd { contenders, leaders })
    }

    async fn next_leader(&mut self) -> std::result::Result<usize, Box<dyn Error>> {
        Ok(self.leaders.recv().await.ok_or("nobody contends")??)
    }

    /// Waits until nothing is under way: all that contend have their watches.
    async fn settle(&self, watches: usize) {
        loop {
            let metrics = self.contenders.iter().map(|contender| contender.client.metrics());
            let now =
                metrics.fold((0, 0), |sum, of_one| (sum.0 + of_one.watches, sum.1 + of_one.outstanding));
            if now == (watches, 0) {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn counts(&self) -> ClientCounts {
        let mut counts = ClientCounts::default();
        for contender in &self.contenders {
            let metrics = contender.client.metrics();
            counts.events += metrics.events;
            counts.received += metrics.bytes_received;
            for (operation, of_it) in metrics.operations {
                *counts.replies.entry(operation).or_default() += of_it.replies;
            }
        }
        counts
    }
}

/// The counts of all clients together.
#[derive(Clone, Default)]
struct ClientCounts {
    events: u64,
    received: u64,
    replies: BTreeMap<&'static str, u64>,
}

impl ClientCounts {
    fn requests(&self) -> u64 {
        self.replies.values().sum()
    }

    fn by_operation_since(&self, begun: &ClientCounts) -> String {
        let since =
            |operation: &str, now: u64| now - begun.replies.get(operation).copied().unwrap_or_default();
        let counts = self.replies.iter().map(|(operation, now)| (operation, since(operation, *now)));
        let counts = counts.filter(|(_, count)| *count > 0);
        counts.map(|(operation, count)| format!("{operation}:{count}")).collect::<Vec<_>>().join(",")
    }
}

/// The counts of the server.
struct ServerCounts {
    events: u64,
    requests: u64,
}

impl ServerCounts {
    async fn ask(server: &str) -> std::result::Result<ServerCounts, Box<dyn Error>> {
        let mut connection = TcpStream::connect(server).await?;
        connection.write_all(b"mntr").await?;
        let mut text = String::new();
        connection.read_to_string(&mut text).await?;
        let value = |wanted: &str| -> u64 {
            let of_line =
                |line: &str| line.split_once('\t').filter(|(key, _)| *key == wanted)?.1.parse().ok();
            text.lines().find_map(of_line).unwrap_or_default()
        };
        let kinds = ["created", "deleted", "changed", "children"];
        let events = kinds.iter().map(|kind| value(&format!("zk_sum_node_{kind}_watch_count"))).sum();
        Ok(ServerCounts { events, requests: value("zk_packets_received") })
    }
}
