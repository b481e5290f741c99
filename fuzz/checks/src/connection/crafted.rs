//! Crafts valid frames over few znodes, because random bytes seldom give two requests that belong together.

use crate::script::Script;
use ostler_proto::{
    connect::ConnectRequest,
    id::SessionId,
    jute::Writer,
    password,
    reply::{begin_frame, end_frame},
};

const PATHS: [&str; 24] = [
    "/a",
    "/b",
    "/a/c",
    "/a/c/d",
    "/a/s-",
    "/",
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/quota/a",
    "/zookeeper/quota/a/zookeeper_limits",
    "/zookeeper/quota/a/zookeeper_stats",
    "/zookeeper/quota/a/c",
    "/zookeeper/quota/a/c/zookeeper_limits",
    "/zookeeper/quota/a/c/zookeeper_stats",
    "/zookeeper/quota/zookeeper_limits",
    "/zookeeper/quota/zookeeper_stats",
    "/zookeeper/config",
    "",
    "//",
    "/a/",
    "a",
    "/a/s-0000000000",
    "/\u{e9}\u{4e00}",
    "/\u{1f600}",
];

const DATA: [Option<&[u8]>; 12] = [
    None,
    Some(b""),
    Some(b"x"),
    Some(b"0123456789012345678901234567890123456789"),
    Some(b"count=2,bytes=20"),
    Some(b"count=2,bytes=20;byteHardLimit=30;countHardLimit=3"),
    Some(b"count=-1,bytes=-1"),
    Some(b"count=9223372036854775807,bytes=9223372036854775807"),
    Some(b"count=-9223372036854775808,bytes=-9223372036854775808"),
    Some(b"count=1,bytes=9223372036854775807;byteHardLimit=9223372036854775807;countHardLimit=1"),
    Some(b"count=,bytes"),
    Some(b"\xff\xfe"),
];

type AclEntry = (i32, Option<&'static str>, Option<&'static str>);

const ACLS: [Option<&[AclEntry]>; 10] = [
    Some(&[(31, Some("world"), Some("anyone"))]),
    Some(&[(1, Some("world"), Some("anyone"))]),
    Some(&[(31, Some("auth"), Some(""))]),
    Some(&[(30, Some("digest"), Some("u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="))]),
    Some(&[(31, Some("ip"), Some("127.0.0.0/30")), (1, Some("world"), Some("anyone"))]),
    Some(&[]),
    Some(&[(31, None, None)]),
    Some(&[(-1, Some("ip"), Some("::1/128"))]),
    Some(&[(31, Some("nobody"), Some("\u{1f600}"))]),
    None,
];

const CODES: [i32; 8] = [1, 15, 2, 5, 14, 7, 21, 19];
const READS: [i32; 24] =
    [4, 3, 8, 12, 6, 9, 11, 22, 100, 101, 103, 104, 105, 106, 17, 18, 107, 16, 102, -11, 13, 20, -10, 99];
const AUTHS: [(Option<&str>, Option<&[u8]>); 8] = [
    (Some("digest"), Some(b"u:p")),
    (Some("digest"), Some(b"super:fuzz")),
    (Some("digest"), Some(b"nocolon")),
    (Some("digest"), None),
    (Some("ip"), Some(b"")),
    (Some("world"), Some(b"anyone")),
    (Some("nobody"), Some(b"x")),
    (None, Some(b"x")),
];

/// A whole handshake frame.
pub(super) fn handshake(timeout_ms: i32, session: Option<SessionId>) -> Vec<u8> {
    let session = session.unwrap_or_default();
    let mut out = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms,
        session,
        password: Some(&password::password_of(session)),
        read_only: Some(false),
    }
    .write_frame(&mut out);
    out
}

/// A whole request frame. If `kind` is below 5 the request is a write; the script chooses which one.
pub(super) fn request(xid: i32, kind: u8, script: &mut Script<'_>) -> Vec<u8> {
    let code = if kind < 5 { *script.one_of(&CODES) } else { *script.one_of(&READS) };
    let mut out = Vec::new();
    let start = begin_frame(&mut out);
    out.i32(xid);
    out.i32(code);
    body(code, script, &mut out);
    end_frame(&mut out, start);
    out
}

fn body(code: i32, script: &mut Script<'_>, out: &mut Vec<u8>) {
    match code {
        14 | 22 => multi(code, script, out),
        16 => {
            for _ in 0..3 {
                out.buffer(None);
            }
            out.i64(-1);
        }
        100 => {
            let (scheme, auth) = script.one_of(&AUTHS);
            out.i32(0);
            out.buffer(scheme.map(str::as_bytes));
            out.buffer(*auth);
        }
        101 | 105 => {
            out.i64(i64::from(script.byte() as i8));
            for _ in 0..if code == 101 { 3 } else { 5 } {
                let count = usize::from(script.byte() % 3);
                out.length(count);
                for _ in 0..count {
                    out.string(path(script));
                }
            }
        }
        102 => out.buffer(Some(b"token")),
        11 | 107 | -11 => {}
        _ => operation(code, script, out),
    }
}

/// The body of an operation that may be alone or in a multi.
fn operation(code: i32, script: &mut Script<'_>, out: &mut Vec<u8>) {
    out.string(path(script));
    match code {
        1 | 15 | 19 | 21 => {
            out.buffer(*script.one_of(&DATA));
            acl(script, out);
            out.i32(*script.one_of(&[0, 1, 2, 3, 4, 5, 6, 7]));
            if code == 21 {
                out.i64(*script.one_of(&[1, 5000, 0, -1, i64::MAX]));
            }
        }
        2 | 13 => out.i32(version(script)),
        5 => {
            out.buffer(*script.one_of(&DATA));
            out.i32(version(script));
        }
        7 => {
            acl(script, out);
            out.i32(version(script));
        }
        3 | 4 | 8 | 12 => out.bool(script.byte() & 1 != 0),
        17 | 18 | 106 => out.i32(i32::from(script.byte() as i8) % 8),
        _ => {}
    }
}

fn multi(code: i32, script: &mut Script<'_>, out: &mut Vec<u8>) {
    for _ in 0..script.byte() % 6 {
        let op =
            if code == 14 { *script.one_of(&[1, 2, 5, 13, 15, 19, 21]) } else { *script.one_of(&[4, 8]) };
        out.i32(op);
        out.bool(false);
        out.i32(-1);
        operation(op, script, out);
    }
    out.i32(-1);
    out.bool(true);
    out.i32(-1);
}

fn path(script: &mut Script<'_>) -> &'static str {
    script.one_of::<&str>(&PATHS)
}

fn version(script: &mut Script<'_>) -> i32 {
    *script.one_of(&[-1, 0, 1, 2, i32::MAX, i32::MIN])
}

fn acl(script: &mut Script<'_>, out: &mut Vec<u8>) {
    let Some(entries) = script.one_of(&ACLS) else { return out.i32(-1) };
    out.length(entries.len());
    for (perms, scheme, id) in *entries {
        out.i32(*perms);
        out.buffer(scheme.map(str::as_bytes));
        out.buffer(id.map(str::as_bytes));
    }
}
