//! Where scenarios run: at one server, or at an ensemble whose leader can be killed meanwhile.

pub(crate) mod faults;

use ostler_client::{Acl, Perms};
use ostler_testkit::{
    Change, Counts, ServerId, SessionId, TestEnsemble, TestOptions, TestServer, TestkitError, Zxid,
};
use std::{fmt::Debug, net::SocketAddr, time::Duration};
use tokio::{
    sync::{Mutex, oneshot},
    time::timeout,
};

/// Nothing here takes so long; a test that waits for more hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that names the issue of a bug to plant.
pub(crate) const PLANTED: &str = "OSTLER_PLANTED_ISSUE";

/// Longer than it takes to come back after a cut.
const LAG: Duration = Duration::from_millis(20);

type Result<T> = std::result::Result<T, TestkitError>;

/// Everybody may do all to a znode but this.
pub(crate) fn all_but(perms: Perms) -> [Acl; 1] {
    [Acl::world(Perms(Perms::ALL.0 & !perms.0))]
}

pub(crate) trait Servers: Send + Sync + 'static {
    fn addresses(&self) -> Vec<SocketAddr>;

    /// Waits until the counts of all together are as `wanted` says.
    fn until(
        &self,
        wanted: impl FnMut(&Counts) -> bool + Send + 'static,
    ) -> impl Future<Output = Result<()>> + Send;

    /// The znodes that have come and gone after this zxid, by the servers' own order.
    // Elections and locks are judged by it; what else there is has no holders.
    #[allow(dead_code)]
    fn history(&self, after: u64) -> impl Future<Output = Vec<Change>> + Send;

    /// Ends a session now.
    fn expire(&self, session: SessionId) -> impl Future<Output = Result<()>> + Send;
}

/// [`PATIENCE`], and less where a bug is planted that shows in what never comes.
pub(crate) fn patience() -> Duration {
    match cfg!(feature = "planted-bugs") && std::env::var_os(PLANTED).is_some() {
        true => PATIENCE / 10,
        false => PATIENCE,
    }
}

/// If it takes too long, the message names the condition.
pub(crate) async fn patiently<T>(what: impl Debug, wait: impl IntoFuture<Output = T>) -> T {
    match timeout(patience(), wait).await {
        Ok(done) => done,
        Err(_) => panic!("{what:?} takes too long"),
    }
}

/// Does something in a runtime of its own, which ends then, with all its tasks.
pub(crate) async fn elsewhere<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let (to, done) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(async {
            // The tasks that it has begun have their turn.
            let outcome = tokio::spawn(work).await.unwrap();
            tokio::task::yield_now().await;
            outcome
        });
        drop(runtime);
        let _ = to.send(outcome);
    });
    patiently("what is done elsewhere", done).await.unwrap()
}

/// As clients want it.
pub(crate) fn connect_string(addresses: &[SocketAddr]) -> String {
    let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    all.join(",")
}

impl Servers for TestServer {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.address()]
    }

    async fn until(&self, wanted: impl FnMut(&Counts) -> bool + Send + 'static) -> Result<()> {
        TestServer::until(self, wanted).await
    }

    async fn history(&self, after: u64) -> Vec<Change> {
        TestServer::history(self, Zxid(after)).unwrap()
    }

    async fn expire(&self, session: SessionId) -> Result<()> {
        TestServer::expire(self, session).await
    }
}

/// Which member a client is to try first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attach {
    ToLeader,
    ToFollower,
}

/// A member that hears of nothing new.
pub(crate) struct Behind {
    member: ServerId,
    /// The requests that it had taken before.
    asked: u64,
}

impl Behind {
    fn now(members: &TestEnsemble, member: ServerId) -> Behind {
        Behind { member, asked: members.member(member).unwrap().counts().unwrap().requests }
    }
}

/// Three members.
pub(crate) struct Ensemble {
    members: Mutex<TestEnsemble>,
    addresses: Vec<SocketAddr>,
}

impl Ensemble {
    pub(crate) async fn start(options: TestOptions) -> Ensemble {
        let members = TestEnsemble::start_with(3, options).await.unwrap();
        let addresses = members.addresses();
        Ensemble { members: Mutex::new(members), addresses }
    }

    /// All members' addresses, the wanted one's first.
    pub(crate) async fn addresses_from(&self, first: Attach) -> Vec<SocketAddr> {
        let leader = self.members.lock().await.wait_for_leader().await.unwrap();
        let place = |id: ServerId| usize::try_from(id.0 - 1).unwrap();
        let shift = match first {
            Attach::ToLeader => place(leader),
            Attach::ToFollower => place(leader) + 1,
        };
        let mut addresses = self.addresses.clone();
        addresses.rotate_left(shift % self.addresses.len());
        addresses
    }

