use super::*;
use std::io;

fn variables(pairs: &[(&str, &str)]) -> Variables {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Variables::new(pairs, |_| Err(io::ErrorKind::NotFound.into())).unwrap()
}

fn planned(pairs: &[(&str, &str)], found: &Found) -> Result<Plan, String> {
    let variables = variables(pairs);
    plan(&variables, &Folders::of(&variables), found).map_err(|error| error.to_string())
}

fn zoo_cfg(pairs: &[(&str, &str)]) -> String {
    planned(pairs, &Found::default()).unwrap().zoo_cfg.unwrap()
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|own| own == line)
}

const THREE: &str = "server.1=zoo1:2888:3888;2181 server.2=zoo2:2888:3888;2181 server.3=zoo3:2888:3888;2181";

#[test]
fn without_variables_a_standalone_server_has_the_defaults_of_the_official_image() {
    let plan = planned(&[], &Found::default()).unwrap();
    assert_eq!(
        plan.zoo_cfg.unwrap(),
        format!(
            "{MARK}\ndataDir=/data\ndataLogDir=/datalog\ntickTime=2000\ninitLimit=5\nsyncLimit=2\nmaxClientCnxns=60\n\
             electionPortBindRetry=0\nclientPort=2181\n"
        )
    );
    assert_eq!(plan.my_id.as_deref(), Some("1\n"));
    assert_eq!((plan.jaas, plan.notes), (None, vec![]));
}

