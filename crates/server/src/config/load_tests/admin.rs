//! The admin server and the port for metrics.

use super::*;
use ostler_proto::{acl::Id, id::ServerId};
use ostler_tls::settings::{ClientAuth, TlsSettings};

const PROMETHEUS: &str =
    "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";

fn peer(id: i64, https: bool, host: &str, port: u16) -> AdminPeer {
    AdminPeer { id: ServerId(id), https, host: host.into(), port }
}

#[test]
fn peers_without_keys_for_tls_are_named_and_wrong_ones_refused() {
    let lines = "dataDir=/d\nclientPort=2181\nadmin.peers=1=https://h1:8443\n";
    check_notes(
        lines,
        &["zoo.cfg:3: the pages about the ensemble cannot ask the other members by TLS: zoo.cfg: \
           ssl.quorum.trustStore.location: certificates are checked, so TLS needs a trust store; add a line such as \
           ssl.quorum.trustStore.location=/etc/zookeeper/ca.pem"],
    );
    let trusting = config_of_lines("admin.peers=1=https://h1:8443\nssl.quorum.trustStore.location=/ca.pem\n");
    assert!(trusting.admin.unwrap().peer_tls.is_some());
    check_error_of_lines(
        "admin.peers=h1:8080\n",
        "zoo.cfg:3: admin.peers: it is ID=HOST:PORT, parted by semicolons, such as \
         1=10.0.0.1:8080;2=https://[::1]:8443",
    );
    check_error_of_lines(
        "admin.peers=1=h1:8080;1=h2:8080\n",
        "zoo.cfg:3: admin.peers: server 1 is named twice",
    );
}

#[test]
fn every_setting_of_the_admin_server_is_obeyed() {
    let lines = "admin.serverAddress=0.0.0.0\nadmin.serverPort=9000\nadmin.commandURL=/ops/\nadmin.idleTimeout=50\n\
                 admin.forceHttps=true\nadmin.needClientAuth=true\nadmin.rateLimiterIntervalInMS=7\n\
                 admin.snapshot.enabled=false\nadmin.restore.enabled=false\nadmin.openToAll=true\n\
                 admin.readOnly=false\nadmin.viewers=sasl:ann; digest:op:x=\nadmin.operators=x509:CN=ops,O=x\n\
                 admin.peers=1=h1:8080;2=http://h2:81\nadmin.hostNames=zk.example.com; zk_ops\n\
                 ssl.quorum.keyStore.location=/key.pem\nssl.quorum.trustStore.location=/ca.pem\n";
    let admin = config_of_lines(lines).admin.unwrap();
    let https = admin.https.as_ref().unwrap();
    assert!(!https.unification);
    assert_eq!(https.tls.client_auth, ClientAuth::Need);
    let expected = AdminSettings {
        address: "0.0.0.0:9000".parse().unwrap(),
        is_written: true,
        command_url: "/ops".into(),
        idle_timeout_ms: 50,
        https: admin.https.clone(),
        rate_limiter_interval_ms: 7,
        snapshot_enabled: false,
        restore_enabled: false,
        open_to_all: true,
        read_only: false,
        viewers: vec![Id::new("sasl", "ann"), Id::new("digest", "op:x=")],
        operators: vec![Id::new("x509", "CN=ops,O=x")],
        host_names: vec!["zk.example.com".into(), "zk_ops".into()],
        peers: vec![peer(1, true, "h1", 8080), peer(2, false, "h2", 81)],
        peer_tls: Some(Box::new(TlsSettings { client_auth: ClientAuth::None, ..https.tls.clone() })),
    };
    assert_eq!(admin, expected);
}

#[test]
fn names_of_the_admin_server_are_plain() {
    for wrong in ["https://zk.example.com", "zk.example.com:8080", "*.example.com", "a,b"] {
        check_error_of_lines(
            &format!("admin.hostNames=fine;{wrong}\n"),
            &format!(
                "zoo.cfg:3: admin.hostNames: {wrong} is no name of a host; write names such as zk.example.com, without \
                 https:// and without a port, parted by semicolons"
            ),
        );
    }
    let named = config_of_lines("admin.serverAddress=localhost\n").admin.unwrap();
    assert_eq!(named.host_names, ["localhost"]);
}

#[test]
fn the_host_of_the_only_line_is_a_name_of_a_standalone_server() {
    let alone = config_of_lines("server.1=zk1.example.com:2888:3888\nadmin.hostNames=zk.example.com\n");
    assert!(alone.ensemble.is_none());
    assert_eq!(alone.admin.unwrap().host_names, ["zk.example.com", "zk1.example.com"]);
}