    /// Lets the follower hear of everything late that a client tries second if it tries another one first: what
    /// others do is not there yet when it goes on there. Its own writes are there: the leader
    /// has answered for them.
    pub(crate) async fn let_second_follower_lag(&self) {
        let second = self.addresses_from(Attach::ToFollower).await[1];
        let members = self.members.lock().await;
        let leader = members.leader().unwrap();
        members.delay_link(leader, self.member_at(&members, second), LAG);
    }

    /// Has the follower that a client tries first hear of nothing new.
    // Conditions that can only be awaited by the absence of something.
    #[allow(dead_code)]
    pub(crate) async fn keep_first_follower_behind(&self) -> Behind {
        let follower = self.addresses_from(Attach::ToFollower).await[0];
        let members = self.members.lock().await;
        let follower = self.member_at(&members, follower);
        members.silence_link(members.leader().unwrap(), follower);
        Behind::now(&members, follower)
    }

    /// Waits until it has taken a request since then.
    pub(crate) async fn until_asked(&self, behind: &Behind) {
        let asked = behind.asked;
        let taken =
            self.members.lock().await.member(behind.member).unwrap().until(move |c| c.requests > asked);
        taken.await.unwrap();
    }

    /// Takes back what keeps members from hearing of each other.
    pub(crate) async fn let_all_hear(&self) {
        self.members.lock().await.heal();
    }

    fn member_at(&self, members: &TestEnsemble, address: SocketAddr) -> ServerId {
        let place = self.addresses.iter().position(|known| *known == address).unwrap();
        members.ids().nth(place).unwrap()
    }

    /// Lets everything take so long that followers say to the leader: acknowledgements above all.
    // Elections and locks only.
    #[allow(dead_code)]
    pub(crate) async fn slow_acknowledgements(&self, by: Duration) {
        let members = self.members.lock().await;
        let leader = members.leader().unwrap();
        for follower in members.ids().filter(|member| *member != leader) {
            members.delay_link(follower, leader, by);
        }
    }

    /// How many requests all together have taken.
    #[allow(dead_code)]
    pub(crate) async fn requests(&self) -> u64 {
        self.members.lock().await.counts().unwrap().requests
    }

    /// Kills the leader; returns once another one leads.
    pub(crate) async fn kill_leader(&self) -> ServerId {
        let mut members = self.members.lock().await;
        let leader = members.wait_for_leader().await.unwrap();
        members.kill(leader).await.unwrap();
        members.wait_for_leader().await.unwrap();
        leader
    }

    /// Starts a member that was killed.
    pub(crate) async fn restart(&self, member: ServerId) {
        self.members.lock().await.restart(member).await.unwrap();
    }

    /// Has the leader stand still; returns once another one leads. It does not have to be waited for until the others
    /// notice: they are told.
    pub(crate) async fn pause_leader(&self) -> ServerId {
        let mut members = self.members.lock().await;
        let leader = members.wait_for_leader().await.unwrap();
        members.pause(leader).await.unwrap();
        members.cut_member(leader);
        members.wait_for_leader().await.unwrap();
        members.heal();
        leader
    }

    /// Lets a member go on that stands still.
    pub(crate) async fn resume(&self, member: ServerId) {
        self.members.lock().await.resume(member).unwrap();
    }

    /// Has the others leave the leader, which does not know; returns once they have another one.
    pub(crate) async fn desert_leader(&self) -> Behind {
        let members = self.members.lock().await;
        let leader = members.wait_for_leader().await.unwrap();
        members.cut_member_unnoticed(leader);
        members.wait_for_another_leader(leader).await.unwrap();
        Behind::now(&members, leader)
    }

    /// Waits until all members have what the leader has.
    pub(crate) async fn until_whole(&self) {
        let members = self.members.lock().await;
        members.until_all_serve().await.unwrap();
        members.until_settled().await.unwrap();
    }
}

impl Servers for Ensemble {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    async fn until(&self, wanted: impl FnMut(&Counts) -> bool + Send + 'static) -> Result<()> {
        // Not for as long as it takes: meanwhile the leader may be killed.
        let waiting = self.members.lock().await.until(wanted);
        waiting.await
    }

    async fn history(&self, after: u64) -> Vec<Change> {
        self.until_whole().await;
        self.members.lock().await.history(Zxid(after)).unwrap()
    }

    async fn expire(&self, session: SessionId) -> Result<()> {
        self.members.lock().await.expire(session).await
    }
}
