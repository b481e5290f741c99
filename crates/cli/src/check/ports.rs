//! The ports of the server: whether they are free, or held by this very server.

use super::{
    finding::{Finding, Level, Topic},
    words::{self, Answer},
};
use ostler_inspect::repair;
use ostler_server::config::ServerConfig;
use ostler_storage::folders::DataFolders;
use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs},
    path::Path,
};

/// A server that runs already with this configuration's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnServer {
    /// How it was recognized.
    evidence: String,
}

/// A port that the server will open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WantedPort {
    /// The key of zoo.cfg.
    key: String,
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// The result of an attempt to listen at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PortState {
    Free,
    /// Another socket has it. Whether a server of ZooKeeper's protocol answers there.
    InUse(bool),
    /// The address is of another machine.
    NotHere,
    /// This user may not open it.
    Denied,
    /// The name stands for no address.
    Unresolved(String),
    Failed(String),
}

/// The server that runs with this configuration's data, if there is one.
pub(super) fn own_server(config: &ServerConfig) -> Option<OwnServer> {
    let folders = DataFolders::at(&config.folders.data_dir, Some(&config.folders.data_log_dir));
    if let Some(pid) = repair::users(&[&folders.snapshots, &folders.logs]).first() {
        return Some(OwnServer { evidence: format!("process {pid} has files of its data folder open") });
    }
    let address = config.clients.client_address.filter(|address| address.port() != 0)?;
    let conf = words::ask(&reachable(address.ip()).to_string(), address.port(), "conf");
    is_of_folder(conf.text()?, &folders.snapshots)
        .then(|| OwnServer { evidence: format!("it answers at port {} with this dataDir", address.port()) })
}

/// Whether an answer to `conf` is of a server with this data folder.
fn is_of_folder(conf: &str, snapshots: &Path) -> bool {
    let same = |path: &Path| {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        whole(path) == whole(snapshots)
    };
    // Java names version-2 itself.
    words::value(conf, "dataDir")
        .is_some_and(|dir| same(Path::new(dir)) || same(&Path::new(dir).join("version-2")))
}

/// An address at which a listener on all addresses is reached.
fn reachable(ip: IpAddr) -> IpAddr {
    if ip.is_unspecified() { IpAddr::V4(std::net::Ipv4Addr::LOCALHOST) } else { ip }
}

pub(super) fn check(config: &ServerConfig, own: Option<&OwnServer>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(own) = own {
        findings.push(Finding::new(
            Level::Note,
            Topic::Ports,
            format!(
                "the server of this configuration runs already: {}; ports that are in use are its own",
                own.evidence
            ),
        ));
    }
    let wanted = wanted(config);
    findings.extend(wanted.iter().filter_map(|port| judge(port, &state(port), own.is_some())));
    findings
}

fn wanted(config: &ServerConfig) -> Vec<WantedPort> {
    let mut wanted = Vec::new();
    let mut add = |key: String, host: Host, port: u16| {
        if port != 0 {
            wanted.push(WantedPort { key, host, port });
        }
    };
    let clients = &config.clients;
    let secure = clients.secure.as_ref().and_then(|secure| secure.address);
    for (key, address) in [("clientPort", clients.client_address), ("secureClientPort", secure)] {
        if let Some(address) = address {
            add(key.to_owned(), Host::Address(address.ip()), address.port());
        }
    }
    if let Some(ensemble) = &config.ensemble
        && let Some(me) = ensemble.membership.servers.get(&ensemble.me)
    {
        let all = || Host::Address(Ipv6Addr::UNSPECIFIED.into());
        for address in &me.addresses {
            let host = || if ensemble.listen_on_all { all() } else { Host::Name(address.host.clone()) };
            add(format!("server.{}, quorum port", ensemble.me), host(), address.quorum_port);
            add(format!("server.{}, election port", ensemble.me), host(), address.election_port);
        }
        if let Some(port) = ensemble.observer_master_port {
            add("observerMasterPort".to_owned(), all(), port);
        }
    }
    wanted
}

