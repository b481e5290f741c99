//! An ensemble of test servers, and the faults of the network between them.

use crate::{
    counts::Counts,
    error::TestkitError,
    history::Change,
    network::{Network, PeerPorts},
    options::TestOptions,
    port::ReservedPort,
    roster::Roster,
    server::TestServer,
};
use ostler_proto::id::{ServerId, SessionId, Zxid};
use ostler_server_core::{Server, quorum::MemberMode};
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};
use tokio::task::JoinSet;

/// An ensemble of real servers in the test's process, with the ids 1 to n. Curator's `TestingCluster`. When it is
/// dropped, the servers are killed and their folders removed.
///
/// The members connect to each other through proxies on 127.0.0.1, so a test can cut a link between two members, silence
/// it in one or both directions, and delay it. Clients connect directly.
#[derive(Debug)]
#[must_use = "the servers of an ensemble that is dropped are killed"]
pub struct TestEnsemble {
    members: BTreeMap<ServerId, Member>,
    network: Network,
    roster: Roster,
}

#[derive(Debug)]
struct Member {
    server: TestServer,
    ports: PeerPorts,
}

impl TestEnsemble {
    /// Starts this number of members with the default options, and waits until all of them serve clients.
    ///
    /// # Errors
    /// Those of [`start_with`](TestEnsemble::start_with).
    pub async fn start(members: usize) -> Result<TestEnsemble, TestkitError> {
        TestEnsemble::start_with(members, TestOptions::default()).await
    }

    /// Starts this number of members with these options, and waits until all of them serve clients.
    ///
    /// # Errors
    /// [`TestkitError::Config`] for a setting that is not valid; [`TestkitError::Folder`], [`TestkitError::Port`],
    /// [`TestkitError::Thread`] and the like if this machine lacks something; [`TestkitError::Server`] if a member does not start.
    pub async fn start_with(members: usize, options: TestOptions) -> Result<TestEnsemble, TestkitError> {
        let (members, network) = (prepare_members(members, &options)?, Network::new()?);
        let mut ensemble = TestEnsemble { members, network, roster: Roster::default() };
        // The largest id first. If two members connect to each other at the same time, one connection is given up, and
        // votes on it are lost and sent again only after 200 ms. With this order it does not happen, because a member
        // with a smaller id waits to be called.
        for (id, member) in ensemble.members.iter_mut().rev() {
            let peers = ensemble.network.open(*id, &member.ports)?;
            member.server.start_process(Some(peers)).await?;
            ensemble.roster.add(*id, &member.server.process()?.handle);
        }
        ensemble.until_all_serve().await?;
        Ok(ensemble)
    }

    /// The ids of all members.
    pub fn ids(&self) -> impl Iterator<Item = ServerId> {
        self.members.keys().copied()
    }

    /// One member, to inspect it and to cut its clients' connections.
    ///
    /// # Errors
    /// [`TestkitError::NoMember`].
    pub fn member(&self, id: ServerId) -> Result<&TestServer, TestkitError> {
        Ok(&self.members.get(&id).ok_or(TestkitError::NoMember(id))?.server)
    }

    fn member_mut(&mut self, id: ServerId) -> Result<&mut TestServer, TestkitError> {
        Ok(&mut self.members.get_mut(&id).ok_or(TestkitError::NoMember(id))?.server)
    }

    /// The connect string for clients: `127.0.0.1:port,127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        let all: Vec<String> = self.addresses().iter().map(SocketAddr::to_string).collect();
        all.join(",")
    }

    /// The client addresses of all members, in the order of their ids.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.members.values().map(|member| member.server.address()).collect()
    }

    /// Members that run and are not paused.
    fn awake(&self) -> impl Iterator<Item = (ServerId, &TestServer)> {
        let all = self.members.iter().map(|(id, member)| (*id, &member.server));
        all.filter(|(_, server)| server.is_up() && !server.is_paused())
    }
}

