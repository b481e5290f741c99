//! Several servers, and what lies between them.

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
use ostler_server_core::{Server, ensemble::MemberMode};
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};
use tokio::task::JoinSet;

/// An ensemble of real servers in the test's process, members 1 to n. Dropped, it is killed, and its folders removed.
///
/// Members reach each other through proxies on 127.0.0.1, whose addresses are those of the membership; so the links
/// between them can be cut, silenced one way or both, and slowed down. Clients connect directly.
#[derive(Debug)]
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
    /// Starts this number of members with the default options. All of them serve clients when this returns.
    pub async fn start(members: usize) -> Result<TestEnsemble, TestkitError> {
        TestEnsemble::start_with(members, TestOptions::default()).await
    }

    /// Starts this number of members.
    pub async fn start_with(members: usize, options: TestOptions) -> Result<TestEnsemble, TestkitError> {
        let (members, network) = (prepare(members, &options)?, Network::new()?);
        let mut ensemble = TestEnsemble { members, network, roster: Roster::default() };
        // The largest number first: who comes later then greets those that are there and waits to be called. Two that
        // call each other at once lose votes with the connection that is given up, and vote again after 200 ms.
        for (id, member) in ensemble.members.iter_mut().rev() {
            let peers = ensemble.network.open(*id, &member.ports)?;
            member.server.start_process(Some(peers)).await?;
            ensemble.roster.came(*id, &member.server.process()?.handle);
        }
        ensemble.until_all_serve().await?;
        Ok(ensemble)
    }

    /// The members' numbers.
    pub fn members(&self) -> impl Iterator<Item = ServerId> {
        self.members.keys().copied()
    }

    /// A member, to look into it and to deal with its clients.
    pub fn member(&self, id: ServerId) -> Result<&TestServer, TestkitError> {
        Ok(&self.members.get(&id).ok_or(TestkitError::NoMember(id))?.server)
    }

    fn member_mut(&mut self, id: ServerId) -> Result<&mut TestServer, TestkitError> {
        Ok(&mut self.members.get_mut(&id).ok_or(TestkitError::NoMember(id))?.server)
    }

    /// Where clients connect, as they want it: `127.0.0.1:port,127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        let all: Vec<String> = self.addresses().iter().map(SocketAddr::to_string).collect();
        all.join(",")
    }

    /// Where clients connect, in order of the members' numbers.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.members.values().map(|member| member.server.address()).collect()
    }

    /// Members that run and are not paused.
    fn awake(&self) -> impl Iterator<Item = (ServerId, &TestServer)> {
        let all = self.members.iter().map(|(id, member)| (*id, &member.server));
        all.filter(|(_, server)| server.is_up() && !server.is_paused())
    }
}

