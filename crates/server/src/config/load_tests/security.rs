//! The lines about TLS and SASL.

use super::{check_error_of_lines, check_notes, config, config_of_lines};
use ostler_tls::settings::{ClientAuth, Protocol, StorePassword};
use std::path::Path;

const STORES: &str =
    "ssl.keyStore.location=/s.jks\nssl.keyStore.password=xyzzy\nssl.trustStore.location=/ca.pem\n";

#[test]
fn a_secure_port_has_its_stores() {
    let lines = format!("{STORES}ssl.keyStore.passwordPath=/pw\nssl.clientAuth=WANT\nssl.protocol=TLSv1.3\n");
    let config = config(&format!("dataDir=/d\nsecureClientPort=2281\n{lines}"));
    assert_eq!(config.clients.client_address, None);
    let secure = config.clients.secure.unwrap();
    assert_eq!(secure.address, Some("[::]:2281".parse().unwrap()));
    let key_store = secure.tls.key_store.unwrap();
    assert_eq!(
        (&*key_store.location, key_store.password),
        (Path::new("/s.jks"), StorePassword::File("/pw".into()))
    );
    assert_eq!((secure.tls.client_auth, secure.tls.protocols), (ClientAuth::Want, vec![Protocol::Tls13]));
    assert!(
        !format!("{:?}", config_of_lines(&format!("client.portUnification=true\n{STORES}")))
            .contains("xyzzy")
    );
}

#[test]
fn a_port_with_tls_needs_a_key_and_somebody_to_trust() {
    check_error_of_lines(
        "secureClientPort=2281",
        "zoo.cfg:3: secureClientPort: TLS needs a key store; add a line such as \
         ssl.keyStore.location=/etc/zookeeper/server.pem",
    );
    check_error_of_lines(
        "secureClientPort=2281\nssl.keyStore.location=/s.pem",
        "zoo.cfg:3: secureClientPort: certificates are checked, so TLS needs a trust store; add a line such as \
         ssl.trustStore.location=/etc/zookeeper/ca.pem",
    );
    let without = "secureClientPort=2281\nssl.keyStore.location=/s.pem\nssl.clientAuth=none";
    assert!(config_of_lines(without).clients.secure.unwrap().tls.trust_store.is_none());
    check_error_of_lines(
        &format!("secureClientPort=2281\n{STORES}ssl.crl=true"),
        "zoo.cfg:7: ssl.crl: Ostler fetches no revocation lists; add ssl.crl.location, a file with them, or remove this line",
    );
    check_error_of_lines(
        &format!("secureClientPort=2281\n{STORES}ssl.enabledProtocols=TLSv1.1,TLSv1.2"),
        "zoo.cfg:7: ssl.enabledProtocols: TLSv1.1 is not spoken here; use TLSv1.2, TLSv1.3 or both",
    );
}

#[test]
fn stores_that_nothing_uses_leave_a_warning() {
    check_notes(
        "dataDir=/d\nclientPort=2181\nssl.quorum.keyStore.location=/q.pem\nssl.keyStore.location=/s.pem",
        &["zoo.cfg:4: ssl.keyStore.location and the like have no effect without secureClientPort or \
             client.portUnification"],
    );
}

#[test]
fn sasl_is_switched_on_by_a_file_with_users() {
    assert_eq!(config_of_lines("").auth.sasl, None);
    let sasl = config_of_lines("sasl.usersFile=/users\nsuperUser=bob\nsuperUser.2=ann").auth;
    assert_eq!(sasl.sasl.unwrap().file(), Path::new("/users"));
    assert_eq!(sasl.sasl_super_users, ["bob", "ann"]);
    let jaas =
        "sasl.jaasFile=/jaas\nauthProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    let auth = config_of_lines(jaas).auth;
    assert_eq!((auth.sasl.unwrap().file(), auth.sasl_acls), (Path::new("/jaas"), true));
}

#[test]
fn providers_that_are_not_here_are_refused() {
    check_error_of_lines(
        "authProvider.1=com.example.Provider",
        "zoo.cfg:3: authProvider.1: Java classes cannot be loaded here, and ACLs of the provider's scheme would protect \
         nothing; known are the providers of ZooKeeper for ip, digest, x509, sasl and ensemble",
    );
    config_of_lines("authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider");
}

