//! The clients of a trace, and their requests.

use crate::{packets, world::World};
use ostler_proto::{
    acl::{Acl, Perms, write_acls},
    connect::ConnectRequest,
    id::{ServerId, SessionId, Xid},
    jute::Writer,
    op::Op,
    password::password_of,
    request::RequestHeader,
};
use ostler_server_core::{ClientRequest, ConnId, Input};

const TIMEOUT_MS: i32 = 10_000;

/// A client with a session, or one that asks for one.
#[derive(Default)]
pub(crate) struct Client {
    session: SessionId,
    xid: i32,
    connections: u64,
    /// Its last connection.
    conn: Option<ConnId>,
}

/// A connection of a client, at its server's end.
pub(crate) struct Conn {
    pub(crate) at: i64,
    /// The name of the client, with a number from its second connection on.
    pub(crate) name: String,
    pub(crate) open: bool,
}

impl World {
    /// The client connects, for a new session or with the one that it has.
    pub(crate) fn client_connects(&mut self, name: &str, at: i64) {
        let conn = ConnId(self.conns.len() as u64 + 1);
        let client = self.clients.entry(name.to_owned()).or_default();
        client.connections += 1;
        client.conn = Some(conn);
        let label =
            if client.connections == 1 { name.to_owned() } else { format!("{name}#{}", client.connections) };
        let session = client.session;
        self.conns.insert(conn, Conn { at, name: label.clone(), open: true });
        // The id of a session is made of this, so the name of a new one is known already.
        let chance = conn.0;
        self.names.insert(SessionId::random(ServerId(at), chance), name.to_owned());
        let what = if session == SessionId::NONE {
            "asks for a session".to_owned()
        } else {
            format!("comes back with {}", packets::session(&self.names, session))
        };
        self.input(format!("{at} <- client {label} {what}"));
        let password = password_of(session);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: TIMEOUT_MS,
            session,
            password: Some(&password),
            read_only: Some(false),
        };
        self.step(at, Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
        self.step(at, Input::Connect { conn, request, chance });
    }

    pub(crate) fn client_disconnects(&mut self, name: &str) {
        let conn = self.clients[name].conn.unwrap();
        self.conn_ends(conn);
    }

    /// The server learns that a connection is gone.
    pub(crate) fn conn_ends(&mut self, conn: ConnId) {
        let of = self.conns.get_mut(&conn).unwrap();
        if std::mem::replace(&mut of.open, false) {
            let (at, name) = (of.at, of.name.clone());
            self.input(format!("{at} loses the connection of client {name}"));
            self.step(at, Input::Disconnected { conn });
        }
    }

    pub(crate) fn session_granted(&mut self, conn: ConnId, session: SessionId) {
        let client = self.clients.values_mut().find(|client| client.conn == Some(conn));
        client.into_iter().for_each(|client| client.session = session);
    }

    pub(crate) fn client_asks(&mut self, name: &str, words: &[&str]) {
        let (op, body) = request(words);
        let client = self.clients.get_mut(name).unwrap();
        let (conn, mut xid) = (client.conn.unwrap(), Xid::PING);
        if op != Op::Ping {
            client.xid += 1;
            xid = Xid(client.xid);
        }
        let (at, label) = (self.conns[&conn].at, self.conns[&conn].name.clone());
        self.input(format!("{at} <- client {label} xid {} {}", xid.0, words.join(" ")));
        let mut payload = Vec::new();
        RequestHeader { xid, code: op.code() }.write(&mut payload);
        payload.extend(body);
        let request = ClientRequest::decode(&payload).unwrap();
        self.step(at, Input::Request { conn, request });
    }
}

/// `create /a`, `create ephemeral /a`, `set /a x`, `get /a`, `watch /a`, `delete /a`, `sync /`, `ping`, `close`,
/// `reconfig add server.4=...`, `reconfig remove 3`.
fn request(words: &[&str]) -> (Op, Vec<u8>) {
    let mut body = Vec::new();
    let op = match words {
        ["create", flags @ .., path] => {
            body.string(path);
            body.buffer(Some(b""));
            write_acls(&mut body, &[Acl::world(Perms::ALL)]);
            body.i32(i32::from(flags == ["ephemeral"]));
            Op::Create
        }
        ["set", path, data] => {
            body.string(path);
            body.buffer(Some(data.as_bytes()));
            body.i32(-1);
            Op::SetData
        }
        ["get" | "watch", path] => {
            body.string(path);
            body.bool(words[0] == "watch");
            Op::GetData
        }
        ["delete", path] => {
            body.string(path);
            body.i32(-1);
            Op::Delete
        }
        ["sync", path] => {
            body.string(path);
            Op::Sync
        }
        ["ping"] => Op::Ping,
        ["close"] => Op::CloseSession,
        ["reconfig", kind, change] => {
            for which in ["add", "remove", "members"] {
                body.buffer((which == *kind).then_some(change.as_bytes()));
            }
            body.i64(-1);
            Op::Reconfig
        }
        _ => panic!("there is no request {words:?}"),
    };
    (op, body)
}
