//! Members of an ensemble in the test's process, each with a console.

use crate::free_ports::free;
use ostler_server::{Overrides, RunningServer, config};
use serde_json::Value;
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

/// A busy machine needs long for an election.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The ports of one member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) clients: u16,
    pub(crate) quorum: u16,
    pub(crate) election: u16,
    pub(crate) admin: u16,
}

impl Ports {
    /// Ports that were free just now.
    pub(crate) fn free() -> Ports {
        let [clients, quorum, election, admin] = free();
        Ports { clients, quorum, election, admin }
    }
}

/// A running member. It is killed when it is dropped.
pub(crate) struct Member {
    pub(crate) admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<JoinHandle<()>>,
}

/// The folders and ports of an ensemble, and its members that run.
pub(crate) struct Ensemble {
    folder: TempDir,
    pub(crate) ports: Vec<Ports>,
    more: String,
    pub(crate) running: Vec<Option<Member>>,
}

impl Ensemble {
    /// Folders and ports for this number of members, with more lines for each zoo.cfg. None runs.
    pub(crate) fn prepare(members: usize, more: &str) -> Ensemble {
        let ports = (0..members).map(|_| Ports::free()).collect();
        let running = (0..members).map(|_| None).collect();
        Ensemble { folder: tempfile::tempdir().unwrap(), ports, more: more.into(), running }
    }

    /// A running ensemble with a leader whom all others follow.
    pub(crate) async fn start(members: usize) -> Ensemble {
        let mut ensemble = Ensemble::prepare(members, "");
        for id in 1..=members {
            ensemble.start_member(id).await;
        }
        ensemble.until_led(members).await;
        ensemble
    }

    /// A server without an ensemble.
    pub(crate) async fn start_standalone() -> Ensemble {
        let mut ensemble = Ensemble::prepare(1, "");
        let (home, Ports { clients, admin, .. }) = (ensemble.folder.path(), ensemble.ports[0]);
        let text = format!(
            "dataDir={}\nclientPort={clients}\nclientPortAddress=127.0.0.1\nadmin.serverPort={admin}\n",
            home.display()
        );
        ensemble.running[0] = Some(run(&home.join("zoo.cfg"), &text).await);
        ensemble
    }

    /// Starts a member: it waits for its port, not for a leader.
    pub(crate) async fn start_member(&mut self, id: usize) {
        self.start_member_with(id, "").await;
    }