fn prepare_members(
    members: usize,
    options: &TestOptions,
) -> Result<BTreeMap<ServerId, Member>, TestkitError> {
    let mut ports = Vec::new();
    for _ in 0..members {
        let peers = PeerPorts { quorum: ReservedPort::any()?, election: ReservedPort::any()? };
        ports.push((ReservedPort::any()?, peers));
    }
    let mut lines = vec![("standaloneEnabled".to_string(), "false".to_string())];
    for (number, (client, peers)) in (1..).zip(&ports) {
        let [quorum, election] = [&peers.quorum, &peers.election].map(|port| port.address().port());
        let role = if options.votes(number, members) { "participant" } else { "observer" };
        let value = format!("127.0.0.1:{quorum}:{election}:{role};{}", client.address());
        lines.push((format!("server.{number}"), value));
    }
    let mut prepared = BTreeMap::new();
    for (number, (client, ports)) in (1..).zip(ports) {
        let server = TestServer::prepare(options, client, &lines)?;
        server.write(&server.data_dir().join("myid"), &format!("{number}\n"))?;
        prepared.insert(ServerId(number), Member { server, ports });
    }
    Ok(prepared)
}

/// Faults of members.
impl TestEnsemble {
    /// Ends a member as `kill -9` would; see [`TestServer::kill`].
    ///
    /// # Errors
    /// [`TestkitError::NoMember`].
    pub async fn kill(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.member_mut(id)?.kill().await;
        self.roster.remove(id);
        self.network.close(id).await;
        Ok(())
    }

    /// Stops a member in order, as SIGTERM does.
    ///
    /// # Errors
    /// [`TestkitError::NoMember`]; [`TestkitError::Server`] if the member does not stop in order.
    pub async fn stop(&mut self, id: ServerId) -> Result<(), TestkitError> {
        let stopped = self.member_mut(id)?.stop().await;
        self.roster.remove(id);
        self.network.close(id).await;
        stopped
    }

    /// Starts a member again, with the same ports and data. A running member is stopped first. Does not wait until the
    /// member serves clients; [`until_serving`](TestEnsemble::until_serving) does.
    ///
    /// # Errors
    /// [`TestkitError::NoMember`]; otherwise those of [`start_with`](TestEnsemble::start_with).
    pub async fn restart(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.stop(id).await?;
        let member = self.members.get_mut(&id).ok_or(TestkitError::NoMember(id))?;
        let peers = self.network.open(id, &member.ports)?;
        member.server.start_process(Some(peers)).await?;
        self.roster.add(id, &member.server.process()?.handle);
        Ok(())
    }

    /// Freezes a member; see [`TestServer::pause`].
    ///
    /// # Errors
    /// [`TestkitError::NoMember`]; [`TestkitError::Down`].
    pub async fn pause(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.member_mut(id)?.pause().await
    }

    /// Continues a paused member.
    ///
    /// # Errors
    /// [`TestkitError::NoMember`].
    pub fn resume(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.member_mut(id)?.resume();
        Ok(())
    }
}

/// Observations of the whole ensemble.
impl TestEnsemble {
    /// The created and deleted znodes in the committed transactions after this zxid ([`Zxid::ZERO`] for all), in order. A transaction is
    /// committed if it is in the logs of a majority. Call this when all members [serve](TestEnsemble::until_all_serve) and
    /// are [settled](TestEnsemble::until_settled).
    ///
    /// # Errors
    /// [`TestkitError::NotLogged`] if a majority of the running members does not have all transactions in its logs;
    /// [`TestkitError::Log`] and [`TestkitError::Record`] for a log that cannot be read.
    pub fn history(&self, after: Zxid) -> Result<Vec<Change>, TestkitError> {
        let awake: Vec<&TestServer> = self.awake().map(|(_, server)| server).collect();
        let mut applied = Zxid::ZERO;
        for server in &awake {
            applied = applied.max(server.applied()?);
        }
        let (mut all, mut reach) = (BTreeMap::<Zxid, (usize, Vec<Change>)>::new(), 0);
        for server in &awake {
            let logged = server.logged(after, applied)?;
            for changes in logged.changes.chunk_by(|a, b| a.zxid == b.zxid) {
                all.entry(changes[0].zxid).or_insert_with(|| (0, changes.to_vec())).0 += 1;
            }
            reach += usize::from(logged.reaches);
        }
        let is_majority = |logs: usize| logs * 2 > awake.len();
        if !is_majority(reach) {
            return Err(TestkitError::NotLogged(applied));
        }
        let committed = all.into_values().filter(|(logs, _)| is_majority(*logs));
        Ok(committed.flat_map(|(_, changes)| changes).collect())
    }

