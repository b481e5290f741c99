//! The end of a run: after the last fault one server leads, the others follow, and all have the same tree.

use crate::{
    client::{Client, Intent},
    wire::{self, WireRequest},
    world::{Event, NO_END, World},
};
use ostler_proto::{id::SessionId, reply::Reply};
use ostler_server_core::{ConnId, quorum::LocalSessions, sessions::Scope};
use std::collections::BTreeSet;

impl World {
    /// Opens a client that the test controls, with a session at a member.
    pub(crate) fn join(&mut self, member: i64) -> usize {
        self.try_join(member).unwrap_or_else(|| panic!("{member} gives no session"))
    }

    pub(crate) fn try_join(&mut self, member: i64) -> Option<usize> {
        let client = self.call(member, false);
        self.run_until(4_000, |world| world.clients[client].open).then_some(client)
    }

    /// A client that the test controls connects to a member. Does not wait for the session.
    pub(crate) fn call(&mut self, member: i64, reader: bool) -> usize {
        let client = self.clients.len();
        self.clients.push(Client { driven: true, reader, ..Client::default() });
        self.after(1, Event::Client(client));
        self.connect(client, member);
        client
    }

    /// A client closes its connection and connects to a member. Returns whether it has its former session there.
    pub(crate) fn come_back(&mut self, client: usize, member: i64) -> bool {
        self.hang_up_client(client);
        self.run(30);
        let before = self.clients[client].session;
        self.connect(client, member);
        self.run_until(1_000, |world| {
            let of = &world.clients[client];
            of.open || of.conn.is_none()
        });
        self.clients[client].open && self.clients[client].session == before
    }

    /// Sends a request and waits for the reply.
    pub(crate) fn answer(&mut self, client: usize, intent: Intent, ask: WireRequest) -> Option<Reply> {
        self.clients[client].outcome = None;
        self.ask(client, intent, ask);
        let xid = self.clients[client].sent.back()?.xid;
        let answered = |world: &World| {
            world.clients[client].outcome.as_ref().is_some_and(|reply| reply.xid == xid)
                || world.clients[client].conn.is_none()
        };
        self.run_until(4_000, answered);
        self.clients[client].outcome.take().filter(|reply| reply.xid == xid)
    }

    pub(crate) fn write(&mut self, client: usize, ask: impl Into<WireRequest>) -> Option<Reply> {
        self.answer(client, Intent::Write(String::new()), ask.into())
    }

    /// The servers of the configuration in force.
    pub(crate) fn members(&self) -> Vec<i64> {
        self.reference.membership().servers.keys().map(|id| id.0).collect()
    }

    pub(crate) fn all_serve(&self) -> bool {
        let ids = self.members();
        self.leader().is_some_and(|leader| {
            let epoch = self.epoch_of(leader);
            ids.iter().all(|id| self.serves(*id) && self.epoch_of(*id) <= epoch)
        })
    }

    pub(crate) fn must_come_back(&mut self) {
        self.heal();
        self.idle_until = if self.shape.idle_end { u64::MAX } else { 0 };
        let mut back = self.all_come_back();
        while let Some(leader) =
            self.leader().filter(|leader| !back && self.waits_for_the_next_epoch(*leader))
        {
            self.count("outside until the next epoch");
            self.take_down(leader);
            self.start_if_down(leader);
            back = self.all_come_back();
        }
        self.idle_until = 0;
        let modes: Vec<_> = self.ids().into_iter().map(|id| (id, self.mode(id))).collect();
        assert!(back, "[liveness] no server leads, or a server does not follow: {modes:?}");
        self.run(2_000);
        self.assert_every_member_takes_a_write();
        self.contenders_have_their_turn();
        self.contenders_leave();
        self.sessions_end_and_stay();
        self.assert_all_have_the_same();
    }

    fn all_come_back(&mut self) -> bool {
        (0..15).any(|_| {
            self.start_the_forgotten();
            self.run_until(1_000, World::all_serve)
        })
    }

    /// Whether each server that does not serve has promised a later epoch than the leader's (see "Open" in
    /// docs/simulation.md). A new epoch brings them closer.
    fn waits_for_the_next_epoch(&self, leader: i64) -> bool {
        let epoch = self.epoch_of(leader);
        let outside = |id: i64| self.mode(id).is_some() && self.nodes[&id].disk.accepted() > epoch;
        self.members().iter().all(|id| self.serves(*id) || outside(*id))
    }

    fn assert_every_member_takes_a_write(&mut self) {
        // A short epoch may end at that moment, and an observer joins each one late.
        let tries = if self.shape.epoch == NO_END { 1 } else { 12 };
        for id in self.members() {
            assert!((0..tries).any(|_| self.write_through(id)), "[liveness] server {id} takes no write");
        }
    }

    fn write_through(&mut self, id: i64) -> bool {
        self.run_until(2_000, |world| world.serves(id));
        let Some(client) = self.try_join(id) else { return false };
        let ephemeral = self.shape.local != LocalSessions::Fixed;
        self.clients[client].asked_for_ephemeral = ephemeral;
        let probe = wire::create(&format!("/probe{id}-")).sequential();
        let reply = self.write(client, if ephemeral { probe.ephemeral() } else { probe });
        reply.is_some_and(|reply| reply.result.is_ok())
    }