    /// The same, with more lines for this member.
    pub(crate) async fn start_member_with(&mut self, id: usize, lines: &str) {
        let home = self.folder.path().join(format!("server-{id}"));
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("myid"), format!("{id}\n")).unwrap();
        let mut text = format!(
            "tickTime=200\ninitLimit=50\nsyncLimit=20\ndataDir={}\nstandaloneEnabled=false\npreAllocSize=256\n\
             4lw.commands.whitelist=*\nforceSync=no\nadmin.serverPort={}\n{}\n{lines}\n",
            home.display(),
            self.ports[id - 1].admin,
            self.more,
        );
        let mut peers = Vec::new();
        for (other, ports) in (1..).zip(&self.ports) {
            let Ports { clients, quorum, election, admin } = ports;
            text +=
                &format!("server.{other}=127.0.0.1:{quorum}:{election}:participant;127.0.0.1:{clients}\n");
            let scheme = if self.more.contains("admin.needClientAuth") { "https://" } else { "" };
            peers.push(format!("{other}={scheme}127.0.0.1:{admin}"));
        }
        if !self.more.contains("admin.peers") {
            text += &format!("admin.peers={}\n", peers.join(";"));
        }
        self.running[id - 1] = Some(run(&home.join("zoo.cfg"), &text).await);
    }

    /// Stops a member.
    pub(crate) async fn stop(&mut self, id: usize) {
        let mut member = self.running[id - 1].take().unwrap();
        drop(member.stop.take());
        member.ended.take().unwrap().await.unwrap();
    }

    pub(crate) fn admin(&self, id: usize) -> SocketAddr {
        self.running[id - 1].as_ref().unwrap().admin
    }

    /// Waits until this number of members works together, by each one's own word. Returns the number of the leader.
    pub(crate) async fn until_led(&self, present: usize) -> usize {
        let begun = Instant::now();
        loop {
            let mut roles = Vec::new();
            for id in (1..=self.running.len()).filter(|id| self.running[*id - 1].is_some()) {
                let (_, page) = get(self.admin(id), "ensemble?local=1").await;
                roles.push((id, page["servers"][0]["role"].as_str().map(str::to_owned)));
            }
            let of = |role: &str| -> Vec<usize> {
                roles.iter().filter(|(_, of)| of.as_deref() == Some(role)).map(|(id, _)| *id).collect()
            };
            if let ([leader], followers) = (&of("leading")[..], of("following").len())
                && followers + 1 == present
            {
                return *leader;
            }
            assert!(begun.elapsed() < PATIENCE, "{roles:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The epoch of this leader, once all serve. It is not always 1: a voter that starts late makes the others elect
    /// once more.
    pub(crate) async fn epoch_of(&self, leader: usize) -> u64 {
        let (_, page) = get(self.admin(leader), "ensemble?local=1").await;
        row(&page, leader)["epoch"].as_u64().unwrap()
    }

    /// Asks a member until its page is as wanted.
    #[track_caller]
    pub(crate) fn until(
        &self,
        id: usize,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = (u16, Value)> {
        let (admin, path, begun) = (self.admin(id), path.to_owned(), Instant::now());
        async move {
            loop {
                let (status, page) = get(admin, &path).await;
                if status == 200 && wanted(&page) {
                    return (status, page);
                }
                assert!(begun.elapsed() < PATIENCE, "{path}: {page:#}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn run(zoo_cfg: &Path, text: &str) -> Member {
    fs::write(zoo_cfg, text).unwrap();
    let config = config::load(zoo_cfg).unwrap().config;
    let routes: ostler_server::AdminRoutes = Box::new(ostler_console::routes);
    let overrides = Overrides { admin_routes: Some(routes), ..Overrides::of(&config) };
    let server = RunningServer::start_with(&config, overrides).await.unwrap();
    let admin = server.admin.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(async move { drop(server.run_until(async { drop(stopped.await) }).await) });
    Member { admin, stop: Some(stop), ended: Some(ended) }
}

/// The status and the JSON of a path below `/api/v1`.
pub(crate) async fn get(admin: SocketAddr, path: &str) -> (u16, Value) {
    get_as(admin, path, None).await
}

/// The same, with the header `Authorization`.
pub(crate) async fn get_as(admin: SocketAddr, path: &str, identity: Option<&str>) -> (u16, Value) {
    let url = format!("http://{admin}/api/v1/{path}");
    let identity = identity.map(str::to_owned);
    let asked = tokio::task::spawn_blocking(move || {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut request = agent.get(&url);
        if let Some(identity) = identity {
            request = request.header("Authorization", identity);
        }
        let mut answer = request.call().unwrap();
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string().unwrap();
        let mut page = serde_json::from_str(&text).unwrap_or(Value::String(text));
        leave_disk_out(&mut page);
        (answer.status().as_u16(), page)
    });
    asked.await.unwrap()
}

/// The row of a server in a page.
#[track_caller]
pub(crate) fn row(page: &Value, id: usize) -> &Value {
    let rows = page["servers"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no row of {id}: {page:#}"))
}

/// Takes the findings about the disk of the machine out of a page: it may be nearly full.
fn leave_disk_out(page: &mut Value) {
    let is_of_disk =
        |finding: &Value| finding["sentence"].as_str().is_some_and(|said| said.contains("nearly full"));
    let Some(findings) = page.get_mut("findings").and_then(Value::as_array_mut) else { return };
    let before = findings.len();
    findings.retain(|finding| !is_of_disk(finding));
    let (removed, is_empty) = (before > findings.len(), findings.is_empty());
    let verdict = &mut page["verdict"];
    let sentence = verdict["sentence"].as_str().unwrap_or_default();
    if let Some(at) = sentence.find(" The disk of").filter(|_| removed) {
        verdict["sentence"] = sentence[..at].into();
    }
    if removed && is_empty && verdict["level"] == "warning" {
        verdict["level"] = "ok".into();
        verdict["way_out"] = Value::Null;
    }
}
