//! The folders of an ensemble: a zoo.cfg, a myid, a log and the data of each server. Existing files are kept.

use super::EnsembleError;
use crate::bench::process::Process;
use ostler_proto::id::ServerId;
use ostler_server::config::{self, ADMIN_PORT, EnsembleSettings, ServerConfig};
use ostler_storage::disk::{Disk as _, OsDisk};
use std::{
    fs::File,
    io::{ErrorKind, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

pub(super) const SERVERS: u16 = 3;
pub(super) const SERVERS_MAX: u16 = 9;
const FIRST_PORT: u16 = 2181;
/// The distance from a server's client port to its quorum port and its election port.
const TO_QUORUM_PORT: u16 = 100;
const TO_ELECTION_PORT: u16 = 200;
/// The distance from the first client port to the first port that is tried for an admin server.
const TO_ADMIN_PORT: u16 = 300;
/// The ports that are tried for admin servers.
const ADMIN_PORTS_TRIED: u16 = 1_000;

/// Files and addresses of a server.
#[derive(Debug, Clone)]
pub(super) struct ServerSetup {
    pub(super) id: u16,
    pub(super) zoo_cfg: PathBuf,
    /// The file with the server's standard output and standard error.
    pub(super) log: PathBuf,
    /// The address for clients.
    pub(super) clients: SocketAddr,
    /// The admin server, if the zoo.cfg names its address or port. Without that, at most one server has it.
    pub(super) admin: Option<SocketAddr>,
    pub(super) votes: bool,
    /// The file with the server's current epoch.
    pub(super) current_epoch: PathBuf,
}

/// An address at which a server will listen.
struct ListenAddress {
    host: String,
    port: u16,
    what: &'static str,
    id: u16,
}

/// Finds the ensemble in `folder`, or makes one there. Nothing is written before its ports are known to be free.
pub(super) fn prepare(
    folder: &Path,
    servers: Option<u16>,
    port: Option<u16>,
) -> Result<Vec<ServerSetup>, EnsembleError> {
    let during =
        |cause| EnsembleError::Io { what: format!("cannot use the folder {}", folder.display()), cause };
    let folder = std::path::absolute(folder).map_err(during)?;
    if zoo_cfg(&folder, 1).exists() {
        let (places, doors) = read(&folder)?;
        check_asked(&folder, &places, servers, port)?;
        check_free(&doors, "end what listens there, or give the zoo.cfg files other ports")?;
        return Ok(places);
    }
    let (servers, port) = (servers.unwrap_or(SERVERS), port.unwrap_or(FIRST_PORT));
    let last = u32::from(port) + u32::from(TO_ELECTION_PORT + servers - 1);
    if last > u16::MAX.into() {
        return Err(EnsembleError::NoRoom { port, last });
    }
    check_free(&new_doors(servers, port), "end what listens there, or choose other ports with --port")?;
    let new = NewEnsemble { servers, port, admin: admin_ports(servers, port) };
    // The first server's file is written last: if it is there, all are there.
    for id in (1..=servers).rev() {
        write(&folder, id, &new)?;
    }
    Ok(read(&folder)?.0)
}

fn server_folder(folder: &Path, id: u16) -> PathBuf {
    folder.join(format!("server-{id}"))
}

fn zoo_cfg(folder: &Path, id: u16) -> PathBuf {
    server_folder(folder, id).join("zoo.cfg")
}

fn new_doors(servers: u16, port: u16) -> Vec<ListenAddress> {
    let door = |port, what, id| ListenAddress { host: Ipv4Addr::LOCALHOST.to_string(), port, what, id };
    let of = |id| {
        let clients = port + id - 1;
        [
            door(clients, "clients", id),
            door(clients + TO_QUORUM_PORT, "followers", id),
            door(clients + TO_ELECTION_PORT, "votes", id),
        ]
    };
    (1..=servers).flat_map(of).collect()
}

/// An ensemble that is to be written.
struct NewEnsemble {
    servers: u16,
    port: u16,
    /// A port for each server's admin server; empty if there are none.
    admin: Vec<u16>,
}

/// Free ports of loopback for the admin servers: from 8080 on, or near the ports that were asked for.
fn admin_ports(servers: u16, port: u16) -> Vec<u16> {
    let first = if port == FIRST_PORT { ADMIN_PORT } else { port.saturating_add(TO_ADMIN_PORT) };
    let own: Vec<u16> = new_doors(servers, port).iter().map(|door| door.port).collect();
    let tried = first..first.saturating_add(ADMIN_PORTS_TRIED);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let free: Vec<u16> =
        tried.filter(|port| !own.contains(port)).filter(is_free).take(servers.into()).collect();
    if free.len() == usize::from(servers) { free } else { Vec::new() }
}

/// The lines about the admin servers. The console may change things here: it is a place to try things out.
fn admin_lines(id: u16, ports: &[u16]) -> String {
    let Some(own) = ports.get(usize::from(id) - 1) else { return "admin.enableServer=false\n".into() };
    let peers = (1..).zip(ports).map(|(id, port)| format!("{id}=127.0.0.1:{port}"));
    let peers = peers.collect::<Vec<_>>().join(";");
    format!("admin.serverPort={own}\nadmin.readOnly=false\nadmin.peers={peers}\n")
}

fn write(folder: &Path, id: u16, new: &NewEnsemble) -> Result<(), EnsembleError> {
    let NewEnsemble { servers, port, admin } = new;
    let (servers, port) = (*servers, *port);
    let home = server_folder(folder, id);
    let data = home.to_str().ok_or_else(|| EnsembleError::Unwritable(home.clone()))?.replace('\\', "\\\\");
    let mut text = format!(
        "# Server {id} of {servers}, written by `ostler ensemble`. Yours to change: it is kept.\n\
         # Short limits, so that a lost leader is missed soon: sessions live from 1 to 10 s here.\n\
         tickTime=500\n\
         initLimit=20\n\
         syncLimit=4\n\
         dataDir={data}\n\
         clientPort={clients}\n\
         clientPortAddress=127.0.0.1\n\
         maxClientCnxns=0\n\
         preAllocSize=4096\n\
         autopurge.purgeInterval=1\n\
         4lw.commands.whitelist=*\n",
        clients = port + id - 1,
    );
    text += &admin_lines(id, admin);
    if servers == 1 {
        text += "standaloneEnabled=false\n";
    }
    for other in 1..=servers {
        let clients = port + other - 1;
        let (quorum, election) = (clients + TO_QUORUM_PORT, clients + TO_ELECTION_PORT);
        text += &format!("server.{other}=127.0.0.1:{quorum}:{election}\n");
    }
    let during = |path: PathBuf| {
        move |cause| EnsembleError::Io { what: format!("cannot write {}", path.display()), cause }
    };
    OsDisk.create_dir_all(&home).map_err(during(home.clone()))?;
    let myid = home.join("myid");
    let made = OsDisk.create(&myid).and_then(|file| file.write_all_at(format!("{id}\n").as_bytes(), 0));
    made.map_err(during(myid.clone()))?;
    let path = zoo_cfg(folder, id);
    match File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(EnsembleError::Remains { there: path, lacking: zoo_cfg(folder, 1) })
        }
        done => done.map_err(during(path)),
    }
}