const STRICT: &str = "dataDir=/d\nsecureClientPort=2281\nsecurity=strict\n\
                      X509AuthenticationProvider.superUser=CN=admin\n";

#[test]
fn a_strict_server_with_certificates_at_every_port_starts() {
    let config = config(&format!("{STRICT}{STORES}"));
    assert!(config.strict && config.audit.is_some());
    let words: Vec<&str> = config.four_letter_whitelist.words().iter().map(|word| word.name()).collect();
    assert_eq!(words, ["ruok", "srvr"]);
    assert_eq!(config.open_doors()[0], "clients: at [::]:2281, by TLS with a certificate of /ca.pem");
}

#[test]
fn a_strict_server_does_not_start_with_a_weakness() {
    for (line, weakness) in [
        ("clientPort=2181", "clients reach [::]:2181 without TLS"),
        ("ssl.clientAuth=want", "clients need no certificate"),
        ("skipACL=yes", "skipACL=yes"),
        ("X509AuthenticationProvider.superUser=", "every client may create and delete znodes at the root"),
        ("4lw.commands.whitelist=*", "four-letter words show"),
        ("audit.enable=false", "nothing records"),
        ("files.mode=640", "other users of this machine"),
    ] {
        let error = super::File::new(&format!("{STRICT}{STORES}{line}")).load().unwrap_err().to_string();
        assert!(error.contains("security: asks for strict, but ") && error.contains(weakness), "{error}");
    }
}

#[test]
fn an_ensemble_without_tls_is_the_gravest_weakness() {
    let file = super::File::new("");
    std::fs::write(file.dir.path().join("myid"), "1").unwrap();
    let servers = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
    let of = |lines: &str| {
        let text = format!("dataDir={}\nclientPort=2181\n{servers}{lines}", file.dir.path().display());
        config(&text).weaknesses().first().unwrap().to_string()
    };
    assert!(of("").starts_with("whoever reaches the ports of the server.N lines"));
    let quorum = STORES.replace("ssl.", "ssl.quorum.");
    assert!(of(&format!("{quorum}sslQuorum=true\nportUnification=true")).starts_with("whoever reaches"));
    let unchecked = format!("{quorum}sslQuorum=true\nssl.quorum.hostnameVerification=false");
    assert!(of(&unchecked).starts_with("every certificate of the authority"));
    assert!(of(&format!("{quorum}sslQuorum=true")).starts_with("clients reach"));
}

#[test]
fn families_of_flags_and_of_the_file_come_together() {
    let file = super::File::new(
        "dataDir=/d\nclientPort=2181\nsasl.usersFile=/users\nsuperUser.1=ann\nzookeeper.superUser.3=eve\n",
    );
    let flags = "-Dzookeeper.superUser.1=bob -Dzookeeper.superUser.2=joe -Dzookeeper.superUser=sam";
    let config = crate::config::load_with_flags(&file.path(), &[("JVMFLAGS", flags)]).unwrap().config;
    let mut users = config.auth.sasl_super_users;
    users.sort();
    assert_eq!(users, ["ann", "eve", "joe", "sam"]);
}

#[test]
fn schemes_that_are_not_enforced_leave_a_warning() {
    let warning = "enforce.auth.schemes has no effect without enforce.auth.enabled=true, so connections without one of \
                   these schemes are served; add that line";
    for lines in ["enforce.auth.schemes=digest", "enforce.auth.schemes=digest\nenforce.auth.enabled=false"] {
        check_notes(&format!("dataDir=/d\nclientPort=2181\n{lines}"), &[&format!("zoo.cfg:3: {warning}")]);
    }
    for lines in ["enforce.auth.schemes=digest\nenforce.auth.enabled=true", "enforce.auth.schemes="] {
        check_notes(&format!("dataDir=/d\nclientPort=2181\n{lines}"), &[]);
    }
    let sasl = "sasl.usersFile=/users\nauthProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\nsessionRequireClientSASLAuth=true\nenforce.auth.schemes=digest";
    check_notes(
        &format!("dataDir=/d\nclientPort=2181\n{sasl}"),
        &[
            "zoo.cfg:6: enforce.auth.schemes has no effect beside sessionRequireClientSASLAuth=true, which enforces sasl alone; \
           remove one of them",
        ],
    );
}
