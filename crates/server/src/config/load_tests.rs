//! Whole files, as operators and test harnesses write them.

mod admin;
mod ensemble;
mod security;

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::admin::four_letter::Word;
use ostler_server_core::auth::DigestAlgorithm;

/// A folder with a zoo.cfg. Messages name the file by its path; the checks cut the folder off.
struct File {
    dir: TempDir,
}

impl File {
    fn new(text: &str) -> File {
        let file = File { dir: TempDir::new().unwrap() };
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("zoo.cfg")
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        load(&self.path())
    }

    fn without_folder(&self, message: impl std::fmt::Display) -> String {
        message.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }
}

fn config(text: &str) -> ServerConfig {
    let loaded = File::new(text).load().unwrap().config;
    // The text is compared in a test of its own.
    ServerConfig { initial_configuration: String::new(), ..loaded }
}

/// The configuration of `lines` after a dataDir and a clientPort: they begin at line 3.
fn config_of_lines(lines: &str) -> ServerConfig {
    config(&format!("dataDir=/d\nclientPort=2181\n{lines}"))
}

#[track_caller]
fn check_notes(text: &str, expected: &[&str]) {
    let file = File::new(text);
    let notes: Vec<String> =
        file.load().unwrap().notes.iter().map(|note| file.without_folder(note)).collect();
    assert_eq!(notes, expected);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let file = File::new(text);
    assert_eq!(file.without_folder(file.load().unwrap_err()), expected);
}

#[track_caller]
fn check_error_of_lines(lines: &str, expected: &str) {
    check_error(&format!("dataDir=/d\nclientPort=2181\n{lines}"), expected);
}

#[test]
fn the_smallest_file_has_upstreams_defaults_except_purging() {
    let config = config("dataDir=/var/lib/zk\nclientPort=2181\n");
    let whitelist = config.four_letter_whitelist.clone();
    assert_eq!(whitelist.words(), [Word::Srvr]);
    let expected = ServerConfig {
        keys: config.keys.clone(),
        tick_time_ms: 3000,
        clients: ClientPortSettings {
            client_address: Some("[::]:2181".parse().unwrap()),
            secure: None,
            client_port_listen_backlog: None,
            max_cnxns: None,
            max_client_cnxns: Some(60),
            max_client_cnxns_ipv6_prefix: 64,
            client_tcp_keep_alive: false,
            sessionless_cnxn_timeout_ms: 10_000,
        },
        limits: RequestLimits {
            jute_max_buffer: 1_048_575,
            global_outstanding_limit: 1000,
            large_answers_max_bytes: None,
            slow_request_ms: Some(1000),
        },
        throttles: ThrottleSettings::default(),
        folders: DataFolderSettings {
            data_dir: "/var/lib/zk".into(),
            data_log_dir: "/var/lib/zk".into(),
            files_mode: 0o600,
            datadir_autocreate: true,
            db_autocreate: true,
            snapshot_trust_empty: false,
        },
        log: TxnLogSettings {
            pre_alloc_size_kb: 65_536,
            txn_log_size_limit_kb: None,
            force_sync: true,
            fsync_warning_threshold_ms: 1000,
        },
        snapshots: SnapshotSettings {
            snap_count: 100_000,
            snap_size_limit_kb: Some(4_194_304),
            snap_retain_count: 3,
            purge_interval_hours: Some(1),
            snapshot_compression: SnapshotCompression::None,
            serialize_last_processed_zxid: true,
        },
        sessions: SessionSettings {
            min_session_timeout_ms: 6000,
            max_session_timeout_ms: 60_000,
            session_passwords: SessionPasswords::default(),
            close_session_txn_enabled: true,
        },
        tree: TreeSettings {
            digest_enabled: true,
            enforce_quota: false,
            extended_types_enabled: false,
            emulate_353_ttl_nodes: false,
            containers: Containers {
                check_interval_ms: 60_000,
                max_per_minute: 10_000,
                max_never_used_interval_ms: None,
            },
        },
        auth: AuthSettings {
            skip_acl: false,
            digest_auth_enabled: true,
            digest_auth_alg: DigestAlgorithm::Sha1,
            super_digest: None,
            x509_super_user: None,
            sasl: None,
            ensemble_names: None,
            sasl_acls: false,
            sasl_super_users: Vec::new(),
            let_any_sasl_user: None,
            enforce_auth_enabled: false,
            enforce_auth_schemes: vec![],
            session_require_client_sasl_auth: false,
            allow_sasl_failed_clients: false,
        },
        four_letter_whitelist: whitelist,
        readonly_mode_enabled: false,
        strict: false,
        reconfig_enabled: false,
        epoch_length: 4_286_967_295,
        audit: None,
        initial_configuration: String::new(),
        admin: Some(AdminSettings::loopback()),
        metrics: None,
        traces: None,
        ensemble: None,
    };
    assert_eq!(config, expected);
}

