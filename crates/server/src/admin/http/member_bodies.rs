//! The members of the answers of commands that show a server's place in its ensemble.

use super::{bodies::object, json::Object};
use ostler_proto::{
    id::Zxid,
    membership::{ClientAddress, Member, PeerAddress},
};
use ostler_server_core::quorum::{MemberMode, MemberReport, ZabStage};
use serde_json::{Value, json};

/// A server's place, as the commands show it.
pub(super) struct Place<'a> {
    /// `None` for a standalone server.
    pub(super) member: Option<&'a MemberReport>,
    pub(super) mode: Option<MemberMode>,
    pub(super) zxid: Zxid,
}

/// An error takes the first place, as in Java.
pub(super) fn leader(of: &Place<'_>) -> Object {
    let (Some(member), Some(leader)) = (of.member, of.member.and_then(|member| member.leader)) else {
        return object(json!({ "error": "server is not initialized" }));
    };
    let host = member.membership.servers.get(&leader).and_then(|server| server.addresses.first());
    object(json!({
        "is_leader": leader == member.me,
        "leader_id": leader.0,
        "leader_ip": host.map_or("", |address| &*address.host),
    }))
}

pub(super) fn zabstate(of: &Place<'_>) -> Object {
    let Some(member) = of.member else {
        return object(json!({ "voting": false, "zabstate": "" }));
    };
    let own = member.membership.servers.get(&member.me);
    let addresses = |port: fn(&PeerAddress) -> u16| addresses(own, port);
    let client = own.and_then(|own| own.client.as_ref()).map(client_text).unwrap_or_default();
    let zxid = of.zxid.0;
    object(json!({
        "myid": member.me.0,
        "is_leader": of.mode == Some(MemberMode::Leader),
        "quorum_address": addresses(|address| address.quorum_port),
        "election_address": addresses(|address| address.election_port),
        "client_address": client,
        "voting": member.votes(),
        "last_zxid": format!("0x{zxid:x}"),
        "zab_epoch": zxid >> 32,
        "zab_counter": zxid & 0xffff_ffff,
        "zabstate": member.stage.name(),
    }))
}

/// As the fields of upstream's MultipleAddresses, none of which is tried for this answer.
fn addresses(own: Option<&Member>, port: fn(&PeerAddress) -> u16) -> Value {
    let all: Vec<&PeerAddress> = own.iter().flat_map(|own| &own.addresses).collect();
    let texts: Vec<String> = all.iter().map(|address| text(&address.host, port(address))).collect();
    let wildcards: Vec<String> = all.iter().map(|address| text("0.0.0.0", port(address))).collect();
    let first = texts.first().cloned().unwrap_or_default();
    json!({
        "empty": texts.is_empty(),
        "all_addresses": texts,
        "wildcard_addresses": wildcards,
        "all_ports": all.iter().map(|address| port(address)).collect::<Vec<_>>(),
        "all_host_strings": all.iter().map(|address| &*address.host).collect::<Vec<_>>(),
        "reachable_address": first,
        "all_reachable_addresses": texts,
        "all_reachable_addresses_or_all": texts,
        "reachable_or_one": first,
        "one": first,
    })
}

fn text(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn client_text(client: &ClientAddress) -> String {
    text(&client.host, client.port)
}

pub(super) fn voting_view(of: &Place<'_>) -> Object {
    let Some(member) = of.member else { return object(json!({ "current_config": {} })) };
    let voters = member.membership.servers.iter().filter(|(id, _)| member.membership.votes(**id));
    let view = |server: &Member| {
        let addresses = |port: fn(&PeerAddress) -> u16| -> Vec<String> {
            server.addresses.iter().map(|address| text(&address.host, port(address))).collect()
        };
        json!({
            "server_addresses": addresses(|address| address.quorum_port),
            "election_addresses": addresses(|address| address.election_port),
            "client_address": server.client.as_ref().map(client_text).unwrap_or_default(),
            "learner_type": if server.observer { "observer" } else { "participant" },
        })
    };
    let all: Object = voters.map(|(id, server)| (id.0.to_string(), view(server))).collect();
    object(json!({ "current_config": all }))
}

/// Whether a member, or a standalone server, has a tree that it serves.
pub(super) fn is_serving(of: &Place<'_>) -> bool {
    match of.member {
        None => true,
        Some(member) => member.stage == ZabStage::Broadcast || of.mode == Some(MemberMode::ReadOnly),
    }
}
