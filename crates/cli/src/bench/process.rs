//! CPU time and memory of the server's process, if it runs on this machine (`/proc`).

use super::error::{BenchError, Result, While};
use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

/// A local process, or those of the servers of one ensemble.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pid: u32,
    others: &'static [u32],
}

/// The resources that a process has used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    /// Bytes of memory in core.
    pub(crate) rss: u64,
}

impl Process {
    /// The process with this id, if it exists.
    pub(crate) fn of_pid(pid: u32) -> Result<Process> {
        let process = Process { pid, others: &[] };
        match process.usage() {
            Some(_) => Ok(process),
            None => Err(BenchError::NoProcess(format!("there is no process {pid}"))),
        }
    }

    /// This process.
    pub(crate) fn current() -> Process {
        Process { pid: std::process::id(), others: &[] }
    }

    /// The process that listens on a loopback port of this machine, if /proc shows it to this user.
    pub(crate) fn listening_on(server: SocketAddr) -> Option<Process> {
        if !server.ip().is_loopback() {
            return None;
        }
        let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .find_map(|table| table.lines().find_map(|line| listening_inode(line, server.port())))?;
        let wanted = PathBuf::from(format!("socket:[{inode}]"));
        let pids = fs::read_dir("/proc").ok()?;
        pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .map(|pid| Process { pid, others: &[] })
            .find(|process| process.open_files().any(|file| file == wanted))
    }

    pub(crate) fn pid(self) -> u32 {
        self.pid
    }

    /// Together with the processes that listen at `servers`, as far as they can be found.
    pub(crate) fn with(self, servers: &[SocketAddr]) -> Process {
        let others: Vec<u32> =
            servers.iter().filter_map(|server| Process::listening_on(*server)).map(Process::pid).collect();
        // Needed until the program ends.
        Process { others: others.leak(), ..self }
    }

    /// The sum over the processes; `None` if one is gone.
    pub(crate) fn usage(self) -> Option<Usage> {
        let mut sum = usage_of(self.pid)?;
        for pid in self.others {
            let usage = usage_of(*pid)?;
            sum = Usage { cpu: sum.cpu + usage.cpu, rss: sum.rss + usage.rss };
        }
        Some(sum)
    }

    /// The files and sockets that the process has open.
    pub(crate) fn open_files(self) -> impl Iterator<Item = PathBuf> {
        fs::read_dir(format!("/proc/{}/fd", self.pid))
            .into_iter()
            .flatten()
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
    }

    /// Fails if the open files of the process may not be read.
    pub(crate) fn check_open_files(self) -> Result<()> {
        fs::read_dir(format!("/proc/{}/fd", self.pid))
            .map(|_| ())
            .during(format!("cannot look at the open files of process {}", self.pid))
    }
}

fn usage_of(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(Usage { cpu: cpu_of_stat(&stat)?, rss: pages * rustix::param::page_size() as u64 })
}

/// The socket's inode, if a line of `/proc/net/tcp` is a listener on `port`.
fn listening_inode(line: &str, port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    let mut words = line.split_ascii_whitespace();
    let local = words.nth(1)?;
    let state = words.nth(1)?;
    let (_, hex) = local.rsplit_once(':')?;
    if state != LISTEN || u16::from_str_radix(hex, 16).ok()? != port {
        return None;
    }
    words.nth(5)?.parse().ok()
}

/// utime and stime. The name of the program stands before them in parentheses and may contain anything.
fn cpu_of_stat(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_ascii_whitespace();
    let user: u64 = words.nth(11)?.parse().ok()?;
    let system: u64 = words.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = Process::listening_on(listener.local_addr().unwrap()).unwrap();
        assert_eq!(found.pid(), std::process::id());
        assert!(found.usage().unwrap().rss > 0);
    }

    #[test]
    fn cpu_time_is_found_behind_an_odd_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 1 0 5 1 1 1";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_of_stat(stat), Some(Duration::from_secs_f64(200.0 / ticks)));
    }
}