/// All servers that the first server's zoo.cfg names, each with the settings of its own zoo.cfg.
fn read(folder: &Path) -> Result<(Vec<ServerSetup>, Vec<ListenAddress>), EnsembleError> {
    let count = settings(&zoo_cfg(folder, 1), 1)?.1.membership.servers.len();
    let (mut places, mut doors) = (Vec::new(), Vec::new());
    for id in 1..=count as u16 {
        let path = zoo_cfg(folder, id);
        let (config, ensemble) = settings(&path, id)?;
        let secure = config.clients.secure.as_ref().and_then(|secure| secure.address);
        let clients =
            config.clients.client_address.or(secure).expect("a configuration has a port for clients");
        let current_epoch = config.folders.data_dir.join("version-2/currentEpoch");
        let own = ensemble.membership.servers.get(&ServerId(id.into()));
        let log = server_folder(folder, id).join("server.log");
        let votes = own.is_some_and(|own| !own.observer);
        let admin = config.admin.as_ref().filter(|admin| admin.is_written).map(|admin| admin.address);
        places.push(ServerSetup {
            id,
            zoo_cfg: path,
            log,
            clients: reachable(clients),
            admin: admin.map(reachable),
            votes,
            current_epoch,
        });
        doors.push(ListenAddress {
            host: clients.ip().to_string(),
            port: clients.port(),
            what: "clients",
            id,
        });
        if let Some(admin) = admin {
            let host = admin.ip().to_string();
            doors.push(ListenAddress { host, port: admin.port(), what: "the admin server", id });
        }
        for address in own.into_iter().flat_map(|own| &own.addresses) {
            let host = &address.host;
            let door = |port, what| ListenAddress { host: host.clone(), port, what, id };
            doors.extend([door(address.quorum_port, "followers"), door(address.election_port, "votes")]);
        }
    }
    Ok((places, doors))
}

