use super::*;
use crate::gssapi::ContextStep;
use alloc::vec;

/// A context of one token each way, whose wrapped messages begin with `w`.
#[derive(Debug)]
struct Context {
    initiator: &'static str,
    is_client: bool,
    is_begun: bool,
}

impl SecurityContext for Context {
    fn establish(&mut self, _: &[u8]) -> Result<ContextStep, String> {
        let is_first = !core::mem::replace(&mut self.is_begun, true);
        let token = is_first.then(|| b"t".to_vec());
        Ok(ContextStep { token, is_established: !self.is_client || !is_first })
    }

    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
        Ok([b"w", message].concat())
    }

    fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, String> {
        wrapped.strip_prefix(b"w").map(<[u8]>::to_vec).ok_or_else(|| "not wrapped".into())
    }

    fn initiator(&self) -> Result<String, String> {
        Ok(self.initiator.into())
    }
}

fn context(initiator: &'static str, is_client: bool) -> Context {
    Context { initiator, is_client, is_begun: false }
}

fn read(bytes: &[u8]) -> (Status, &[u8]) {
    let (status, length) = read_header(bytes.first_chunk().unwrap()).unwrap();
    assert_eq!(bytes.len(), HEADER + length);
    (status, &bytes[HEADER..])
}

fn digest(password: &str) -> Learner<Context> {
    let credentials = SaslCredentials { user: "zk".into(), password: password.into() };
    Learner::new(OwnLogin::Digest { credentials, cnonce: "c".into() })
}

/// Runs a login to its end.
fn run(
    mut learner: Learner<Context>,
    mut acceptor: Acceptor<Context>,
) -> (Result<(), QuorumLoginError>, Accepted) {
    let mut said = learner.begin().unwrap();
    loop {
        let (status, token) = read(&said);
        let accepted = acceptor.heard(status, token);
        let (Accepted::More(answer) | Accepted::Done(answer) | Accepted::Refused(answer, _)) = &accepted;
        let (status, token) = read(answer);
        match learner.heard(status, token) {
            Ok(Some(next)) => said = next,
            Ok(None) => return (Ok(()), accepted),
            Err(why) => return (Err(why), accepted),
        }
    }
}

/// Runs a login by DIGEST-MD5.
fn log_in(password: &str) -> (Result<(), QuorumLoginError>, Accepted) {
    let users = Arc::new(Users::new(Profile::Quorum, [("zk", "secret")]));
    run(digest(password), Acceptor::new(ExpectedLogin::Digest { users, nonce: "n".into() }))
}

/// Runs a login by Kerberos of this principal at a server that knows the host `zk1`.
fn log_in_as(principal: &'static str) -> (Result<(), QuorumLoginError>, Accepted) {
    let learner = Learner::new(OwnLogin::Gssapi(GssapiClient::new(context(principal, true))));
    let login = GssapiServer::new(context(principal, false));
    run(learner, Acceptor::new(ExpectedLogin::Gssapi { login, hosts: vec!["zk1".into(), "zk2".into()] }))
}

