//! Files of servers in an ensemble.

use super::*;
use ostler_proto::id::ServerId;
use ostler_server_core::quorum::LocalSessions;

/// The zoo.cfg of an ensemble's server, beside a myid file.
fn member_file(myid: &str, lines: &str) -> File {
    let file = File::new("");
    std::fs::write(file.dir.path().join("myid"), myid).unwrap();
    let text = format!("dataDir={}\nclientPort=2181\n{lines}", file.dir.path().display());
    std::fs::write(file.dir.path().join("zoo.cfg"), text).unwrap();
    file
}

fn ensemble(myid: &str, lines: &str) -> EnsembleSettings {
    *member_file(myid, lines).load().unwrap().config.ensemble.unwrap()
}

#[track_caller]
fn check_member_error(myid: &str, lines: &str, expected: &str) {
    let file = member_file(myid, lines);
    assert_eq!(file.without_folder(file.load().unwrap_err()), expected);
}

#[test]
fn several_servers_are_an_ensemble() {
    let settings = ensemble("2\n", "server.2=b:1:2\nserver.1=a:1:2;2181\nserver.3=c:1:2:observer");
    assert_eq!(settings.me, ServerId(2));
    assert!(settings.membership.voters().eq([ServerId(1), ServerId(2)]));
    assert_eq!((settings.init_limit, settings.sync_limit), (10, 5));
    assert_eq!(
        settings.membership.to_string(),
        "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:participant\nserver.3=c:1:2:observer\nversion=0"
    );
    let alone = ensemble("1", "standaloneEnabled=false\nserver.1=a:1:2");
    assert!(alone.membership.voters().eq([ServerId(1)]));
}

#[test]
fn groups_and_weights_make_a_weighted_quorum() {
    let servers = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2";
    let settings = ensemble("1", &format!("{servers}\ngroup.1=1:2\ngroup.2=3\nweight.3=0"));
    let text = settings.membership.to_string();
    assert!(text.ends_with("\ngroup.1=1:2\ngroup.2=3\nweight.3=0\nversion=0"));
    check_member_error(
        "1",
        &format!("{servers}\ngroup.1=1:2"),
        "zoo.cfg:6: group.1: server.3 is in no group; with groups every voter has one",
    );
}

#[test]
fn sessions_are_local_where_both_keys_say_so() {
    let of = |lines: &str| ensemble("1", &format!("server.1=a:1:2\nserver.2=b:1:2{lines}")).local_sessions;
    assert_eq!(of(""), LocalSessions::Off);
    assert_eq!(of("\nlocalSessionsUpgradingEnabled=true"), LocalSessions::Off);
    assert_eq!(of("\nlocalSessionsEnabled=true"), LocalSessions::Fixed);
    let both = "\nlocalSessionsEnabled=true\nlocalSessionsUpgradingEnabled=true";
    assert_eq!(of(both), LocalSessions::Upgradeable);
}

/// The top byte of its session ids would be the mark of a TTL znode's owner field.
#[test]
fn no_server_has_an_id_that_marks_ttl_znodes() {
    let servers = "server.1=a:1:2\nserver.255=b:1:2";
    assert_eq!(ensemble("255", servers).me, ServerId(255));
    for (me, more) in [("255", "extendedTypesEnabled=true"), ("1", "extendedTypesEnabled=true")] {
        check_member_error(
            me,
            &format!("{servers}\n{more}"),
            "zoo.cfg:4: server.255: no server may have an id above 254 where TTL znodes are enabled: ids of its sessions \
             would look like marks of TTL znodes, and its ephemerals would outlive them. Give that server another id, in its \
             myid and at all servers, or set extendedTypesEnabled=false at all servers",
        );
    }
    let servers = "server.1=a:1:2\nserver.254=b:1:2\nextendedTypesEnabled=true";
    assert_eq!(ensemble("254", servers).me, ServerId(254));
}

#[test]
fn election_port_bind_retry_sets_the_number_of_attempts_to_listen() {
    let of = |lines: &str| ensemble("1", &format!("server.1=a:1:2\nserver.2=b:1:2{lines}")).bind_retries;
    assert_eq!(of(""), Some(3));
    assert_eq!(of("\nelectionPortBindRetry=0"), None);
    assert_eq!(of("\nelectionPortBindRetry=7"), Some(7));
    assert_eq!(of("\nelectionPortBindRetry=-1"), Some(3));
}

#[test]
fn an_ensemble_without_a_valid_myid_is_refused() {
    let servers = "server.1=a:1:2\nserver.2=b:1:2";
    check_error_of_lines(
        servers,
        "zoo.cfg:3: server.1: describes an ensemble, so /d/myid must hold this server's number: No such file or \
         directory (os error 2)",
    );
    check_member_error(
        "one",
        servers,
        "zoo.cfg:3: server.1: describes an ensemble, and myid holds no number",
    );
    check_member_error(
        "7",
        servers,
        "zoo.cfg:3: server.1: no server.N line is for 7, the number in myid; add the line or correct that file",
    );
    check_member_error(
        "1",
        "server.1=a:1:2:observer",
        "zoo.cfg:3: server.1: every server is an observer; at least one server has to vote",
    );
    check_error_of_lines(
        "standaloneEnabled=false",
        "zoo.cfg:3: standaloneEnabled: asks for an ensemble, but there is no server.N line; add such lines, or \
         remove this one",
    );
}

#[test]
fn server_lines_are_read_from_the_dynamic_file() {
    let file = File::new("");
    let dynamic = file.dir.path().join("zoo.cfg.dynamic");
    let named = format!("dataDir=/d\ndynamicConfigFile={}\n", dynamic.display());
    std::fs::write(&dynamic, "server.1=h:1:2:participant;127.0.0.1:2191\n").unwrap();
    assert_eq!(config(&named).clients.client_address, Some("127.0.0.1:2191".parse().unwrap()));

    std::fs::write(&dynamic, "server.1=h:1:2;2181\nserver.2=h:3:4;2182\n").unwrap();
    let error = File::new(&named).load().unwrap_err();
    assert!(file.without_folder(error).starts_with("zoo.cfg.dynamic:1: server.1: describes an ensemble"));

    std::fs::write(&dynamic, "clientPort=2181\n").unwrap();
    let error = File::new(&named).load().unwrap_err();
    assert!(file.without_folder(error).starts_with("zoo.cfg.dynamic:1: clientPort: only server.N"));

    let error = File::new(&format!("{named}server.1=h:1:2\n")).load().unwrap_err();
    assert!(error.to_string().contains("zoo.cfg:3: server.1: must stand in "), "{error}");
}
