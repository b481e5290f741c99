//! Writes `fuzz/seeds/`: small inputs from which each target starts, made from golden files of Java servers and from
//! requests of clients. Run from anywhere: `cargo run --package ostler-fuzz-checks --example seeds`.

mod clients;
mod peers;
mod stores;

use ostler_fuzz_checks::{log_files, ram_disk::RamDisk};
use ostler_proto::{
    acl::{Acl, Perms},
    connect::{ConnectRequest, ConnectResponse},
    event::{self, EventType},
    id::{SessionId, Zxid},
    jute::Writer,
    password::password_of,
    reply::{begin_frame, end_frame},
    stat::{EphemeralOwner, Stat, StatPersisted},
    txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
};
use ostler_server::admin::four_letter::Word;
use ostler_storage::txnlog::{Advance, LogFileReader};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Larger records and files make poor seeds.
pub(crate) const SMALL: usize = 1500;

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = here.join("../../crates/storage/tests/golden");
    let seeds = Seeds { dir: here.join("../../fuzz/seeds") };
    wire(&seeds)?;
    logs(&seeds, &golden)?;
    replays(&seeds)?;
    odd_snapshots(&seeds)?;
    snapshots(&seeds, &golden)?;
    configurations(&seeds)?;
    words(&seeds)?;
    connections(&seeds)?;
    peers::all(&seeds, &golden)?;
    clients::all(&seeds)?;
    stores::all(&seeds, &here.join("../../crates/tls/tests/data"))
}

pub(crate) struct Seeds {
    dir: PathBuf,
}

impl Seeds {
    pub(crate) fn put(&self, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let dir = self.dir.join(target);
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(name), bytes)
    }
}

fn handshake(session: SessionId, read_only: Option<bool>) -> Vec<u8> {
    let mut out = Vec::new();
    let password = password_of(session);
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: 30_000,
        session,
        password: Some(&password),
        read_only,
    }
    .write_frame(&mut out);
    out
}

fn wire(seeds: &Seeds) -> io::Result<()> {
    let new = handshake(SessionId::NONE, Some(false));
    seeds.put("connect", "new", &new[4..])?;
    seeds.put("connect", "old-client", &handshake(SessionId::NONE, None)[4..])?;
    seeds.put("connect", "again", &handshake(SessionId(0x0100_0019_eb46_0005), Some(true))[4..])?;
    let mut answer = Vec::new();
    ConnectResponse { timeout_ms: 4000, session: SessionId(7), password: [9; 16], read_only: Some(false) }
        .write_frame(&mut answer);
    seeds.put("connect", "answer", &answer[4..])?;

    let mut stream = vec![10];
    stream.extend(&new);
    for (name, payload) in requests() {
        seeds.put("request", name, &payload)?;
        stream.extend((payload.len() as u32).to_be_bytes());
        stream.extend(&payload);
    }
    seeds.put("frames", "stream", &stream)?;
    seeds.put("frames", "negative", &[2, 0xff, 0xff, 0xff, 0xff])?;
    seeds.put("frames", "too-long", &[2, 0x7f, 0xff, 0xff, 0xff, 1])?;
    replies(seeds)
}

fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let acl = |out: &mut Vec<u8>| {
        out.length(1);
        out.i32(31);
        out.string("world");
        out.string("anyone");
    };
    let create = |out: &mut Vec<u8>, flags: i32| {
        out.string("/a");
        out.buffer(Some(b"data"));
        acl(out);
        out.i32(flags);
    };
    type Body<'b> = &'b dyn Fn(&mut Vec<u8>);
    let all: [(&'static str, i32, Body<'_>); 24] = [
        ("create", 1, &|out| create(out, 0)),
        ("create2", 15, &|out| create(out, 3)),
        ("create-container", 19, &|out| create(out, 4)),
        ("create-ttl", 21, &|out| {
            create(out, 5);
            out.i64(1000);
        }),
        ("delete", 2, &|out| {
            out.string("/a");
            out.i32(-1);
        }),
        ("exists", 3, &|out| {
            out.string("/a");
            out.bool(true);
        }),
        ("get-data", 4, &|out| {
            out.string("/a");
            out.bool(false);
        }),
        ("set-data", 5, &|out| {
            out.string("/a");
            out.buffer(None);
            out.i32(3);
        }),
        ("get-acl", 6, &|out| out.string("/a")),
        ("set-acl", 7, &|out| {
            out.string("/a");
            acl(out);
            out.i32(-1);
        }),
        ("sync", 9, &|out| out.string("/")),
        ("ping", 11, &|_| {}),
        ("get-children2", 12, &|out| {
            out.string("/");
            out.bool(true);
        }),
        ("multi", 14, &|out| {
            for code in [1, 13] {
                out.i32(code);
                out.bool(false);
                out.i32(-1);
                if code == 1 { create(out, 0) } else { out.raw(b"\0\0\0\x02/a\0\0\0\0") }
            }
            out.raw(b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
        }),
        ("multi-read", 22, &|out| {
            out.raw(b"\0\0\0\x04\0\xff\xff\xff\xff\0\0\0\x02/a\0");
            out.raw(b"\0\0\0\x08\0\xff\xff\xff\xff\0\0\0\x01/\0");
            out.raw(b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
        }),
        ("reconfig", 16, &|out| {
            out.buffer(None);
            out.buffer(None);
            out.string("server.1=a:1:2;3");
            out.i64(-1);
        }),
        ("auth", 100, &|out| {
            out.i32(0);
            out.string("digest");
            out.buffer(Some(b"user:password"));
        }),
        ("set-watches", 101, &|out| {
            out.i64(1);
            for path in ["/a", "/b", "/c"] {
                out.length(1);
                out.string(path);
            }
        }),
        ("set-watches2", 105, &|out| {
            out.i64(-1);
            for _ in 0..5 {
                out.length(1);
                out.string("/a");
            }
        }),
        ("add-watch", 106, &|out| {
            out.string("/a");
            out.i32(1);
        }),
        ("remove-watches", 18, &|out| {
            out.string("/a");
            out.i32(3);
        }),
        ("get-ephemerals", 103, &|out| out.string("/")),
        ("who-am-i", 107, &|_| {}),
        ("close", -11, &|_| {}),
    ];
    let whole = |(at, (name, code, body)): (usize, (&'static str, i32, Body<'_>))| {
        let mut out = Vec::new();
        out.i32(at as i32 + 1);
        out.i32(code);
        body(&mut out);
        (name, out)
    };
    all.into_iter().enumerate().map(whole).collect()
}

fn replies(seeds: &Seeds) -> io::Result<()> {
    let header = |kind: u8, xid: i32, error: i32| {
        let mut out = vec![kind];
        out.i32(xid);
        out.i64(7);
        out.i32(error);
        out
    };
    let stat = |out: &mut Vec<u8>| Stat { data_length: 3, num_children: 1, ..Stat::default() }.write(out);
    for (kind, name) in
        ["path", "path-stat", "data", "children", "acl", "ids", "stat"].into_iter().enumerate()
    {
        let mut out = header(kind as u8, 1, 0);
        match kind {
            0..=2 => out.string("/a"),
            3 => out.raw(b"\0\0\0\x02\0\0\0\x01a\0\0\0\x01b"),
            4 => out.raw(b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone"),
            5 => out.raw(b"\0\0\0\x01\0\0\0\x02ip\0\0\0\x09127.0.0.1"),
            _ => {}
        }
        stat(&mut out);
        seeds.put("reply", name, &out)?;
    }
    seeds.put("reply", "error", &header(0, 1, -101))?;
    let mut multi = header(7, 1, 0);
    multi.raw(b"\0\0\0\x01\0\0\0\0\0\0\0\0\x02/a\xff\xff\xff\xff\0\xff\xff\xff\x9b\xff\xff\xff\x9b");
    multi.raw(b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
    seeds.put("reply", "multi", &multi)?;
    let mut frame = Vec::new();
    event::write_frame(&mut frame, Some(Zxid(9)), EventType::NodeDataChanged, "/a");
    frame.splice(..4, [0]);
    seeds.put("reply", "notification", &frame)
}

/// Seeds of logs: single records, files as they are, and files as lists of records.
fn logs(seeds: &Seeds, golden: &Path) -> io::Result<()> {
    for (name, log) in [("single", "3.9.5/log.1"), ("quorum", "quorum-3.9.5/log.100000001")] {
        let disk = RamDisk::default();
        let path = Path::new("/log.1");
        disk.put(path, fs::read(golden.join(log))?);
        let mut reader = LogFileReader::open(&disk, path).map_err(io::Error::other)?;
        let (mut file, mut list) = (log_files::HEADER.to_vec(), Vec::new());
        while let Ok(Advance::Record(zxid)) = reader.advance() {
            let Some(record) = reader.record().filter(|record| record.bytes.len() < SMALL) else { break };
            seeds.put("txn_record", &format!("{name}-{:x}", zxid.0), record.bytes)?;
            log_files::frame_record(record.bytes, &mut file);
            list.extend((record.bytes.len() as u16).to_be_bytes());
            list.extend_from_slice(record.bytes);
        }
        file.extend([0; 64]);
        seeds.put("log_reader", &format!("{name}-file"), &[&[0], &file[..]].concat())?;
        seeds.put("log_reader", &format!("{name}-torn"), &[&[0], &file[..file.len() - 70]].concat())?;
        seeds.put("log_reader", &format!("{name}-records"), &[&[1], &list[..]].concat())?;
        seeds.put("log_reader", &format!("{name}-log-alone"), &[&[3], &list[..]].concat())?;
    }
    Ok(())
}

/// Replays over a fuzzy snapshot of Java: a parent is deleted while a child from a later transaction exists already.
fn replays(seeds: &Seeds) -> io::Result<()> {
    let create = |path: &'static str| {
        Txn::Create(CreateTxn {
            kind: TxnCreateKind::Create,
            path: path.into(),
            data: Some(b"x"),
            acl: vec![Acl::world(Perms::ALL)].into(),
            ephemeral: false,
            parent_cversion: -1,
        })
    };
    let delete = |path: &'static str| Txn::Delete { reaped: false, path: path.into() };
    let txns = [create("/a"), create("/a/c"), delete("/a"), create("/a"), create("/a/c"), delete("/a/c")];
    let mut list = vec![1];
    for (at, txn) in txns.into_iter().enumerate() {
        let zxid = Zxid(at as u64 + 1);
        let header = TxnHeader { session: SessionId(7), cxid: 1, zxid, time_ms: 1, code: txn.code() };
        let mut record = Vec::new();
        TxnRecord { header, txn, digest: None }.write(&mut record);
        list.extend((record.len() as u16).to_be_bytes());
        list.extend(record);
        // The state after each of them.
        seeds.put("log_reader", &format!("recreated-parent-{at}"), &list)?;
    }
    Ok(())
}

/// Sealed snapshots that no server writes: a znode twice, no root, a znode below an ephemeral one (a TTL znode looks
/// ephemeral to a server that has TTL znodes disabled).
fn odd_snapshots(seeds: &Seeds) -> io::Result<()> {
    let node = |path: &str, owner: i64| {
        let mut out = Vec::new();
        out.string(path);
        out.buffer(Some(b"x"));
        out.i64(-1);
        StatPersisted { ephemeral_owner: EphemeralOwner(owner), ..StatPersisted::default() }.write(&mut out);
        out
    };
    let root = node("", 0);
    for (name, nodes) in [
        ("twice", [root.clone(), node("/a", 0), node("/a", 0)].concat()),
        ("root-twice", [root.clone(), node("/a", 0), root.clone()].concat()),
        ("no-root", node("/zookeeper", 0)),
        ("below-an-ephemeral", [root.clone(), node("/a", 77), node("/a/b", 0)].concat()),
        ("no-name", [node("", 5), node("//", 0)].concat()),
        ("no-name-above", [root.clone(), node("//a", 0)].concat()),
        ("no-name-below", [root, node("/a", 5), node("/a/", 0)].concat()),
    ] {
        // No sessions, no ACLs.
        let body = [&[0; 8][..], &nodes].concat();
        let size = (body.len() as u16).to_be_bytes();
        seeds.put("snapshot_plain", name, &[&[3], &size[..], &body].concat())?;
    }
    Ok(())
}

fn snapshots(seeds: &Seeds, golden: &Path) -> io::Result<()> {
    const AS_IT_IS: u8 = 0;
    const PACKED: u8 = 1;
    const SEALED: u8 = 2;
    let forms = [("snapshot_plain", ""), ("snapshot_gz", ".gz"), ("snapshot_snappy", ".snappy")];
    for version in ["3.8.0", "3.9.5"] {
        let fresh = fs::read(golden.join(version).join("snapshot.0"))?;
        // Between the header and the end mark in front of the first seal.
        let body = &fresh[16..fresh.len().min(SMALL)];
        let end = body.windows(5).position(|at| at == b"\0\0\0\x01/").map_or(body.len(), |at| at);
        let body = &body[..end];
        let sealed =
            [&(body.len() as u16).to_be_bytes(), body, &[0; 8], &[0, 0, 0, 2], &[7; 8], &[0; 8]].concat();
        for (target, suffix) in forms {
            if !suffix.is_empty() {
                let file = fs::read(golden.join(version).join(format!("snapshot.1a{suffix}")))?;
                seeds.put(target, &format!("{version}-whole"), &[&[AS_IT_IS], &file[..]].concat())?;
            }
            seeds.put(target, &format!("{version}-fresh"), &[&[PACKED], &fresh[..]].concat())?;
            seeds.put(target, &format!("{version}-sealed"), &[&[PACKED | SEALED], &sealed[..]].concat())?;
        }
    }
    let whole = fs::read(golden.join("3.9.5/snapshot.1a"))?;
    seeds.put("snapshot_plain", "3.9.5-whole", &[&[AS_IT_IS], &whole[..]].concat())
}

fn configurations(seeds: &Seeds) -> io::Result<()> {
    let small = "tickTime=2000\ndataDir=/var/lib/zookeeper\nclientPort=2181\n";
    seeds.put("zoo_cfg", "small", small.as_bytes())?;
    let all = "# all sorts\ntickTime = 2000\ndataDir:/d\ndataLogDir /l\nclientPort=2181\n\
               clientPortAddress=127.0.0.1\nmaxClientCnxns=60\nminSessionTimeout=4000\n\
               maxSessionTimeout=40000\nautopurge.snapRetainCount=3\nautopurge.purgeInterval=1\n\
               4lw.commands.whitelist=stat, ruok\nsnapshot.compression.method=gz\npreAllocSize=65536\n\
               enforce.auth.enabled=true\nenforce.auth.schemes=digest\nextendedTypesEnabled=true\n";
    seeds.put("zoo_cfg", "many", all.as_bytes())?;
    let ensemble = "dataDir=/d\nserver.1=127.0.0.1:2888:3888:participant;127.0.0.1:2181\nclientPort=2181\n";
    seeds.put("zoo_cfg", "one-server", ensemble.as_bytes())?;
    let dynamic = "dataDir=@\ndynamicConfigFile=@/zoo.cfg.dynamic\nclientPort=2181\n\0\0\
                   server.1=127.0.0.1:2888:3888\nserver.2=127.0.0.2:2888:3888\n\x002\n";
    seeds.put("zoo_cfg", "dynamic", dynamic.as_bytes())?;
    let refused = "dataDir=/d\nclientPort=2181\nsecureClientPort=2281\n";
    seeds.put("zoo_cfg", "tls", refused.as_bytes())?;
    let flags = "dataDir=/d\nclientPort=1\n\0-Dzookeeper.skipACL=yes -Xmx1g '-Djute.maxbuffer=4194304'";
    seeds.put("zoo_cfg", "flags", flags.as_bytes())
}

fn words(seeds: &Seeds) -> io::Result<()> {
    for word in Word::ALL {
        let mut bytes = vec![0];
        bytes.extend_from_slice(word.name().as_bytes());
        bytes.extend_from_slice(
            b"\x0astat, *,no\0\x053.9.5\0\x01\x02\x03\x00\x01\x02\x0a\x01\x01\x00\x02/a\x02/b",
        );
        bytes.extend_from_slice(b"\x02\x00\x01\x02/e\x03\x00\x02\x04\x00\x03\x02/q");
        seeds.put("four_letter_words", word.name(), &bytes)?;
    }
    seeds.put("four_letter_words", "telnet", b"\0\xff\xf4\xff\xfd\0")
}

/// Scripts for the target `connection`; `connection.rs` shows what the choices mean.
fn connections(seeds: &Seeds) -> io::Result<()> {
    let handshake = handshake(SessionId::NONE, Some(false));
    let mut raw = vec![0, 0, handshake.len() as u8];
    raw.extend(&handshake);
    raw.push(0xf4);
    for (_, payload) in requests() {
        raw.extend([1, payload.len() as u8]);
        raw.extend(payload);
        raw.push(4);
    }
    seeds.put("connection", "every-request", &raw)?;

    // create /a, persist, read it with a watch from another client, change it, persist.
    let watched =
        [0, 2, 0, 40, 0x12, 0, 40, 0xf4, 8, 0, 0, 2, 0, 0, 0xf4, 0x1d, 0, 0, 1, 8, 3, 0, 2, 0, 0xf4];
    seeds.put("connection", "watch", &watched)?;
    // A quota on /a, then usage near the largest number.
    let mut quota = vec![1, 2, 0, 40, 0xf4];
    for (path, data) in [(0, 2), (8, 2), (9, 5), (10, 7), (2, 2), (3, 2)] {
        quota.extend([8, 0, path, data, 0, 0, 0xf4]);
    }
    quota.extend([8, 3, 10, 7, 0, 0xf4, 8, 0, 2, 3, 0, 0, 0xf4]);
    seeds.put("connection", "quota", &quota)?;
    // Ephemerals and containers, a session that reconnects, time that passes.
    let passing = [
        0x40, 2, 0, 40, 0xf4, 8, 0, 0, 2, 0, 4, 0xf4, 8, 0, 2, 2, 0, 1, 8, 0, 3, 2, 0, 2, 0xf4, 0x13, 0,
        0x15, 1, 0x15, 0x0f, 0xff, 0xf4, 5, 0xff, 0xff, 0xf4, 7, 5, 0xff, 0xff, 0xf4,
    ];
    seeds.put("connection", "time", &passing)?;

    // A frame within which another one ends.
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    frame.raw(b"\0\0\0");
    end_frame(&mut frame, start);
    seeds.put("connection", "short-header", &[&raw[..handshake.len() + 5], &[0, 7], &frame[..]].concat())
}
