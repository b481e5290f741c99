//! Figures of the process, under the names of Prometheus and of those of Java's that mean something without a JVM.

use super::prometheus::{counter_of, family, gauge_of, labelled};
use prometheus::proto::{MetricFamily, MetricType};
use std::{fs, time::SystemTime};

/// The unit of times in `/proc/self/stat`: 100 a second on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// Bytes of the process: resident and virtual.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Memory {
    resident: f64,
    virtual_size: f64,
}

/// The families. A dashboard of Java's asks for the heap: it gets the resident memory, and the limit of the control group.
pub(super) fn families(uptime_ms: u64) -> Vec<MetricFamily> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = memory(&status);
    let gauge = |name: &str, value: f64| family(name, MetricType::GAUGE, vec![gauge_of(value)]);
    let heap = |name: &str, value: f64| {
        family(name, MetricType::GAUGE, vec![labelled(gauge_of(value), "area", "heap")])
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    vec![
        family("process_cpu_seconds_total", MetricType::COUNTER, vec![counter_of(cpu_seconds(&stat))]),
        gauge("process_start_time_seconds", now - uptime_ms as f64 / 1000.0),
        gauge("process_open_fds", fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as f64),
        gauge("process_max_fds", limits.current.map_or(-1.0, |limit| limit as f64)),
        gauge("process_virtual_memory_bytes", memory.virtual_size),
        gauge("process_resident_memory_bytes", memory.resident),
        heap("jvm_memory_bytes_used", memory.resident),
        heap("jvm_memory_bytes_committed", memory.resident),
        heap("jvm_memory_bytes_max", memory_limit()),
        gauge("jvm_threads_current", field(&status, "Threads:")),
    ]
}

/// The resident memory of this process in bytes, and its open files.
pub(crate) fn memory_and_files() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    (memory(&status).resident as u64, files as u64)
}

fn memory(status: &str) -> Memory {
    Memory { resident: field(status, "VmRSS:") * 1024.0, virtual_size: field(status, "VmSize:") * 1024.0 }
}

/// The number behind a key of `/proc/self/status`; 0 without it.
fn field(status: &str, key: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}

/// User and system time, the 14th and 15th field. The second one, the program's name, may have spaces.
fn cpu_seconds(stat: &str) -> f64 {
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0.0 };
    let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

/// The limit of the control group; -1, which Java takes for "not known", without one.
fn memory_limit() -> f64 {
    let written = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    written.trim().parse().unwrap_or(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_proc() {
        let status = "Name:\tostler\nVmSize:\t  2000 kB\nVmRSS:\t  1000 kB\nThreads:\t7\n";
        assert_eq!(memory(status), Memory { resident: 1_024_000.0, virtual_size: 2_048_000.0 });
        assert_eq!(field(status, "Threads:"), 7.0);
        assert_eq!(field(status, "Nothing:"), 0.0);
        let stat = "1 (a b) S 1 1 1 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 7 0 100";
        assert_eq!(cpu_seconds(stat), 2.0);
    }
}