#[test]
fn without_a_client_certificate_no_trust_store_is_needed() {
    let lines = "admin.portUnification=true\nssl.quorum.keyStore.location=/key.pem\n";
    let https = config_of_lines(lines).admin.unwrap().https.unwrap();
    assert!(https.unification);
    assert_eq!(https.tls.client_auth, ClientAuth::None);
    check_notes(&format!("dataDir=/d\nclientPort=2181\n{lines}"), &[]);
}

#[test]
fn an_admin_server_without_its_files_is_left_out_as_in_java() {
    let lines = "dataDir=/d\nclientPort=2181\nadmin.forceHttps=true\n";
    assert_eq!(config(lines).admin, None);
    check_notes(
        lines,
        &[
            "zoo.cfg:3: the admin server is not started: zoo.cfg: ssl.quorum.keyStore.location: TLS needs a key store; add \
           a line such as ssl.quorum.keyStore.location=/etc/zookeeper/server.pem",
        ],
    );
    assert_eq!(config_of_lines("admin.enableServer=false\n").admin, None);
}

#[test]
fn other_machines_are_warned_of() {
    check_notes(
        "dataDir=/d\nclientPort=2181\nadmin.serverAddress=0.0.0.0\n",
        &[
            "zoo.cfg:3: the admin server has no TLS here: other machines get /livez, /readyz and ruok, and the rest only \
           with an identity (Authorization: digest USER:PASSWORD); set admin.forceHttps=true with ssl.quorum.*, or \
           admin.openToAll=true if a firewall protects the port",
        ],
    );
    check_notes("dataDir=/d\nclientPort=2181\nadmin.serverAddress=0.0.0.0\nadmin.openToAll=true\n", &[]);
}

#[test]
fn metrics_have_a_port_if_the_provider_is_named() {
    assert_eq!(config_of_lines("").metrics, None);
    let none = "metricsProvider.className=org.apache.zookeeper.metrics.impl.DefaultMetricsProvider\n";
    assert_eq!(config_of_lines(none).metrics, None);
    let metrics = config_of_lines(PROMETHEUS).metrics.unwrap();
    let expected = MetricsSettings { address: "0.0.0.0:7000".parse().unwrap(), export_jvm_info: true };
    assert_eq!(metrics, expected);
    let lines = "metricsProvider.httpHost=127.0.0.1\nmetricsProvider.httpPort=7001\nmetricsProvider.exportJvmInfo=false\n";
    let metrics = config_of_lines(&format!("{PROMETHEUS}{lines}")).metrics.unwrap();
    assert_eq!(
        metrics,
        MetricsSettings { address: "127.0.0.1:7001".parse().unwrap(), export_jvm_info: false }
    );
    check_error_of_lines(
        "metricsProvider.className=com.example.Provider\n",
        "zoo.cfg:3: metricsProvider.className: Java classes cannot be loaded here; remove the line, or \
         write org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
    );
}

#[test]
fn traces_need_an_endpoint_of_plain_http() {
    assert_eq!(config_of_lines("otlp.sampledOneIn=10\n").traces, None);
    let traces = config_of_lines("otlp.endpoint=http://127.0.0.1:4318\n").traces.unwrap();
    assert_eq!((traces.endpoint.as_str(), traces.sampled_one_in.get()), ("http://127.0.0.1:4318", 1000));
    let traces = config_of_lines("otlp.endpoint=http://h:1\notlp.sampledOneIn=5\n").traces.unwrap();
    assert_eq!(traces.sampled_one_in.get(), 5);
    check_error_of_lines(
        "otlp.endpoint=https://h:1\n",
        "zoo.cfg:3: otlp.endpoint: traces are sent by plain HTTP, as to http://127.0.0.1:4318; run a collector on this \
         machine, and let it pass them on",
    );
}

#[test]
fn the_text_of_the_file_is_kept_without_secrets() {
    let text = "dataDir=/d\nclientPort=2181\nssl.keyStore.password = hidden\n\
                DigestAuthenticationProvider.superDigest=super:hidden\n";
    let loaded = File::new(text).load().unwrap().config;
    assert_eq!(
        loaded.initial_configuration,
        "dataDir=/d\nclientPort=2181\nssl.keyStore.password=****\nDigestAuthenticationProvider.superDigest=****\n"
    );
}