fn settings(zoo_cfg: &Path, id: u16) -> Result<(ServerConfig, EnsembleSettings), EnsembleError> {
    let mut config = config::load(zoo_cfg)?.config;
    match config.ensemble.take() {
        Some(ensemble) if ensemble.me == ServerId(id.into()) => Ok((config, *ensemble)),
        _ => Err(EnsembleError::NotServer { zoo_cfg: zoo_cfg.to_owned(), id }),
    }
}

/// The address at which a listener on `address` can be reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // `::` accepts IPv4, too, and a machine may have no IPv6.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn check_asked(
    folder: &Path,
    places: &[ServerSetup],
    servers: Option<u16>,
    port: Option<u16>,
) -> Result<(), EnsembleError> {
    let there = places.len();
    if let Some(wanted) = servers.filter(|wanted| usize::from(*wanted) != there) {
        return Err(EnsembleError::OtherSize { folder: folder.to_owned(), there, wanted });
    }
    let first = places[0].clients.port();
    match port {
        Some(wanted) if wanted != first => {
            Err(EnsembleError::OtherPort { zoo_cfg: zoo_cfg(folder, 1), there: first, wanted })
        }
        _ => Ok(()),
    }
}

fn check_free(doors: &[ListenAddress], remedy: &'static str) -> Result<(), EnsembleError> {
    // All listeners are kept until the end of the check: two servers may have the same address.
    let mut held = Vec::new();
    for door in doors {
        let bound = TcpListener::bind((door.host.as_str(), door.port)).or_else(|error| {
            let everywhere = door.host == Ipv6Addr::UNSPECIFIED.to_string();
            if everywhere && error.kind() != ErrorKind::AddrInUse {
                return TcpListener::bind((Ipv4Addr::UNSPECIFIED, door.port));
            }
            Err(error)
        });
        held.push(bound.map_err(|cause| {
            let ListenAddress { host, port, what, id } = door;
            let address = format!("{host}:{port}, for {what} of server {id},");
            match cause.kind() {
                ErrorKind::AddrInUse => EnsembleError::InUse { address, by: user_of(*port), remedy },
                _ => EnsembleError::Io { what: format!("{address} cannot be listened at"), cause },
            }
        })?);
    }
    Ok(())
}