#[test]
fn the_first_packet_is_that_of_java() {
    let first = digest("secret").begin().unwrap();
    assert_eq!(first, [0x5f, 0x24, 0x35, 1, 0x35, 1, 0xed, 0xcc, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn servers_with_the_same_password_let_each_other_in() {
    let (learner, acceptor) = log_in("secret");
    assert_eq!(learner, Ok(()));
    assert!(matches!(acceptor, Accepted::Done(_)));
}

#[test]
fn a_server_with_another_password_is_refused() {
    let (learner, acceptor) = log_in("wrong");
    assert_eq!(learner, Err(QuorumLoginError::RefusedThere));
    let why = QuorumLoginError::RefusedHere(RefusedLogin::WrongPassword);
    assert_eq!(acceptor, Accepted::Refused(packet(Status::Error, b""), why));
}

#[test]
fn a_server_that_proves_nothing_is_not_believed() {
    let mut learner = digest("secret");
    assert_eq!(learner.heard(Status::Success, b""), Err(QuorumLoginError::NotProven));
    let challenge = b"realm=\"zk-quorum-sasl-md5\",nonce=\"n\",charset=utf-8,algorithm=md5-sess";
    assert!(learner.heard(Status::InProgress, challenge).unwrap().is_some());
    assert_eq!(learner.heard(Status::Success, b"rspauth=00"), Err(QuorumLoginError::NotProven));
    assert_eq!(learner.heard(Status::InProgress, challenge), Err(QuorumLoginError::NotProven));
}

#[test]
fn a_success_before_the_steps_of_kerberos_is_not_believed() {
    let mut learner = Learner::new(OwnLogin::Gssapi(GssapiClient::new(context("zk/zk1@R", true))));
    learner.begin().unwrap();
    assert_eq!(learner.heard(Status::Success, b"t"), Err(QuorumLoginError::NotProven));
}

#[test]
fn a_server_whose_principal_has_a_configured_host_is_let_in() {
    let (learner, acceptor) = log_in_as("zkquorum/zk1@R");
    assert_eq!((learner, acceptor), (Ok(()), Accepted::Done(packet(Status::Success, b""))));
}

#[test]
fn principals_of_no_server_are_refused() {
    for principal in [
        "zkquorum/zk3@R",
        "zk1@R",
        "zk1",
        "a/zk1",
        "a/b/zk1@R",
        "x@zk1/R",
        "a/zk1@R@R",
        "a/ZK1@R",
        "a\\/zk1@R",
    ] {
        let (learner, acceptor) = log_in_as(principal);
        assert_eq!(learner, Err(QuorumLoginError::RefusedThere), "{principal}");
        let hosts = "zk1, zk2".into();
        let why = QuorumLoginError::OtherHost { principal: principal.into(), hosts };
        assert_eq!(acceptor, Accepted::Refused(packet(Status::Error, b""), why));
    }
}

#[test]
fn an_identity_of_another_server_is_refused() {
    let login = GssapiServer::new(context("zkquorum/zk1@R", false));
    let mut acceptor = Acceptor::new(ExpectedLogin::Gssapi { login, hosts: vec!["zk1".into()] });
    acceptor.heard(Status::InProgress, b"t");
    acceptor.heard(Status::InProgress, b"");
    let answer = acceptor.heard(Status::InProgress, b"w\x01\x00\x00\x00zkquorum/zk2@R");
    assert!(matches!(answer, Accepted::Refused(_, QuorumLoginError::OtherIdentity { .. })), "{answer:?}");
}

#[test]
fn headers_out_of_range_are_refused() {
    let mut header = *packet(Status::InProgress, b"").first_chunk::<HEADER>().unwrap();
    header[12..].copy_from_slice(&(TOKEN_MAX + 1).to_be_bytes());
    assert_eq!(read_header(&header), Err(QuorumLoginError::Malformed));
    header[12..].copy_from_slice(&(-1_i32).to_be_bytes());
    assert_eq!(read_header(&header), Ok((Status::InProgress, 0)));
    header[11] = 7;
    assert_eq!(read_header(&header), Err(QuorumLoginError::Malformed));
    header[0] = 0;
    assert_eq!(read_header(&header), Err(QuorumLoginError::NoPacket));
}

/// A context that never comes to an end.
#[derive(Debug)]
struct Endless;

impl SecurityContext for Endless {
    fn establish(&mut self, _: &[u8]) -> Result<ContextStep, String> {
        Ok(ContextStep { token: Some(b"more".to_vec()), is_established: false })
    }

    fn wrap(&mut self, _: &[u8]) -> Result<Vec<u8>, String> {
        Err("not established".into())
    }

    fn unwrap(&mut self, _: &[u8]) -> Result<Vec<u8>, String> {
        Err("not established".into())
    }

    fn initiator(&self) -> Result<String, String> {
        Err("not established".into())
    }
}

#[test]
fn a_login_has_as_many_tokens_as_upstream_allows() {
    let login = GssapiServer::new(Endless);
    let mut acceptor = Acceptor::new(ExpectedLogin::Gssapi { login, hosts: vec![] });
    for token in 1..=ROUNDS_MAX {
        assert!(matches!(acceptor.heard(Status::InProgress, b"t"), Accepted::More(_)), "token {token}");
    }
    let refused = acceptor.heard(Status::InProgress, b"t");
    assert_eq!(refused, Accepted::Refused(packet(Status::Error, b""), QuorumLoginError::TooManyRounds));
}

#[test]
fn a_caller_that_gives_up_is_refused() {
    let users = Arc::new(Users::new(Profile::Quorum, [("zk", "secret")]));
    let mut acceptor: Acceptor<Context> = Acceptor::new(ExpectedLogin::Digest { users, nonce: "n".into() });
    let refused = acceptor.heard(Status::Error, b"");
    assert_eq!(refused, Accepted::Refused(packet(Status::Error, b""), QuorumLoginError::RefusedThere));
}
