//! The result of a run, as a table for people and as JSON for programs.

use super::{
    meter::{Metered, ServerUse},
    tally::{Latency, Tally},
};
use serde::{Serialize, Serializer};
use std::{collections::BTreeMap, fmt::Write as _};

/// The outcome of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) workload: &'static str,
    pub(crate) server: String,
    pub(crate) settings: String,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) total: Row,
    /// The figures of each kind of operation, if there are several.
    #[serde(serialize_with = "rows_by_name")]
    pub(crate) rows: Vec<(String, Row)>,
    #[serde(serialize_with = "figures_by_name")]
    pub(crate) figures: Vec<Figure>,
    pub(crate) server_process: Option<ServerUse>,
    pub(crate) client_cpu_us_per_op: Option<f64>,
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) ops: u64,
    pub(crate) ops_per_second: f64,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) latency_us: Option<Latency>,
}

/// A number that only one workload has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    /// The name, words joined by underscores. In JSON the unit follows.
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

impl Row {
    /// Counts `tally` over `seconds`.
    pub(crate) fn of(tally: &Tally, seconds: f64) -> Row {
        Row {
            ops: tally.ops(),
            ops_per_second: tally.ops() as f64 / seconds,
            errors: tally.errors(),
            latency_us: tally.latency(),
        }
    }
}

impl Report {
    /// A report whose total is `tally`.
    pub(crate) fn new(
        workload: &'static str,
        server: impl ToString,
        settings: String,
        tally: &Tally,
        metered: Metered,
    ) -> Report {
        Report {
            workload,
            server: server.to_string(),
            settings,
            seconds: metered.seconds,
            total: Row::of(tally, metered.seconds),
            rows: Vec::new(),
            figures: Vec::new(),
            server_process: metered.server,
            client_cpu_us_per_op: metered.client_cpu_us_per_op,
        }
    }

    /// Adds a line for one kind of operation.
    pub(crate) fn row(&mut self, name: impl Into<String>, tally: &Tally) {
        self.rows.push((name.into(), Row::of(tally, self.seconds)));
    }

    /// Adds a number.
    pub(crate) fn figure(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.figures.push(Figure { name, unit, value });
    }

    /// The report as a table for people.
    pub(crate) fn table(&self) -> String {
        let mut out =
            format!("{} on {}: {}, {:.1} s\n", self.workload, self.server, self.settings, self.seconds);
        self.write_rows(&mut out);
        for Figure { name, unit, value } in &self.figures {
            let line = format!("{}: {} {}", name.replace('_', " "), grouped(*value), unit.replace('_', " "));
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if let Some(server) = &self.server_process {
            let _ = writeln!(
                out,
                "server: pid {}, {:.2} us CPU per op, {:.0} % of a core, RSS {} -> {}",
                server.pid,
                server.cpu_us_per_op,
                server.cpu_percent,
                mebibytes(server.rss_before),
                mebibytes(server.rss_after)
            );
        }
        if let Some(cpu) = self.client_cpu_us_per_op {
            let _ = writeln!(out, "client: {cpu:.2} us CPU per op");
        }
        for (error, count) in &self.total.errors {
            let _ = writeln!(out, "error replies: {count} x {error}");
        }
        out
    }

    fn write_rows(&self, out: &mut String) {
        if self.total.ops == 0 && self.rows.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "{:<14}{:>11}{:>8}{:>11}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "", "ops", "errors", "ops/s", "mean us", "p50", "p90", "p99", "p99.9", "max"
        );
        let rows = self.rows.iter().map(|(name, row)| (name.as_str(), row));
        for (name, row) in rows.chain([("total", &self.total)]) {
            let errors: u64 = row.errors.values().sum();
            let _ = write!(out, "{name:<14}{:>11}{errors:>8}", row.ops);
            let _ = write!(out, "{:>11}", grouped(row.ops_per_second));
            if let Some(Latency { mean, p50, p90, p99, p999, max }) = row.latency_us {
                for micros in [mean, p50, p90, p99, p999, max] {
                    let _ = write!(out, "{:>10}", grouped(micros));
                }
            }
            out.push('\n');
        }
    }
}

fn rows_by_name<S: Serializer>(rows: &[(String, Row)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(rows.iter().map(|(name, row)| (name, row)))
}

fn figures_by_name<S: Serializer>(figures: &[Figure], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().map(|figure| {
        let key = match figure.unit {
            "" => figure.name.to_owned(),
            unit => format!("{}_{}", figure.name, unit),
        };
        (key, figure.value)
    }))
}

/// A number as `1,234,567`, with one decimal below 100.
fn grouped(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", grouped(bytes as f64 / (1 << 20) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [12.34, 999.6, 1234567.0, -100000.0].map(grouped),
            ["12.3", "1,000", "1,234,567", "-100,000"]
        );
    }

    #[test]
    fn json_and_table_have_the_same_figures() {
        let mut tally = Tally::new();
        tally.count(2_000_000, 0);
        tally.count(2_000_000, -101);
        let metered = Metered { seconds: 2.0, server: None, client_cpu_us_per_op: Some(1.5) };
        let mut report = Report::new("mix", "127.0.0.1:2181", "1 session".into(), &tally, metered);
        report.row("get", &tally);
        report.figure("rss_per_session", "bytes", 1234.0);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["ops_per_second"], 1.0);
        assert_eq!(json["rows"]["get"]["errors"]["NoNode (-101)"], 1);
        assert_eq!(json["figures"]["rss_per_session_bytes"], 1234.0);
        assert!(report.table().contains("rss per session: 1,234 bytes"), "{}", report.table());
    }
}
