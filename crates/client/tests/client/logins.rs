//! SASL logins at a server with a file of users.

use crate::server::TestServer;
use ostler_client::{Acl, Client, Error, ErrorCode, Id, Perms};
use ostler_server::config::{SaslSettings, ServerConfig};
use std::time::Duration;

struct LoginServer {
    server: TestServer,
    _folder: tempfile::TempDir,
}

fn start(adjust: impl FnOnce(&mut ServerConfig)) -> LoginServer {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    std::fs::write(&file, "bob:bobsecret\nsuper:adminsecret\nann:annsecret\n").unwrap();
    let server = TestServer::start_with(|config| {
        config.auth.sasl = Some(SaslSettings::UsersFile(file));
        config.auth.sasl_acls = true;
        adjust(config);
    });
    LoginServer { server, _folder: folder }
}

impl LoginServer {
    async fn login(&self, user: &str, password: &str) -> Result<Client, Error> {
        let builder = Client::builder(&self.server.address.to_string());
        let builder = builder.connection_timeout(Duration::from_secs(2));
        builder.sasl_digest_md5(user, password).connect().await
    }
}

fn acl_of(user: &str) -> [Acl; 1] {
    [Acl { perms: Perms::ALL, id: Id::new("sasl", user) }]
}

#[tokio::test]
async fn only_the_user_of_an_acl_may_read() {
    let server = start(|_| {});
    let bob = server.login("bob", "bobsecret").await.unwrap();
    bob.create("/mine", b"x").acl(&acl_of("bob")).await.unwrap();
    assert_eq!(bob.get_data("/mine").await.unwrap().0, b"x"[..]);
    let ann = server.login("ann", "annsecret").await.unwrap();
    assert_eq!(ann.get_data("/mine").await.unwrap_err().code(), Some(ErrorCode::NoAuth));
    let nobody = Client::connect(&server.server.address.to_string()).await.unwrap();
    assert_eq!(nobody.get_data("/mine").await.unwrap_err().code(), Some(ErrorCode::NoAuth));
    // Every entry of the scheme is for the user of this name.
    let all = server.login("super", "adminsecret").await.unwrap();
    assert_eq!(all.get_data("/mine").await.unwrap().0, b"x"[..]);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_are_refused() {
    let server = start(|_| {});
    for (user, password) in [("bob", "wrong"), ("eve", "bobsecret"), ("bob", "")] {
        assert!(matches!(server.login(user, password).await, Err(Error::AuthFailed)), "{user}");
    }
}

#[tokio::test]
async fn whoever_waits_for_a_session_learns_that_the_login_is_refused() {
    let server = start(|_| {});
    let builder = Client::builder(&server.server.address.to_string()).sasl_digest_md5("bob", "wrong");
    let client = builder.connect_lazy().unwrap();
    assert!(matches!(client.wait_connected().await, Err(Error::AuthFailed)));
    assert!(matches!(client.wait_connected_within(Duration::from_secs(60)).await, Err(Error::AuthFailed)));
    assert!(matches!(client.session().await, Err(Error::AuthFailed)));
    assert!(matches!(client.get_data("/").await, Err(Error::AuthFailed)));
}

#[tokio::test]
async fn clients_without_a_login_are_refused_where_it_is_enforced() {
    let server = start(|config| {
        config.auth.enforce_auth_enabled = true;
        config.auth.enforce_auth_schemes = vec!["sasl".into()];
    });
    server.login("bob", "bobsecret").await.unwrap().get_data("/").await.unwrap();
    let builder = Client::builder(&server.server.address.to_string());
    let nobody = builder.connection_timeout(Duration::from_secs(2)).connect().await.unwrap();
    assert!(nobody.get_data("/").await.is_err());
}

#[tokio::test]
async fn a_super_user_of_sasl_may_do_everything() {
    let server = start(|config| config.auth.sasl_super_users = vec!["ann".into()]);
    let bob = server.login("bob", "bobsecret").await.unwrap();
    let digest = [Acl { perms: Perms::ALL, id: Id::new("digest", "x:y") }];
    bob.create("/theirs", b"x").acl(&digest).await.unwrap();
    assert!(bob.get_data("/theirs").await.is_err());
    let ann = server.login("ann", "annsecret").await.unwrap();
    assert_eq!(ann.get_data("/theirs").await.unwrap().0, b"x"[..]);
}

#[tokio::test]
async fn any_user_may_do_what_the_name_for_any_user_may() {
    let server = start(|config| config.auth.let_any_sasl_user = Some("anyone".into()));
    let bob = server.login("bob", "bobsecret").await.unwrap();
    bob.create("/shared", b"x").acl(&acl_of("anyone")).await.unwrap();
    let ann = server.login("ann", "annsecret").await.unwrap();
    assert_eq!(ann.get_data("/shared").await.unwrap().0, b"x"[..]);
    let nobody = Client::connect(&server.server.address.to_string()).await.unwrap();
    assert!(nobody.get_data("/shared").await.is_err());
}