#[test]
fn a_server_without_a_file_listens_on_loopback_only() {
    let embedded = ServerConfig::embedded(EMBEDDED_DATA_DIR);
    let mut expected = config("dataDir=ostler-data\nclientPort=2181\ntickTime=2000\n");
    expected.clients.client_address = Some("127.0.0.1:2181".parse().unwrap());
    expected.admin = None;
    // They say where each value is from.
    expected.keys = embedded.keys.clone();
    assert_eq!(embedded, expected);
    assert_eq!(
        (embedded.sessions.min_session_timeout_ms, embedded.sessions.max_session_timeout_ms),
        (4000, 40_000)
    );
    assert_eq!(embedded.snapshots.purge_interval_hours, Some(1));
}

#[test]
fn every_obeyed_setting_reaches_the_config() {
    let config = config(
        "dataDir=/d\ndataLogDir=/log\nclientPort=0\nclientPortAddress=127.0.0.1\nclientPortListenBacklog=50\n\
         maxCnxns=500\nmaxClientCnxns=0\nmaxClientCnxns.ipv6Prefix=128\nfiles.mode=640\nclientTcpKeepAlive=true\nnio.sessionlessCnxnTimeout=500\n\
         jute.maxbuffer=0x400000\njute.maxbuffer.extrasize=10\ntickTime=100\nminSessionTimeout=300\n\
         maxSessionTimeout=90000\nsnapCount=500\nsnapSizeLimitInKb=-1\npreAllocSize=64\ntxnLogSizeLimitInKb=2048\n\
         forceSync=no\nfsync.warningthresholdms=20\nautopurge.snapRetainCount=5\nautopurge.purgeInterval=0\n\
         digest.enabled=false\ncloseSessionTxn.enabled=false\nserializeLastProcessedZxid.enabled=false\n\
         snapshot.compression.method=snappy\nsnapshot.trust.empty=true\ndb.autocreate=false\n\
         datadir.autocreate=false\nglobalOutstandingLimit=10\nlargeRequestThreshold=1000\n\
         largeRequestMaxBytes=5000\nlargeAnswersMaxBytes=6000\nslowRequestThresholdMs=0\nenforceQuota=true\nextendedTypesEnabled=true\nemulate353TTLNodes=true\n\
         znode.container.checkIntervalMs=70\nznode.container.maxPerMinute=80\n\
         znode.container.maxNeverUsedIntervalMs=90\nskipACL=yes\nDigestAuthenticationProvider.superDigest=super:x=\n\
         enforce.auth.enabled=true\nenforce.auth.schemes=digest, ip\nallowSaslFailedClients=true\n\
         4lw.commands.whitelist=ruok,mntr\nreadonlymode.enabled=true\nreconfigEnabled=true\n\
         audit.enable=true\naudit.log.file=/audit.log\naudit.log.maxFileSize=3\naudit.log.maxFiles=4\n\
         audit.log.authFailures=false\n",
    );
    let expected = ServerConfig {
        keys: config.keys.clone(),
        tick_time_ms: 100,
        clients: ClientPortSettings {
            client_address: Some("127.0.0.1:0".parse().unwrap()),
            secure: None,
            client_port_listen_backlog: Some(50),
            max_cnxns: Some(500),
            max_client_cnxns: None,
            max_client_cnxns_ipv6_prefix: 128,
            client_tcp_keep_alive: true,
            sessionless_cnxn_timeout_ms: 500,
        },
        limits: RequestLimits {
            jute_max_buffer: 4_194_304,
            global_outstanding_limit: 10,
            large_answers_max_bytes: Some(6000),
            slow_request_ms: Some(0),
        },
        throttles: ThrottleSettings {
            connections: None,
            requests: None,
            large_requests: Some(LargeRequestSettings { threshold: 1000, max_bytes: 5000 }),
        },
        folders: DataFolderSettings {
            data_dir: "/d".into(),
            data_log_dir: "/log".into(),
            files_mode: 0o640,
            datadir_autocreate: false,
            db_autocreate: false,
            snapshot_trust_empty: true,
        },
        log: TxnLogSettings {
            pre_alloc_size_kb: 64,
            txn_log_size_limit_kb: Some(2048),
            force_sync: false,
            fsync_warning_threshold_ms: 20,
        },
        snapshots: SnapshotSettings {
            snap_count: 500,
            snap_size_limit_kb: None,
            snap_retain_count: 5,
            purge_interval_hours: None,
            snapshot_compression: SnapshotCompression::Snappy,
            serialize_last_processed_zxid: false,
        },
        sessions: SessionSettings {
            min_session_timeout_ms: 300,
            max_session_timeout_ms: 90_000,
            session_passwords: SessionPasswords::default(),
            close_session_txn_enabled: false,
        },
        tree: TreeSettings {
            digest_enabled: false,
            enforce_quota: true,
            extended_types_enabled: true,
            emulate_353_ttl_nodes: true,
            containers: Containers {
                check_interval_ms: 70,
                max_per_minute: 80,
                max_never_used_interval_ms: Some(90),
            },
        },
        auth: AuthSettings {
            skip_acl: true,
            digest_auth_enabled: true,
            digest_auth_alg: DigestAlgorithm::Sha1,
            super_digest: Some("super:x=".into()),
            x509_super_user: None,
            sasl: None,
            ensemble_names: None,
            sasl_acls: false,
            sasl_super_users: Vec::new(),
            let_any_sasl_user: None,
            enforce_auth_enabled: true,
            enforce_auth_schemes: vec!["digest".into(), "ip".into()],
            session_require_client_sasl_auth: false,
            allow_sasl_failed_clients: true,
        },
        four_letter_whitelist: config.four_letter_whitelist.clone(),
        readonly_mode_enabled: true,
        strict: false,
        reconfig_enabled: true,
        epoch_length: 4_286_967_295,
        initial_configuration: String::new(),
        admin: Some(AdminSettings::loopback()),
        metrics: None,
        traces: None,
        audit: Some(AuditSettings {
            target: AuditTarget::File("/audit.log".into()),
            max_file_bytes: 3 << 20,
            max_files: 4,
            auth_failures: false,
        }),
        ensemble: None,
    };
    assert_eq!(config, expected);
    assert_eq!(config.four_letter_whitelist.words(), [Word::Isro, Word::Mntr, Word::Ruok, Word::Srvr]);
}