    /// The counters of all running members. Connections, watches, requests and events are sums over all members;
    /// sessions, znodes and transactions come from the member that has applied the most. The members are read one after
    /// the other, so a client that moves between two members meanwhile can be counted twice, or not at all.
    ///
    /// # Errors
    /// [`TestkitError::Down`] if no member runs.
    pub fn counts(&self) -> Result<Counts, TestkitError> {
        self.roster.counts().ok_or(TestkitError::Down)
    }

    /// Waits until `wanted` returns true for the [`counts`](TestEnsemble::counts). There is no polling: `wanted` is called
    /// after each change. The future does not borrow the ensemble, so members may be killed and started meanwhile.
    ///
    /// # Errors
    /// [`TestkitError::Down`] once the ensemble is dropped.
    pub fn until(
        &self,
        wanted: impl FnMut(&Counts) -> bool + Send + 'static,
    ) -> impl Future<Output = Result<(), TestkitError>> + Send + 'static {
        self.roster.until(wanted)
    }
}

/// Faults of the links between members. Faults add up, and stay when members restart.
impl TestEnsemble {
    /// Closes all connections between two members, and each new one at once. Both members notice at once.
    pub fn cut_link(&self, a: ServerId, b: ServerId) {
        self.network.change(|links| links.cut(a, b));
    }

    /// Holds back all bytes from one member to another, without notice to either. They arrive after
    /// [`heal`](TestEnsemble::heal), as after a time of lost packets. No new connection between the two can be made.
    pub fn silence_link(&self, from: ServerId, to: ServerId) {
        self.network.change(|links| links.lane_mut(from, to).silent = true);
    }

    /// [Silences](TestEnsemble::silence_link) a member in both directions to all others.
    pub fn silence_member(&self, id: ServerId) {
        self.network.change(|links| {
            for other in self.ids().filter(|other| *other != id) {
                links.lane_mut(id, other).silent = true;
                links.lane_mut(other, id).silent = true;
            }
        });
    }

    /// [Cuts](TestEnsemble::cut_link) the links of a member to all others.
    pub fn cut_member(&self, id: ServerId) {
        self.network.change(|links| {
            for other in self.ids().filter(|other| *other != id) {
                links.cut(id, other);
            }
        });
    }

    /// Closes the connections to a member at the other members' ends only: they notice at once, and the member keeps the
    /// connections, silent, until [`heal`](TestEnsemble::heal). If it leads, it goes on as leader until it misses its
    /// followers for too long, next to the leader that they elect.
    pub fn cut_member_unnoticed(&self, id: ServerId) {
        self.network.change(|links| {
            for other in self.ids().filter(|other| *other != id) {
                links.desert(other, id);
            }
        });
    }

    /// Delays all bytes from one member to another by this time.
    pub fn delay_link(&self, from: ServerId, to: ServerId, by: Duration) {
        self.network.change(|links| links.lane_mut(from, to).delay = by);
    }

    /// Removes all faults of the links between two members.
    pub fn heal_link(&self, a: ServerId, b: ServerId) {
        self.network.change(|links| links.heal(a, b));
    }

    /// Removes all faults of links.
    pub fn heal(&self) {
        self.network.change(|links| links.heal_all());
    }
}

fn leads(server: &Server) -> bool {
    server.mode() == Some(MemberMode::Leader)
}

/// Whether a server has a leader, or is one. A read-only server has none.
fn serves(server: &Server) -> bool {
    matches!(server.mode(), Some(MemberMode::Leader | MemberMode::Follower | MemberMode::Observer))
}

/// The leader, waits without polling, and sessions.
impl TestEnsemble {
    /// The leader. A member that was cut off may still count itself as leader; of several leaders this is the one with the
    /// latest epoch. `None` if no member leads.
    pub fn leader(&self) -> Option<ServerId> {
        let leaders = self.awake().filter_map(|(id, server)| {
            let look = |server: &Server| (leads(server), server.tree().last_processed());
            let (is_leader, last) = server.inspect(look).ok()?;
            is_leader.then_some((last.epoch(), id))
        });
        leaders.max().map(|(_, id)| id)
    }