fn prepare(members: usize, options: &TestOptions) -> Result<BTreeMap<ServerId, Member>, TestkitError> {
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

/// What becomes of members.
impl TestEnsemble {
    /// Ends a member as `kill -9` would; see [`TestServer::kill`].
    pub async fn kill(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.member_mut(id)?.kill().await;
        self.roster.left(id);
        self.network.close(id).await;
        Ok(())
    }

    /// Ends a member in order.
    pub async fn stop(&mut self, id: ServerId) -> Result<(), TestkitError> {
        let stopped = self.member_mut(id)?.stop().await;
        self.roster.left(id);
        self.network.close(id).await;
        stopped
    }

    /// Starts a member again, with the same ports and data; one that runs is stopped first. Does not wait until it
    /// serves clients: [`until_serving`](TestEnsemble::until_serving) does.
    pub async fn restart(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.stop(id).await?;
        let member = self.members.get_mut(&id).ok_or(TestkitError::NoMember(id))?;
        let peers = self.network.open(id, &member.ports)?;
        member.server.start_process(Some(peers)).await?;
        self.roster.came(id, &member.server.process()?.handle);
        Ok(())
    }

    /// Has a member stand still; see [`TestServer::pause`].
    pub async fn pause(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.member_mut(id)?.pause().await
    }

    /// Has a paused member go on.
    pub fn resume(&mut self, id: ServerId) -> Result<(), TestkitError> {
        self.member_mut(id)?.resume();
        Ok(())
    }
}

/// What there is, and what has happened.
impl TestEnsemble {
    /// The znodes that have come and gone in the transactions that are committed, in their order, after the one with
    /// this zxid: 0 for all. A transaction is committed if it is in the logs of a majority. For a moment in which all
    /// members [serve](TestEnsemble::until_all_serve) and are [settled](TestEnsemble::until_settled).
    pub fn history(&self, after: u64) -> Result<Vec<Change>, TestkitError> {
        let awake: Vec<&TestServer> = self.awake().map(|(_, server)| server).collect();
        let mut applied = Zxid::ZERO;
        for server in &awake {
            applied = applied.max(server.applied()?);
        }
        let (mut all, mut reach) = (BTreeMap::<u64, (usize, Vec<Change>)>::new(), 0);
        for server in &awake {
            let logged = server.logged(Zxid(after), applied)?;
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

    /// What the members that run hold and have done: connections, watches, requests and events are those of all
    /// together; sessions, znodes and transactions are those of the member that has applied the most. Members are
    /// looked at one after the other, so what moves between them meanwhile can be counted twice, or not at all.
    pub fn counts(&self) -> Result<Counts, TestkitError> {
        self.roster.counts().ok_or(TestkitError::Down)
    }

    /// Waits until the [`counts`](TestEnsemble::counts) are as `wanted` says, without polling: it is asked after
    /// whatever changes them. Members may be killed and started meanwhile, so this does not borrow the ensemble.
    pub fn until(
        &self,
        wanted: impl FnMut(&Counts) -> bool + Send + 'static,
    ) -> impl Future<Output = Result<(), TestkitError>> + Send + 'static {
        self.roster.until(wanted)
    }
}

/// What becomes of links. Rules add up, and stay over restarts of the members.
impl TestEnsemble {
    /// Ends all connections between two members, and each new one as soon as it is made: both know at once.
    pub fn cut(&self, a: ServerId, b: ServerId) {
        self.network.change(|links| links.cut(a, b));
    }

    /// Nothing that one member says reaches the other any more, and nobody is told. What is said meanwhile arrives
    /// after [`heal`](TestEnsemble::heal), as after a time of lost packets. No connection can be made between the two.
    pub fn silence(&self, from: ServerId, to: ServerId) {
        self.network.change(|links| links.lane_mut(from, to).silent = true);
    }

    /// Silences a member to and from all others.
    pub fn isolate(&self, id: ServerId) {
        self.network.change(|links| {
            for other in self.members().filter(|other| *other != id) {
                links.lane_mut(id, other).silent = true;
                links.lane_mut(other, id).silent = true;
            }
        });
    }

    /// Cuts a member off from all others.
    pub fn cut_off(&self, id: ServerId) {
        self.network.change(|links| {
            for other in self.members().filter(|other| *other != id) {
                links.cut(id, other);
            }
        });
    }

    /// Has all others leave a member, which is not told: they lose their connections to it at once, and it keeps
    /// them, silent, until [`heal`](TestEnsemble::heal). A leader goes on as one for as long as it waits for a word of
    /// its followers, beside the one that those elect.
    pub fn desert(&self, id: ServerId) {
        self.network.change(|links| {
            for other in self.members().filter(|other| *other != id) {
                links.desert(other, id);
            }
        });
    }

    /// Lets all that one member says to another take so long.
    pub fn delay(&self, from: ServerId, to: ServerId, by: Duration) {
        self.network.change(|links| links.lane_mut(from, to).delay = by);
    }

    /// Takes back all that was done to the links of two members.
    pub fn heal_between(&self, a: ServerId, b: ServerId) {
        self.network.change(|links| links.heal(a, b));
    }

    /// Takes back all that was done to links.
    pub fn heal(&self) {
        self.network.change(|links| links.heal_all());
    }
}

fn leads(server: &Server) -> bool {
    server.mode() == Some(MemberMode::Leader)
}

/// It has a leader, or is one. Who only lets clients read has none.
fn serves(server: &Server) -> bool {
    matches!(server.mode(), Some(MemberMode::Leader | MemberMode::Follower | MemberMode::Observer))
}

/// Who leads, and waiting without polling.
impl TestEnsemble {
    /// Who leads. One that was cut off may not know yet that it does not: of several, the one with the latest epoch.
    pub fn leader(&self) -> Option<ServerId> {
        let leaders = self.awake().filter_map(|(id, server)| {
            let look = |server: &Server| (leads(server), server.tree().last_processed());
            let (is_leader, last) = server.inspect(look).ok()?;
            is_leader.then_some((last.epoch(), id))
        });
        leaders.max().map(|(_, id)| id)
    }

    /// Waits until somebody leads.
    pub async fn until_led(&self) -> Result<ServerId, TestkitError> {
        self.until_any_leads(|_| true).await
    }

    /// Waits until somebody else than this member leads.
    pub async fn until_led_by_another(&self, than: ServerId) -> Result<ServerId, TestkitError> {
        self.until_any_leads(|id| id != than).await
    }

    async fn until_any_leads(&self, meant: impl Fn(ServerId) -> bool) -> Result<ServerId, TestkitError> {
        let mut waiting = JoinSet::new();
        for (id, server) in self.awake().filter(|(id, _)| meant(*id)) {
            let handle = server.process()?.handle.clone();
            waiting.spawn(async move { handle.until(leads).await.map(|()| id) });
        }
        while let Some(led) = waiting.join_next().await {
            if let Ok(Ok(id)) = led {
                // It may be one that does not know yet that it does not lead any more.
                return Ok(self.leader().filter(|latest| meant(*latest)).unwrap_or(id));
            }
        }
        Err(TestkitError::NoLeader)
    }

    /// Waits until a member has a leader, or is one, and serves clients.
    pub async fn until_serving(&self, id: ServerId) -> Result<(), TestkitError> {
        let process = self.member(id)?.process()?;
        let served = process.handle.until(serves);
        served.await.map_err(|_| TestkitError::Down)
    }

    /// Waits until every member that runs and is not paused serves clients, all at one time.
    pub async fn until_all_serve(&self) -> Result<(), TestkitError> {
        loop {
            for (id, _) in self.awake() {
                self.until_serving(id).await?;
            }
            // One may have lost its leader while the next one was waited for.
            if self.awake().all(|(_, server)| server.inspect(serves).unwrap_or(false)) {
                return Ok(());
            }
        }
    }

    /// Waits until every member that runs and is not paused has applied what the leader has by now.
    pub async fn until_settled(&self) -> Result<(), TestkitError> {
        let leader = self.leader().ok_or(TestkitError::NoLeader)?;
        let zxid = self.member(leader)?.inspect(|server| server.tree().last_processed())?;
        for (_, server) in self.awake() {
            // The first zxid of an epoch is no transaction: who serves has all that was before it.
            let has = move |server: &Server| {
                server.tree().last_processed() >= zxid || (zxid.counter() == 0 && serves(server))
            };
            server.process()?.handle.until(has).await.map_err(|_| TestkitError::Down)?;
        }
        Ok(())
    }

    /// Ends a session now, as if its time were over, by a transaction of the leader. Returns once the leader has
    /// applied it; the others follow.
    pub async fn expire(&self, session: SessionId) -> Result<(), TestkitError> {
        for (_, server) in self.awake() {
            if server.process()?.has_local(session) {
                return server.expire(session).await;
            }
        }
        let leader = self.leader().ok_or(TestkitError::NoLeader)?;
        self.member(leader)?.expire(session).await
    }

    /// Cuts the connection of a session, wherever it is. Returns how many that were.
    pub fn cut_session(&self, session: SessionId) -> Result<usize, TestkitError> {
        self.awake().map(|(_, server)| server.cut_session(session)).sum()
    }

    /// Cuts all clients' connections. Returns how many.
    pub fn cut_connections(&self) -> Result<usize, TestkitError> {
        self.awake().map(|(_, server)| server.cut_connections()).sum()
    }
}