#[test]
fn variables_of_the_official_image_are_lines() {
    let text = zoo_cfg(&[
        ("ZOO_MY_ID", "2"),
        ("ZOO_SERVERS", THREE),
        ("ZOO_TICK_TIME", "1500"),
        ("ZOO_INIT_LIMIT", "7"),
        ("ZOO_SYNC_LIMIT", "3"),
        ("ZOO_MAX_CLIENT_CNXNS", "0"),
        ("ZOO_STANDALONE_ENABLED", "false"),
        ("ZOO_ADMINSERVER_ENABLED", "false"),
        ("ZOO_AUTOPURGE_PURGEINTERVAL", "6"),
        ("ZOO_AUTOPURGE_SNAPRETAINCOUNT", "5"),
        ("ZOO_4LW_COMMANDS_WHITELIST", "srvr, mntr"),
        ("ZOO_CFG_EXTRA", "snapCount=5 extendedTypesEnabled=true"),
        ("ZOO_DATA_DIR", "/d"),
        ("ZOO_DATA_LOG_DIR", ""),
    ]);
    for line in [
        "dataDir=/d",
        "tickTime=1500",
        "initLimit=7",
        "syncLimit=3",
        "maxClientCnxns=0",
        "standaloneEnabled=false",
        "admin.enableServer=false",
        "autopurge.purgeInterval=6",
        "autopurge.snapRetainCount=5",
        "4lw.commands.whitelist=srvr, mntr",
        "server.2=zoo2:2888:3888;2181",
        "extendedTypesEnabled=true",
    ] {
        assert!(has(&text, line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("dataLogDir") && !text.contains("clientPort="), "{text}");
    assert!(text.ends_with("snapCount=5\nextendedTypesEnabled=true\n"));
}

#[test]
fn a_line_without_a_port_for_clients_gets_one() {
    let text = zoo_cfg(&[("ZOO_SERVERS", "server.1=a:2888:3888 server.2=b:2888:3888")]);
    assert!(has(&text, "clientPort=2181"), "{text}");
}

#[test]
fn variables_of_bitnami_are_lines() {
    let text = zoo_cfg(&[
        ("ZOO_SERVER_ID", "2"),
        ("ZOO_SERVERS", "a:2888:3888,b:2888:3888,c:2888:3888"),
        ("ZOO_PORT_NUMBER", "2182"),
        ("ALLOW_ANONYMOUS_LOGIN", "yes"),
        ("ZOO_RECONFIG_ENABLED", "yes"),
        ("ZOO_LISTEN_ALLIPS_ENABLED", "true"),
        ("ZOO_ENABLE_ADMIN_SERVER", "yes"),
        ("ZOO_ADMIN_SERVER_PORT_NUMBER", "8081"),
        ("ZOO_AUTOPURGE_INTERVAL", "1"),
        ("ZOO_ENABLE_PROMETHEUS_METRICS", "yes"),
        ("ZOO_CFG_snapCount", "100"),
    ]);
    for line in [
        "initLimit=10",
        "syncLimit=5",
        "4lw.commands.whitelist=srvr,mntr",
        "server.2=b:2888:3888;2182",
        "reconfigEnabled=true",
        "quorumListenOnAllIPs=true",
        "admin.enableServer=true",
        "admin.serverPort=8081",
        "autopurge.purgeInterval=1",
        "metricsProvider.httpPort=7000",
        "snapCount=100",
    ] {
        assert!(has(&text, line), "{line} is not in\n{text}");
    }
    let alone = zoo_cfg(&[("ZOO_SERVERS", "a:2888:3888")]);
    assert!(has(&alone, "clientPort=2181") && !alone.contains("server.1"), "{alone}");
}

#[test]
fn tls_of_bitnami_leaves_no_plain_port() {
    let mut pairs = vec![
        ("ZOO_TLS_CLIENT_ENABLE", "true"),
        ("ZOO_TLS_CLIENT_KEYSTORE_FILE", "/k.p12"),
        ("ZOO_TLS_CLIENT_KEYSTORE_PASSWORD", "a\\b\u{fc}"),
        ("ZOO_TLS_CLIENT_TRUSTSTORE_FILE", "/t.pem"),
        ("ZOO_TLS_CLIENT_AUTH", "want"),
        ("ZOO_TLS_QUORUM_ENABLE", "true"),
        ("ZOO_TLS_QUORUM_KEYSTORE_FILE", "/q.pem"),
        ("ZOO_TLS_QUORUM_TRUSTSTORE_FILE", "/t.pem"),
        ("ZOO_SERVERS", "a:2888:3888,b:2888:3888"),
    ];
    let text = zoo_cfg(&pairs);
    for line in [
        "secureClientPort=3181",
        "ssl.keyStore.location=/k.p12",
        "ssl.keyStore.password=a\\\\b\\u00fc",
        "ssl.clientAuth=want",
        "sslQuorum=true",
        "ssl.quorum.keyStore.location=/q.pem",
        "server.1=a:2888:3888",
    ] {
        assert!(has(&text, line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("clientPort="), "{text}");

    pairs.retain(|(name, _)| *name != "ZOO_TLS_QUORUM_KEYSTORE_FILE");
    let error = planned(&pairs, &Found::default()).unwrap_err();
    assert_eq!(error, "ZOO_TLS_QUORUM_KEYSTORE_FILE is not set, but ZOO_TLS_QUORUM_ENABLE needs it");
    let open = [("ZOO_TLS_CLIENT_ENABLE", "yes"), ("ZOO_SERVERS", THREE)];
    let stores = [("ZOO_TLS_CLIENT_KEYSTORE_FILE", "/k"), ("ZOO_TLS_CLIENT_TRUSTSTORE_FILE", "/t")];
    let error = planned(&[open, stores].concat(), &Found::default()).unwrap_err();
    assert!(error.starts_with("ZOO_TLS_CLIENT_ENABLE leaves no port without TLS"), "{error}");
}

#[test]
fn logins_are_in_a_file_that_zoo_cfg_names() {
    let pairs = [("ZOO_ENABLE_AUTH", "yes"), ("ZOO_SERVER_USERS", "ann"), ("ZOO_SERVER_PASSWORDS", "secret")];
    let plan = planned(&pairs, &Found::default()).unwrap();
    let text = plan.zoo_cfg.unwrap();
    assert!(
        has(&text, "sasl.jaasFile=/conf/zoo_jaas.conf") && has(&text, "enforce.auth.enabled=true"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    assert!(plan.jaas.unwrap().contains("user_ann=\"secret\""));
}

#[test]
fn a_zoo_cfg_of_somebody_wins_and_one_of_the_environment_is_made_again() {
    let mine = Found { zoo_cfg: Some("dataDir=/mine\n".into()), ..Found::default() };
    let plan = planned(&[("ZOO_TICK_TIME", "9")], &mine).unwrap();
    assert_eq!(plan.zoo_cfg, None);
    assert_eq!(plan.notes, ["/conf/zoo.cfg is there, so the environment sets nothing in it"]);
    let made = Found { zoo_cfg: Some(format!("{MARK}\ntickTime=1\n")), ..Found::default() };
    assert!(has(&planned(&[("ZOO_TICK_TIME", "9")], &made).unwrap().zoo_cfg.unwrap(), "tickTime=9"));
}

#[test]
fn a_myid_that_is_there_counts() {
    let found = Found { my_id: Some("3\n".into()), ..Found::default() };
    let plan = planned(&[("ZOO_MY_ID", "2"), ("ZOO_SERVERS", THREE)], &found).unwrap();
    assert_eq!(plan.my_id, None);
    assert_eq!(
        plan.notes,
        ["the environment gives this server the id 2, but /data/myid has 3, which counts"]
    );
}

#[test]
fn a_server_that_is_not_listed_joins_without_a_vote_or_is_refused() {
    let mut pairs = vec![("OSTLER_ID_FROM_NAME", "zk-3"), ("ZOO_SERVERS", THREE)];
    assert!(planned(&pairs, &Found::default()).unwrap_err().starts_with("ZOO_SERVERS has no server 4"));
    pairs.push(("OSTLER_OWN_SERVER", "zk-3.zk:2888:3888:participant;2181"));
    let text = zoo_cfg(&pairs);
    assert!(has(&text, "server.4=zk-3.zk:2888:3888:observer;2181"), "{text}");
    assert!(has(&text, "server.3=zoo3:2888:3888;2181"), "{text}");
}

#[test]
fn an_ensemble_that_has_changed_counts_more_than_the_environment() {
    let dynamic = "server.1=a:1:2:participant;3\nserver.5=b:1:2:participant;3";
    let found = |my_id: &str| Found {
        zoo_cfg: Some(format!("{MARK}\ntickTime=1\ndynamicConfigFile=/conf/zoo.cfg.dynamic.100000001\n")),
        dynamic: Some(dynamic.into()),
        my_id: Some(my_id.into()),
    };
    let listed = planned(&[("ZOO_SERVERS", THREE)], &found("5")).unwrap().zoo_cfg.unwrap();
    assert!(listed.ends_with("\ndynamicConfigFile=/conf/zoo.cfg.dynamic.100000001\n"), "{listed}");
    assert!(!listed.contains("server."), "{listed}");

    let bare = Found { dynamic: Some("server.5=b:1:2:participant".into()), ..found("5") };
    let text = planned(&[], &bare).unwrap().zoo_cfg.unwrap();
    assert!(text.ends_with(".100000001\nclientPort=2181\n"), "{text}");

    // A server that was removed comes again only with a line of its own, and has no vote then.
    let error = planned(&[("ZOO_SERVERS", THREE)], &found("2")).unwrap_err();
    assert!(
        error.starts_with("the ensemble has removed server 2, this one (/conf/zoo.cfg.dynamic.100000001)"),
        "{error}"
    );
    let own = [("ZOO_SERVERS", THREE), ("OSTLER_OWN_SERVER", "c:1:2;3")];
    let again = planned(&own, &found("2")).unwrap().zoo_cfg.unwrap();
    assert!(again.ends_with(&format!("{dynamic}\nserver.2=c:1:2:observer;3\n")), "{again}");
    assert!(!again.contains("dynamicConfigFile"), "{again}");
}

#[test]
fn a_part_of_the_extra_lines_without_a_key_is_refused() {
    let error = planned(&[("ZOO_CFG_EXTRA", "a=1 secret")], &Found::default()).unwrap_err();
    assert_eq!(
        error,
        "ZOO_CFG_EXTRA: part 2 is no line of zoo.cfg; write key=value, with a space between two"
    );
}
