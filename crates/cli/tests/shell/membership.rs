//! Tests of `config` and `reconfig`.

use crate::program::{Said, once};
use ostler_testkit::{TestEnsemble, TestOptions};

#[tokio::test]
async fn members_leave_and_join() {
    let options = TestOptions::new().setting("reconfigEnabled", "true").setting("skipACL", "yes");
    let ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    let leader = ensemble.wait_for_leader().await.unwrap();
    let at = ensemble.member(leader).unwrap().connect_string();
    let gone = ensemble.ids().find(|member| *member != leader).unwrap().0;
    let config = once(&at, &["config"]).out;
    let name = format!("server.{gone}=");
    let line = config.lines().find_map(|line| line.strip_prefix(&name)).unwrap().to_owned();

    let left = once(&at, &["reconfig", "-s", "-remove", &gone.to_string()]);
    assert_eq!((left.code, &*left.err), (Some(0), ""), "{left:?}");
    assert!(left.out.starts_with("Committed new configuration:\nserver."), "{left:?}");
    assert!(left.out.contains("\ncZxid = 0x") && !left.out.contains(&name), "{left:?}");

    let for_clients = once(&at, &["config", "-c"]).out;
    let (version, addresses) = for_clients.trim_end().split_once(' ').unwrap();
    assert!(left.out.contains(&format!("\nversion={version}\n")), "{for_clients} {left:?}");
    assert!(addresses.split(',').any(|address| address == at), "{for_clients}");

    let joining = format!("{gone}={line}");
    let Said { err, code, .. } = once(&at, &["reconfig", "-v", "1", "-add", &joining]);
    assert!(err.starts_with("version No is not valid : ") && err.contains("last line of config"), "{err}");
    assert_eq!(code, Some(1));
    let joined = once(&at, &["reconfig", "-v", version, "-add", &joining]);
    assert_eq!(joined.code, Some(0), "{joined:?}");
    assert!(joined.out.contains(&format!("{name}{line}")), "{joined:?}");
}

#[tokio::test]
async fn a_refused_reconfiguration_gives_a_reason() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let Said { out, err, code } = once(&ensemble.connect_string(), &["reconfig", "-remove", "3"]);
    assert_eq!((&*out, code), ("", Some(1)));
    assert!(err.contains("reconfigEnabled=true in zoo.cfg allows it"), "{err}");
}
