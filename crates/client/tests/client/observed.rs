//! Each operation has a tracing span and is counted in the metrics.

use crate::{server::TestServer, traces::Traces};
use ostler_client::{Acl, AddWatchMode, Client, Perms, Result, WatcherType};
use ostler_proto::op::Op;
use std::{future::IntoFuture, time::Duration};

/// Operations that applications cannot send: they are the session's own, parts of others, or for servers only.
const INTERNAL: [Op; 7] =
    [Op::Ping, Op::Check, Op::DeleteContainer, Op::SetWatches, Op::SetWatches2, Op::Sasl, Op::CreateSession];

struct Watcher {
    client: Client,
    traces: Traces,
    seen: Vec<Op>,
}

impl Watcher {
    fn count(&self, op: Op) -> u64 {
        let name = if op == Op::Auth { "addAuth".to_owned() } else { format!("{op:?}") };
        let operations = self.client.metrics().operations;
        operations.iter().find(|(of, _)| of.eq_ignore_ascii_case(&name)).map_or(0, |(_, of)| of.replies)
    }

    /// Runs `operation`. It must have exactly one span, `span`, and count as one reply to `counted`.
    async fn sees<T>(
        &mut self,
        span: &str,
        counted: Op,
        operation: impl IntoFuture<Output = Result<T>>,
    ) -> Result<T> {
        let before = self.count(counted);
        let result = operation.await;
        assert_eq!(self.traces.operations(), [span], "{counted:?}");
        assert_eq!(self.count(counted), before + 1, "{counted:?}");
        self.seen.push(counted);
        result
    }
}

#[tokio::test]
async fn each_operation_has_a_span_and_is_counted() {
    let traces = Traces::begin();
    let server = TestServer::start_with(|config| config.tree.extended_types_enabled = true);
    let client = server.client().await;
    let mut w = Watcher { client: client.clone(), traces, seen: Vec::new() };
    w.sees("create", Op::Create2, client.create("/a", b"")).await.unwrap();
    w.sees("create", Op::Create2, client.create("/a/i", b"").idempotent()).await.unwrap();
    w.sees("create", Op::Create2, client.create("/a/n-", b"").sequential().protected()).await.unwrap();
    w.sees("create", Op::CreateContainer, client.create("/c", b"").container()).await.unwrap();
    let ttl = client.create("/t", b"").ttl(Duration::from_secs(100));
    w.sees("create", Op::CreateTtl, ttl).await.unwrap();
    w.sees("exists", Op::Exists, client.exists("/a")).await.unwrap();
    w.sees("getData", Op::GetData, client.get_data("/a")).await.unwrap();
    let (_, watch) = w.sees("getData", Op::GetData, client.get_data("/a").watch()).await.unwrap();
    w.sees("getChildren", Op::GetChildren, client.get_children("/a")).await.unwrap();
    w.sees("getChildren2", Op::GetChildren2, client.get_children_and_stat("/a")).await.unwrap();
    let number = client.get_all_children_number("/a");
    w.sees("getAllChildrenNumber", Op::GetAllChildrenNumber, number).await.unwrap();
    w.sees("getEphemerals", Op::GetEphemerals, client.get_ephemerals("/")).await.unwrap();
    w.sees("getACL", Op::GetAcl, client.get_acl("/a")).await.unwrap();
    w.sees("setACL", Op::SetAcl, client.set_acl("/a", &[Acl::world(Perms::ALL)])).await.unwrap();
    w.sees("setData", Op::SetData, client.set_data("/t", b"1")).await.unwrap();
    w.sees("setData", Op::SetData, client.set_data("/t", b"2").idempotent()).await.unwrap();
    w.sees("sync", Op::Sync, client.sync("/")).await.unwrap();
    w.sees("whoAmI", Op::WhoAmI, client.who_am_i()).await.unwrap();
    w.sees("multi", Op::Multi, client.multi().create("/m", b"").send()).await.unwrap();
    w.sees("multiRead", Op::MultiRead, client.multi_read().get_data("/m").send()).await.unwrap();
    let stream = client.add_watch("/m", AddWatchMode::Persistent);
    let stream = w.sees("addWatch", Op::AddWatch, stream).await.unwrap();
    let check = client.check_watches("/m", WatcherType::Any);
    assert!(w.sees("checkWatches", Op::CheckWatches, check).await.unwrap());
    let remove = client.remove_watches("/m", WatcherType::Any);
    w.sees("removeWatches", Op::RemoveWatches, remove).await.unwrap();
    drop((watch, stream));
    w.sees("delete", Op::Delete, client.delete("/m")).await.unwrap();
    w.sees("delete", Op::Delete, client.delete("/c").guaranteed()).await.unwrap();
    w.sees("addAuth", Op::Auth, client.add_auth("digest", "user:password")).await.unwrap();
    // A standalone server refuses it. The error reply is counted as well.
    w.sees("reconfig", Op::Reconfig, client.reconfig().leaving("2")).await.unwrap_err();
    let close = async {
        client.close().await;
        Ok(())
    };
    w.sees("closeSession", Op::CloseSession, close).await.unwrap();

    // Plain creates go only to servers without create2; see `old_servers`.
    w.seen.push(Op::Create);
    let all = (-20..200).filter_map(Op::from_code);
    let missing: Vec<Op> = all.filter(|op| !INTERNAL.contains(op) && !w.seen.contains(op)).collect();
    assert_eq!(missing, []);
}
