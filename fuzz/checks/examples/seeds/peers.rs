//! Seeds of what other servers of an ensemble send, and of a member's small files.

use crate::{SMALL, Seeds};
use ostler_data_dir::recovery::write_stream;
use ostler_fuzz_checks::tree_stream::END;
use ostler_proto::{
    acl::{Acl, Perms},
    election::{Candidate, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
    jute::Writer,
    membership::PeerAddress,
    stat::{EphemeralOwner, StatPersisted},
};
use ostler_server::decoders::greeting;
use ostler_tree::Tree;
use std::{fs, io, path::Path};

pub(crate) fn all(seeds: &Seeds, golden: &Path) -> io::Result<()> {
    trees(seeds, golden)?;
    elections(seeds)?;
    memberships(seeds)?;
    let java = fs::read(golden.join("quorum-3.9.5/currentEpoch"))?;
    seeds.put("epoch_file", "java", &java)?;
    seeds.put("epoch_file", "line-end", b"12\n")?;
    seeds.put("epoch_file", "last", b"4294967295")
}

/// Seeds of trees: bodies from Java, a whole stream from Ostler, and streams that no server sends.
fn trees(seeds: &Seeds, golden: &Path) -> io::Result<()> {
    const AS_IT_IS: u8 = 0;
    const ENDED: u8 = 1;
    for version in ["3.8.0", "3.9.5", "quorum-3.9.5"] {
        let fresh = fs::read(golden.join(version).join("snapshot.0"))?;
        let body = &fresh[16..fresh.len().min(SMALL)];
        let end = body.windows(5).position(|at| at == b"\0\0\0\x01/").map_or(body.len(), |at| at);
        seeds.put("tree_stream", version, &[&[ENDED, 7], &body[..end]].concat())?;
    }
    let mut stream = Vec::new();
    write_stream(&Tree::fresh(Default::default()).freeze(), &mut stream)?;
    seeds.put("tree_stream", "ours", &[&[AS_IT_IS, 100], &stream[..], b"behind"].concat())?;
    seeds.put(
        "tree_stream",
        "other-signature",
        &[&[AS_IT_IS, 9], &stream[..stream.len() - 1], b"!"].concat(),
    )?;
    let at = stream.len() - "BenWasHere".len() - 1;
    stream[at] += 1;
    seeds.put("tree_stream", "longer-signature", &[&[AS_IT_IS, 9], &stream[..]].concat())?;

    let node = |path: &str, acl: i64, owner: i64| {
        let mut out = Vec::new();
        out.string(path);
        out.buffer(Some(b"x"));
        out.i64(acl);
        StatPersisted { ephemeral_owner: EphemeralOwner(owner), ..StatPersisted::default() }.write(&mut out);
        out
    };
    let mut body = Vec::new();
    body.length(1);
    body.i64(77);
    body.i32(4000);
    body.length(1);
    body.i64(5);
    ostler_proto::acl::write_acls(&mut body, &[Acl::world(Perms::READ)]);
    body.extend([node("", -1, 0), node("/a", 5, 0), node("/a/e", -1, 77)].concat());
    seeds.put("tree_stream", "session-and-acl", &[&[ENDED, 1], &body[..]].concat())?;
    body.extend(node("", -1, 0));
    seeds.put("tree_stream", "root-twice", &[&[AS_IT_IS, 1], &body[..], END].concat())
}

fn elections(seeds: &Seeds) -> io::Result<()> {
    let config = "server.1=a:1:2:participant\nversion=0";
    let vote = |id: i64| Notification {
        state: PeerState::Looking,
        candidate: Some(Candidate { epoch: Epoch(1), zxid: Zxid(0x1_0000_0002), id: ServerId(id) }),
        round: 3,
        version: 2,
        config: config.into(),
    };
    let mut votes = Vec::new();
    for id in [1, 2] {
        let mut message = Vec::new();
        vote(id).write(&mut message);
        votes.buffer(Some(&message));
    }
    let put = |name: &str, greeting: &[u8]| {
        seeds.put("election_door", name, &[&[3], greeting, &votes[..]].concat())
    };
    let at = |host: &str, election_port| PeerAddress { host: host.into(), quorum_port: 0, election_port };
    put("one-address", &greeting(ServerId(1), &[at("10.0.0.1", 3888)]))?;
    put("everywhere", &greeting(ServerId(-1), &[at("0.0.0.0", 3888)]))?;
    put("oldest", &2i64.to_be_bytes())?;
    put("several-addresses", &greeting(ServerId(3), &[at("zk1", 3888), at("[::1]", 3889)]))?;
    put("no-version", &(-65537i64).to_be_bytes())?;
    let mut long = greeting(ServerId(1), &[at("h", 1)]);
    long.i32(i32::MAX);
    put("long-message", &long)
}

fn memberships(seeds: &Seeds) -> io::Result<()> {
    for (name, text) in [
        (
            "java",
            "server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:observer\nversion=100000000",
        ),
        (
            "groups",
            "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2:observer\ngroup.1=1\ngroup.2=2:3\nweight.2=3\nversion=a",
        ),
        ("several-addresses", "server.1=[::1]:1:2|b:3:4;[::1]:5"),
        ("brackets", "server.1=[[a]:1:2;[ b]:5"),
        ("by-hand", "# mine\n server.7 = zk7:1:2:Participant ; 2181\n\n"),
    ] {
        seeds.put("membership", name, text.as_bytes())?;
    }
    Ok(())
}