#[test]
fn the_file_of_kazoos_test_harness_is_a_single_node() {
    let text = "\ntickTime=2000\ndataDir=/tmp/x/data\nclientPort=23000\nmaxClientCnxns=0\nadmin.serverPort=23003\n\
                authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
                4lw.commands.whitelist=*\nreconfigEnabled=true\nlocalSessionsEnabled=false\n\
                localSessionsUpgradingEnabled=false\n\
                serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
                admin.enableServer=false\nreadonlymode.enabled=true\n\
                DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n";
    let config = config(text);
    assert_eq!(config.auth.super_digest.as_deref(), Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU="));
    assert!(config.reconfig_enabled && config.readonly_mode_enabled);
    check_notes(
        text,
        &[
            "zoo.cfg:12: serverCnxnFactory: Belongs to a Java network library; there is one connection layer here",
        ],
    );
}

#[test]
fn one_server_line_is_a_single_node() {
    let line = "server.1=localhost:2888:3888:participant";
    assert_eq!(config_of_lines(line).clients.client_address, Some("[::]:2181".parse().unwrap()));
    check_notes(
        &format!("dataDir=/d\nclientPort=2181\n{line}"),
        &[
            "zoo.cfg:3: server.1: the only server runs as a single node; its quorum and election ports are not used",
        ],
    );
}

#[test]
fn the_client_port_of_the_only_server_is_obeyed() {
    let address =
        |lines: &str| config(&format!("dataDir=/d\n{lines}")).clients.client_address.unwrap().to_string();
    assert_eq!(address("server.1=h:1:2;2181"), "0.0.0.0:2181");
    assert_eq!(address("server.1=h:1:2;127.0.0.1:2181"), "127.0.0.1:2181");
    assert_eq!(address("clientPort=2181\nserver.1=h:1:2;127.0.0.1:2181"), "127.0.0.1:2181");
    check_error(
        "dataDir=/d\nclientPort=2182\nserver.1=h:1:2;2181",
        "zoo.cfg:3: server.1: names the client address 0.0.0.0:2181, but clientPort and clientPortAddress name \
         [::]:2182; remove one of the two",
    );
}

#[test]
fn session_timeouts_follow_the_tick_unless_given() {
    let timeouts = |lines: &str| {
        let config = config_of_lines(lines);
        (config.sessions.min_session_timeout_ms, config.sessions.max_session_timeout_ms)
    };
    assert_eq!(timeouts("tickTime=1000"), (2000, 20_000));
    assert_eq!(timeouts("tickTime=1000\nmaxSessionTimeout=5000"), (2000, 5000));
    assert_eq!(timeouts("minSessionTimeout=-1\nmaxSessionTimeout=-1"), (6000, 60_000));
    assert_eq!(timeouts("tickTime=107374182").1, 2_147_483_640);
    check_error_of_lines(
        "minSessionTimeout=9000\nmaxSessionTimeout=8000",
        "zoo.cfg:4: maxSessionTimeout=8000 is not allowed; maxSessionTimeout must be at least minSessionTimeout, \
         which is 9000",
    );
    check_error_of_lines(
        "minSessionTimeout=60001",
        "zoo.cfg:3: minSessionTimeout=60001 is not allowed; minSessionTimeout must be at most maxSessionTimeout, \
         which is 60000 (20 ticks)",
    );
}

#[test]
fn missing_settings_are_named_with_an_example() {
    check_error(
        "clientPort=2181",
        "zoo.cfg: dataDir is missing; add a line such as dataDir=/var/lib/zookeeper",
    );
    check_error("dataDir=/d", "zoo.cfg: clientPort is missing; add a line such as clientPort=2181");
    check_error(
        "dataDir=/d\nclientPortAddress=127.0.0.1",
        "zoo.cfg:2: clientPortAddress: needs a port; add a line such as clientPort=2181",
    );
}

#[test]
fn addresses_may_be_names_or_literals() {
    let ip = |address: &str| {
        config_of_lines(&format!("clientPortAddress={address}"))
            .clients
            .client_address
            .unwrap()
            .ip()
            .to_string()
    };
    assert_eq!(ip("0.0.0.0"), "0.0.0.0");
    assert_eq!(ip("::1"), "::1");
    assert_eq!(ip("[::1]"), "::1");
    let error =
        File::new("dataDir=/d\nclientPort=1\nclientPortAddress=no host").load().unwrap_err().to_string();
    assert!(
        error.contains("clientPortAddress=no host is not allowed; clientPortAddress must be a host"),
        "{error}"
    );
}

/// A snapshot with a longer field could not be read again.
#[test]
fn the_longest_packet_is_no_longer_than_a_field_of_a_snapshot() {
    let line = "jute.maxbuffer=0x20000000";
    assert_eq!(config_of_lines(line).limits.jute_max_buffer, 268_435_456);
    check_notes(
        &format!("dataDir=/d\nclientPort=2181\n{line}"),
        &["zoo.cfg:3: jute.maxbuffer=0x20000000 counts as 268435456, the greatest possible"],
    );
}

#[test]
fn numbers_below_the_least_possible_are_raised() {
    let lines = "snapCount=1\nautopurge.snapRetainCount=1";
    let config = config_of_lines(lines);
    assert_eq!((config.snapshots.snap_count, config.snapshots.snap_retain_count), (2, 3));
    check_notes(
        &format!("dataDir=/d\nclientPort=2181\n{lines}"),
        &[
            "zoo.cfg:3: snapCount=1 counts as 2, the least possible",
            "zoo.cfg:4: autopurge.snapRetainCount=1 counts as 3, the least possible",
        ],
    );
}

#[test]
fn enforced_authentication_needs_schemes_that_exist() {
    check_error_of_lines(
        "enforce.auth.enabled=true",
        "zoo.cfg:3: enforce.auth.enabled: needs a scheme; add a line such as enforce.auth.schemes=digest",
    );
    check_error_of_lines(
        "enforce.auth.enabled=true\nenforce.auth.schemes=digest,x509",
        "zoo.cfg:4: enforce.auth.schemes: the scheme x509 needs a secureClientPort",
    );
    check_error_of_lines(
        "sessionRequireClientSASLAuth=true",
        "zoo.cfg:3: sessionRequireClientSASLAuth: the scheme sasl needs a line \
         authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    );
    let config = config_of_lines(
        "sessionRequireClientSASLAuth=true\nauthProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    );
    assert!(config.auth.enforce_auth_enabled && config.auth.session_require_client_sasl_auth);
    assert_eq!(config.auth.enforce_auth_schemes, ["sasl"]);
    assert!(!config_of_lines("enforce.auth.schemes=digest").auth.enforce_auth_enabled);
}

#[test]
fn jvm_flags_count_unless_the_file_sets_the_key() {
    let file = File::new("dataDir=/d\nclientPort=2181\nsnapCount=7\n");
    let flags = "-Dzookeeper.snapCount=5 -Dzookeeper.forceSync=no -Djute.maxbuffer=4096 -Dother=1";
    let loaded = load_with_flags(&file.path(), &[("JVMFLAGS", flags)]).unwrap();
    assert_eq!(loaded.notes, []);
    assert_eq!((loaded.config.snapshots.snap_count, loaded.config.limits.jute_max_buffer), (7, 4096));
    assert!(!loaded.config.log.force_sync);

    let error = load_with_flags(&file.path(), &[("JVMFLAGS", "-Dzookeeper.maxCnxns=many")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "JVMFLAGS: zookeeper.maxCnxns=many is not allowed; zookeeper.maxCnxns must be a whole number from \
         -2147483648 to 2147483647"
    );
}

#[test]
fn keys_may_carry_the_prefix_of_system_properties() {
    let config =
        config("zookeeper.dataDir=/d\nclientPort=1\nzookeeper.snapCount=9\nzookeeper.jute.maxbuffer=99\n");
    assert_eq!((config.snapshots.snap_count, config.limits.jute_max_buffer), (9, 99));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let file = File::new("");
    let error = load(&file.dir.path().join("absent.cfg")).unwrap_err();
    assert_eq!(
        file.without_folder(error),
        "cannot read the configuration file absent.cfg: No such file or directory (os error 2)"
    );
    assert!(matches!(load(file.dir.path()), Err(ConfigError::Unreadable { .. })));
}

#[test]
fn the_audit_log_is_in_the_data_folder_by_default() {
    let audit =
        config_of_lines("audit.enable=true\naudit.impl.class=org.apache.zookeeper.audit.Slf4jAuditLogger\n")
            .audit;
    let expected = AuditSettings {
        target: AuditTarget::File("/d/zookeeper_audit.log".into()),
        max_file_bytes: 10 << 20,
        max_files: 10,
        auth_failures: true,
    };
    assert_eq!(audit, Some(expected));
    let audit = config_of_lines("audit.enable=true\naudit.log.target=journald\n").audit.unwrap();
    assert_eq!(audit.target, AuditTarget::Journald);
}

#[test]
fn other_audit_loggers_are_refused_and_keys_without_the_switch_leave_a_warning() {
    check_error_of_lines(
        "audit.enable=true\naudit.impl.class=a.B\n",
        "zoo.cfg:4: audit.impl.class: Java classes cannot be loaded here; remove the line, or write \
         org.apache.zookeeper.audit.Slf4jAuditLogger",
    );
    check_notes(
        "dataDir=/d\nclientPort=2181\naudit.log.maxFiles=5\n",
        &["zoo.cfg:3: audit.log.maxFiles has no effect without audit.enable=true"],
    );
}

#[test]
fn throttles_are_read_with_their_weights() {
    let lines = "connection_throttle_tokens=100\nconnection_throttle_fill_time=0\nconnection_throttle_fill_count=7\n\
                 connection_throttle_freeze_time=0\nconnection_throttle_drop_increase=0.5\n\
                 connection_throttle_drop_decrease=0.25\nconnection_throttle_decrease_ratio=0.1\n\
                 connection_throttle_weight_enabled=true\nconnection_throttle_global_session_weight=1\n\
                 connection_throttle_local_session_weight=2\nconnection_throttle_renew_session_weight=0\n\
                 requestThrottleLimit=50\nrequest_throttle_stall_time=-1\nrequest_throttle_drop_stale=false\n\
                 request_stale_connection_check=false\nrequest_stale_latency_check=true\nthrottledOpWaitTime=30\n";
    let expected = ThrottleSettings {
        connections: Some(ConnectionThrottleSettings {
            tokens: 100,
            fill_count: 7,
            fill_ms: 1,
            drop: Some(DropSettings { freeze_ms: 0, increase: 0.5, decrease: 0.25, decrease_ratio: 0.1 }),
            weights: Some(ConnectionWeights { global_session: 2, local_session: 2, renewed_session: 2 }),
        }),
        requests: Some(RequestThrottleSettings {
            max_requests: 50,
            stall_ms: 1,
            drop_stale: false,
            stale_connection_check: false,
            stale_latency_check: true,
            refused_after_ms: Some(30),
        }),
        large_requests: None,
    };
    assert_eq!(config_of_lines(lines).throttles, expected);
}
