//! Seeds of what servers send to clients: scripts for the target `client_session`, and SASL tokens.

use crate::Seeds;
use ostler_sasl::{
    digest_md5::{Profile, SaslCredentials, respond},
    quorum::{Status, packet},
};
use std::io;

/// A pause, a connection, and a handshake that grants 30 seconds.
const CONNECTED: [u8; 12] = [0, 7, 0, 0, 0, 4, 0, 8, 0x75, 0x30, 0, 0];
const ANSWERED: [u8; 5] = [0, 9, 0, 0, 5];
const CHALLENGE: &[u8] = br#"realm="zk-sasl-md5",nonce="a/b+c=",charset=utf-8,algorithm=md5-sess"#;

pub(crate) fn all(seeds: &Seeds) -> io::Result<()> {
    let put = |name: &str, flags: u8, parts: &[&[u8]]| {
        seeds.put("client_session", name, &[&[flags], &parts.concat()[..]].concat())
    };
    let read_with_watch = [0, 0, 0x40, 0, 0];
    let persistent = [0, 0, 0x03, 0, 0];
    let recursive = [0, 0, 0x83, 2, 0];
    let changed = [0, 10, 2, 0, 6];
    put(
        "watch",
        0,
        &[
            &CONNECTED,
            &read_with_watch,
            &ANSWERED,
            &changed,
            &recursive,
            &ANSWERED,
            &changed,
            &changed,
            &[0, 1, 2],
            &ANSWERED,
            &changed,
        ],
    )?;
    let lost = [0, 6, 0, 7, 4, 0];
    put(
        "watches-set-again",
        0,
        &[
            &CONNECTED,
            &persistent,
            &ANSWERED,
            &read_with_watch,
            &ANSWERED,
            &ANSWERED,
            &lost,
            &CONNECTED,
            &ANSWERED,
            &changed,
        ],
    )?;
    let expired = [0, 4, 0, 8, 0, 1, 0, 0];
    put("expired", 2, &[&CONNECTED, &persistent, &ANSWERED, &lost, &expired, &CONNECTED, &read_with_watch])?;
    put("identity-refused", 8, &[&CONNECTED, &[0, 9, 0x8d, 0, 0], &[0, 2], &ANSWERED])?;
    put("queued", 64, &[&read_with_watch, &persistent, &[0, 0, 5, 1, 1], &CONNECTED, &ANSWERED, &[0, 3, 0]])?;
    let length = CHALLENGE.len() as u8;
    put("sasl", 1, &[&CONNECTED, &[0, 9, 0, length + 4, 5, 0, 0, 0, length], CHALLENGE, &ANSWERED])?;

    seeds.put("sasl_tokens", "java", CHALLENGE)?;
    let quoted = br#"realm="a\"b, c",nonce="n=1",charset=utf-8, algorithm=md5-sess,qop="auth-conf, auth""#;
    seeds.put("sasl_tokens", "quoted", quoted)?;
    seeds.put("sasl_tokens", "proof", b"rspauth=ea40f60335c427b5527b84dbabcdfffd")?;
    logins(seeds)
}

/// JAAS files, users, tokens of clients and servers, and the beginning of TLS.
fn logins(seeds: &Seeds) -> io::Result<()> {
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    let server = format!("// users\nServer {{ {module} user_bob=\"b\\\"\" user_ann=x; }};\n");
    seeds.put("jaas", "server", server.as_bytes())?;
    let client = format!("Client {{ {module} username=\"bob\" password=\"${{user.home}}\"; }};");
    seeds.put("jaas", "client", client.as_bytes())?;
    seeds.put("jaas", "users", b"# users\nbob:pw\nann:md5:00112233445566778899aabbccddeeff\n")?;
    let credentials = SaslCredentials { user: "bob".into(), password: "guessed".into() };
    let challenge =
        b"realm=\"zk-sasl-md5\",nonce=\"00112233445566778899aabbccddeeff00112233\",algorithm=md5-sess";
    let answer = respond(Profile::Clients, &credentials, challenge, "c").expect("it is a challenge");
    seeds.put("logins", "response", &answer.token)?;
    seeds.put(
        "logins",
        "quorum",
        &[packet(Status::InProgress, b""), packet(Status::InProgress, b"x")].concat(),
    )?;
    seeds.put("logins", "client-hello", &[0x16, 3, 1, 0, 0xc8, 1, 0, 0, 0xc4, 3, 3])
}