    /// Half of the clients leave without closing; the others only keep their sessions.
    fn sessions_end_and_stay(&mut self) {
        self.quiet = true;
        self.clients.iter_mut().for_each(|client| client.away_until = 0);
        for client in (0..self.clients.len()).filter(|client| client % 2 == 0) {
            self.clients[client].retired = true;
        }
        self.run(1_500);
        let here = |world: &World| {
            let live = world.clients.iter().filter(|client| !client.retired && client.open);
            live.filter_map(|client| client.session).collect::<BTreeSet<_>>()
        };
        let (mut live, epochs) = (here(self), self.reference.epochs());
        let local = self.connections_of_local_sessions();
        self.run(6_000);
        // A local session lives at one server only. A client that loses its connection because it reads too slowly may
        // come to another one.
        for (session, conn) in local {
            if self.net.conns.get(&conn).is_some_and(|conn| conn.sealed) {
                live.remove(&session);
            }
        }
        // A short epoch may have ended a moment ago.
        self.run_until(1_000, |world| live.is_subset(&here(world)));
        // A local session ends with the epoch.
        let forgotten = self.shape.local != LocalSessions::Off && self.reference.epochs() > epochs;
        assert!(
            forgotten || live.is_subset(&here(self)),
            "[session early] the session of a connected client was ended"
        );
        self.assert_nothing_is_promised();
        let live = here(self);
        let local = self.local_sessions();
        for client in self.clients.iter().filter(|client| !client.retired && client.open) {
            let is_local = client.session.is_some_and(|session| local.contains(&session));
            let stays_local = match self.shape.local {
                LocalSessions::Off => false,
                LocalSessions::Upgradeable => !client.asked_for_ephemeral,
                LocalSessions::Fixed => true,
            };
            assert!(is_local || !stays_local, "{client:?} has never needed a global session");
        }
        for node in self.members().iter().map(|id| &self.nodes[id]) {
            let tree = node.server.as_ref().unwrap().tree();
            let sessions: BTreeSet<_> = tree.sessions().map(|(session, _)| session).collect();
            let all: BTreeSet<_> = sessions.union(&local).copied().collect();
            assert_eq!(all, live, "[sessions] exactly the sessions with clients are alive");
            assert!(sessions.is_disjoint(&local), "a session is both global and local");
            for (owner, paths) in tree.ephemerals_by_session() {
                assert!(live.contains(&owner), "[ephemerals] {paths:?} outlive their session");
            }
        }
    }

    /// A server counts the bytes of answers that it owes a connection, and takes no more requests while they are many.
    /// A client that has all its answers must be owed nothing.
    fn assert_nothing_is_promised(&self) {
        for client in self.clients.iter().filter(|client| client.open && client.sent.is_empty()) {
            let Some(conn) = client.conn else { continue };
            let server = self.nodes[&self.net.conns[&conn].member.0].server.as_ref();
            let promised = server.map_or(0, |server| server.reserved_bytes(conn));
            assert_eq!(promised, 0, "[answers] {conn:?} has been answered, and is promised more");
        }
    }

    /// The local sessions of all servers.
    /// The local sessions of clients, each with its connection.
    fn connections_of_local_sessions(&self) -> Vec<(SessionId, ConnId)> {
        let local = self.local_sessions();
        let all = self.clients.iter().filter_map(|client| Some((client.session?, client.conn?)));
        all.filter(|(session, _)| local.contains(session)).collect()
    }

    fn local_sessions(&self) -> BTreeSet<SessionId> {
        let servers = self.nodes.values().filter_map(|node| node.server.as_ref());
        let buckets = servers.flat_map(|server| server.session_buckets(Scope::Local));
        let mut all = BTreeSet::new();
        for session in buckets.flat_map(|(_, sessions)| sessions) {
            assert!(all.insert(session), "{session:?} is a local session of two");
        }
        all
    }

    /// Asserts that a member would start with the configuration that was agreed on last, if there was one.
    fn assert_configuration(&self, id: i64) {
        let agreed = self.reference.membership();
        if agreed.version > 0 && self.nodes[&id].disk.waiting() == 0 {
            let (active, _) = self.nodes[&id].disk.configuration().unwrap();
            assert_eq!(active, *agreed, "[configuration] {id} has another");
        }
    }

    fn assert_all_have_the_same(&mut self) {
        // The deletion of an empty container may still be under way.
        self.run_until(2_000, |world| {
            let settled = |id: &i64| {
                let node = &world.nodes[id];
                let applied = node.server.as_ref().map(|server| server.tree().last_processed());
                // The begin of an epoch is applied, and is no transaction of the log.
                let has_all = applied >= Some(world.reference.last()) && applied >= Some(node.history.last());
                has_all && node.disk.waiting() == 0
            };
            world.members().iter().all(settled)
        });
        let last = self.reference.last();
        for id in self.members() {
            let node = &self.nodes[&id];
            let tree = node.server.as_ref().unwrap().tree();
            self.reference.applied(id, tree, &node.history);
            self.reference.model.assert_is(id, tree);
            self.assert_configuration(id);
            assert!(tree.last_processed() >= last, "[liveness] {id} lags behind: {}", tree.last_processed());
            assert_eq!(tree.node_count(), self.reference.tree().node_count(), "{id}");
            assert_eq!(node.disk.waiting(), 0);
            let (on_disk, history) = self.node(id).disk.look();
            self.reference.applied(id, &on_disk, &history);
            self.reference.model.assert_is(id, &on_disk);
            assert!(
                on_disk.last_processed() >= last,
                "[durable] {id} has everything in memory but not on disk"
            );
        }
    }
}