fn state(wanted: &WantedPort) -> PortState {
    let ip = match &wanted.host {
        Host::Address(ip) => *ip,
        Host::Name(name) => match (&**name, wanted.port).to_socket_addrs().map(|mut found| found.next()) {
            Ok(Some(address)) => address.ip(),
            Ok(None) => return PortState::Unresolved("the name stands for no address".to_owned()),
            Err(error) => return PortState::Unresolved(error.to_string()),
        },
    };
    match TcpListener::bind(SocketAddr::from((ip, wanted.port))) {
        Ok(_) => PortState::Free,
        Err(error) => state_of(&error, || {
            let answer = words::ask(&reachable(ip).to_string(), wanted.port, "srvr");
            matches!(answer, Answer::NotAllowed)
                || answer.text().is_some_and(|text| words::version(text).is_some())
        }),
    }
}

fn state_of(error: &io::Error, answers: impl FnOnce() -> bool) -> PortState {
    match error.kind() {
        ErrorKind::AddrInUse => PortState::InUse(answers()),
        ErrorKind::AddrNotAvailable => PortState::NotHere,
        ErrorKind::PermissionDenied => PortState::Denied,
        _ => PortState::Failed(error.to_string()),
    }
}

fn judge(wanted: &WantedPort, state: &PortState, own_runs: bool) -> Option<Finding> {
    let WantedPort { key, host, port } = wanted;
    let host = match host {
        Host::Address(ip) => ip.to_string(),
        Host::Name(name) => name.clone(),
    };
    let error = |text: String| Some(Finding::new(Level::Error, Topic::Ports, format!("{key}: {text}")));
    match state {
        PortState::Free => None,
        PortState::InUse(_) if own_runs => None,
        PortState::InUse(true) => error(format!(
            "port {port} at {host} is in use by another server of ZooKeeper's protocol; stop that one, or choose \
             another \
             port"
        )),
        PortState::InUse(false) => error(format!(
            "port {port} at {host} is in use by another program; stop that one, or choose another port"
        )),
        PortState::NotHere => error(format!(
            "{host} is no address of this machine, so port {port} cannot be opened there; correct the address, or \
             run this \
             check on the machine of the server"
        )),
        PortState::Denied => error(format!("this user may not open port {port}; use one from 1024 on")),
        PortState::Unresolved(reason) => {
            error(format!("the name {host} cannot be resolved ({reason}); add it to DNS or to /etc/hosts"))
        }
        PortState::Failed(reason) => error(format!("port {port} at {host} cannot be opened: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: u16) -> WantedPort {
        WantedPort { key: "clientPort".into(), host: Host::Address(IpAddr::from([127, 0, 0, 1])), port }
    }

    #[test]
    fn a_port_in_use_is_an_error_unless_the_own_server_has_it() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = port(held.local_addr().unwrap().port());
        let error = TcpListener::bind(held.local_addr().unwrap()).unwrap_err();
        assert_eq!(state_of(&error, || true), PortState::InUse(true));
        assert_eq!(judge(&taken, &PortState::InUse(false), true), None);
        assert_eq!(judge(&taken, &PortState::InUse(false), false).unwrap().level, Level::Error);
        drop(held);
        assert_eq!(state(&taken), PortState::Free);
        assert_eq!(judge(&taken, &PortState::Free, false), None);
    }

    #[test]
    fn an_address_of_another_machine_and_an_unknown_name_are_errors() {
        let elsewhere = WantedPort { host: Host::Address(IpAddr::from([192, 0, 2, 1])), ..port(30999) };
        assert_eq!(state(&elsewhere), PortState::NotHere);
        let finding = judge(&elsewhere, &PortState::NotHere, false).unwrap();
        assert!(finding.text.contains("192.0.2.1 is no address of this machine"), "{}", finding.text);
        let unknown = WantedPort { host: Host::Name("no.such.host.invalid".into()), ..port(30999) };
        let unresolved = PortState::Unresolved("no such name".into());
        assert_eq!(judge(&unknown, &unresolved, false).unwrap().level, Level::Error);
    }

    #[test]
    fn the_own_server_is_recognized_by_its_folder_in_both_forms() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("version-2");
        std::fs::create_dir(&inner).unwrap();
        let conf = |path: &Path| format!("clientPort=1\ndataDir={}\n", path.display());
        assert!(is_of_folder(&conf(dir.path()), &inner));
        assert!(is_of_folder(&conf(&inner), &inner));
        assert!(!is_of_folder(&conf(Path::new("/other")), &inner));
        assert!(!is_of_folder("clientPort=1\n", &inner));
    }
}