fn user_of(port: u16) -> String {
    Process::listening_on((Ipv4Addr::LOCALHOST, port).into())
        .map_or_else(String::new, |process| format!(" by process {}", process.pid()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicU16, Ordering};

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            static NEXT: AtomicU16 = AtomicU16::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("ostler-ensemble-folders-{}-{number}", std::process::id());
            Folder(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The first port of an ensemble of three servers. As far as can be known its ports are free, and no other test has
    /// them.
    fn free_port() -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let begin = std::process::id() as u16 % 30;
        let next = || 30_000 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % 30 * SERVERS;
        std::iter::repeat_with(next).find(|port| check_free(&new_doors(SERVERS, *port), "").is_ok()).unwrap()
    }

    #[test]
    fn an_ensemble_is_made_and_found_again() {
        let (folder, port) = (Folder::new(), free_port());
        let made = prepare(&folder.0, None, Some(port)).unwrap();
        assert_eq!(made.iter().map(|place| place.id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(made[2].clients, SocketAddr::from(([127, 0, 0, 1], port + 2)));
        assert!(made.iter().all(|place| place.votes));
        let admin: Vec<SocketAddr> = made.iter().map(|place| place.admin.unwrap()).collect();
        assert!(
            admin.iter().all(|admin| admin.ip().is_loopback()) && admin[0].port() >= port + TO_ADMIN_PORT,
            "{admin:?}"
        );
        let written = fs::read_to_string(&made[1].zoo_cfg).unwrap();
        let peers = format!("admin.peers=1={};2={};3={}\n", admin[0], admin[1], admin[2]);
        assert!(written.contains(&peers) && written.contains("admin.readOnly=false\n"), "{written}");
        assert_eq!(fs::read_to_string(folder.0.join("server-2/myid")).unwrap(), "2\n");

        let mine = fs::read_to_string(&made[1].zoo_cfg).unwrap() + "snapCount=1000\n";
        fs::write(&made[1].zoo_cfg, &mine).unwrap();
        for (servers, port) in [(None, None), (Some(3), Some(port))] {
            let found = prepare(&folder.0, servers, port).unwrap();
            assert_eq!(found[1].clients, made[1].clients);
        }
        assert_eq!(fs::read_to_string(&made[1].zoo_cfg).unwrap(), mine, "it is kept");

        let other_size = prepare(&folder.0, Some(5), None).unwrap_err().to_string();
        assert!(other_size.contains("an ensemble of 3, not of 5"), "{other_size}");
        let other_port = prepare(&folder.0, None, Some(port + 1)).unwrap_err().to_string();
        assert!(other_port.contains(&format!("client port {port}, not {}", port + 1)), "{other_port}");
    }

    #[test]
    fn one_server_is_an_ensemble_too() {
        let folder = Folder::new();
        assert_eq!(prepare(&folder.0, Some(1), Some(free_port())).unwrap().len(), 1);
    }

    #[test]
    fn a_port_in_use_is_named_and_nothing_is_written() {
        let (folder, port) = (Folder::new(), free_port());
        let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, port + TO_ELECTION_PORT + 1)).unwrap();
        let said = prepare(&folder.0, None, Some(port)).unwrap_err().to_string();
        let address = holder.local_addr().unwrap();
        assert!(
            said.starts_with(&format!("{address}, for votes of server 2, is in use by process ")),
            "{said}"
        );
        assert!(!folder.0.exists());
    }

    #[test]
    fn admin_servers_get_ports_that_are_free() {
        let port = free_port();
        let first = admin_ports(1, port)[0];
        let _holder = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let ports = admin_ports(3, port);
        assert!(ports.len() == 3 && ports.iter().all(|port| *port > first), "{ports:?}");
        assert_eq!(admin_lines(1, &[]), "admin.enableServer=false\n");
    }

    #[test]
    fn ports_beyond_the_last_are_refused() {
        let said = prepare(&Folder::new().0, Some(3), Some(65_500)).unwrap_err().to_string();
        assert!(said.contains("65702"), "{said}");
    }

    #[test]
    fn files_of_another_ensemble_are_not_overwritten() {
        let (folder, port) = (Folder::new(), free_port());
        prepare(&folder.0, None, Some(port)).unwrap();
        fs::remove_file(zoo_cfg(&folder.0, 1)).unwrap();
        let said = prepare(&folder.0, None, Some(port)).unwrap_err().to_string();
        assert!(
            said.contains("server-3/zoo.cfg is there") && said.contains("server-1/zoo.cfg is not"),
            "{said}"
        );
    }
}