    /// Waits until a member leads, and returns its id.
    ///
    /// # Errors
    /// [`TestkitError::NoLeader`] if no member is left that could lead.
    pub async fn wait_for_leader(&self) -> Result<ServerId, TestkitError> {
        self.until_any_leads(|_| true).await
    }

    /// Waits until another member than this one leads, and returns its id.
    ///
    /// # Errors
    /// [`TestkitError::NoLeader`] if no other member is left that could lead.
    pub async fn wait_for_another_leader(&self, than: ServerId) -> Result<ServerId, TestkitError> {
        self.until_any_leads(|id| id != than).await
    }

    async fn until_any_leads(&self, is_wanted: impl Fn(ServerId) -> bool) -> Result<ServerId, TestkitError> {
        let mut waiting = JoinSet::new();
        for (id, server) in self.awake().filter(|(id, _)| is_wanted(*id)) {
            let handle = server.process()?.handle.clone();
            waiting.spawn(async move { handle.until(leads).await.map(|()| id) });
        }
        while let Some(led) = waiting.join_next().await {
            if let Ok(Ok(id)) = led {
                // This member may have been replaced without noticing, so the one with the latest epoch is preferred.
                return Ok(self.leader().filter(|latest| is_wanted(*latest)).unwrap_or(id));
            }
        }
        Err(TestkitError::NoLeader)
    }

    /// Waits until a member has a leader, or is one, and serves clients.
    ///
    /// # Errors
    /// [`TestkitError::NoMember`]; [`TestkitError::Down`] if the member does not run, or ends before.
    pub async fn until_serving(&self, id: ServerId) -> Result<(), TestkitError> {
        let process = self.member(id)?.process()?;
        let served = process.handle.until(serves);
        served.await.map_err(|_| TestkitError::Down)
    }

    /// Waits until every member that runs and is not paused serves clients at the same time.
    ///
    /// # Errors
    /// [`TestkitError::Down`] if a member ends before.
    pub async fn until_all_serve(&self) -> Result<(), TestkitError> {
        loop {
            for (id, _) in self.awake() {
                self.until_serving(id).await?;
            }
            // A member may have lost its leader during the wait for the next one.
            if self.awake().all(|(_, server)| server.inspect(serves).unwrap_or(false)) {
                return Ok(());
            }
        }
    }

    /// Waits until every member that runs and is not paused has applied all transactions that the leader has applied by
    /// now.
    ///
    /// # Errors
    /// [`TestkitError::NoLeader`]; [`TestkitError::Down`] if a member ends before.
    pub async fn until_settled(&self) -> Result<(), TestkitError> {
        let leader = self.leader().ok_or(TestkitError::NoLeader)?;
        let zxid = self.member(leader)?.inspect(|server| server.tree().last_processed())?;
        for (_, server) in self.awake() {
            // The first zxid of an epoch is no transaction. A serving member has all transactions before it.
            let has = move |server: &Server| {
                server.tree().last_processed() >= zxid || (zxid.counter() == 0 && serves(server))
            };
            server.process()?.handle.until(has).await.map_err(|_| TestkitError::Down)?;
        }
        Ok(())
    }

    /// Expires a session now, by a transaction of the leader. Returns once the leader has applied it. The other members
    /// follow.
    ///
    /// # Errors
    /// [`TestkitError::NoLeader`]; [`TestkitError::NoSession`] if the leader does not know the session.
    pub async fn expire(&self, session: SessionId) -> Result<(), TestkitError> {
        for (_, server) in self.awake() {
            if server.process()?.has_local(session) {
                return server.expire(session).await;
            }
        }
        let leader = self.leader().ok_or(TestkitError::NoLeader)?;
        self.member(leader)?.expire(session).await
    }

    /// Closes the connection of a session at any member. Returns the number of closed connections.
    ///
    /// # Errors
    /// [`TestkitError::Down`] if a member ends meanwhile.
    pub fn cut_session(&self, session: SessionId) -> Result<usize, TestkitError> {
        self.awake().map(|(_, server)| server.cut_session(session)).sum()
    }

    /// Closes all clients' connections. Returns their number.
    ///
    /// # Errors
    /// [`TestkitError::Down`] if a member ends meanwhile.
    pub fn cut_connections(&self) -> Result<usize, TestkitError> {
        self.awake().map(|(_, server)| server.cut_connections()).sum()
    }
}
