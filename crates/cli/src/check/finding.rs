//! The findings of a check, and how they are printed.

use serde::Serialize;
use std::fmt;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// A measured or read fact, which is as it should be. It does not count as found.
    Fact,
    /// Something to know.
    Note,
    /// Something is open to somebody.
    Weakness,
    /// The server starts, and something will go wrong.
    Warning,
    /// The server would not start.
    Error,
}

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Topic {
    Configuration,
    Ports,
    Folders,
    Data,
    Disk,
    Limits,
    Members,
    Clock,
}

/// One sentence, with the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) topic: Topic,
    pub(super) text: String,
}

impl Finding {
    pub(super) fn new(level: Level, topic: Topic, text: impl Into<String>) -> Finding {
        Finding { level, topic, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Fact => "fact",
            Level::Note => "note",
            Level::Weakness => "weakness",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        write!(f, "{level}: {}", self.text)
    }
}

/// Prints findings as they come, and keeps the worst level.
#[derive(Debug)]
pub(super) struct Findings {
    json: bool,
    worst: Option<Level>,
}

impl Findings {
    pub(super) fn new(json: bool) -> Findings {
        Findings { json, worst: None }
    }

    pub(super) fn add(&mut self, finding: Finding) {
        match serde_json::to_string(&finding) {
            Ok(line) if self.json => println!("{line}"),
            _ => println!("{finding}"),
        }
        if finding.level > Level::Fact {
            self.worst = self.worst.max(Some(finding.level));
        }
    }

    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// The worst level so far, facts left out.
    pub(super) fn worst(&self) -> Option<Level> {
        self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_level_counts_and_facts_do_not() {
        let mut findings = Findings::new(false);
        findings.add(Finding::new(Level::Fact, Topic::Disk, "a"));
        assert_eq!(findings.worst(), None);
        findings.add(Finding::new(Level::Error, Topic::Ports, "b"));
        findings.add(Finding::new(Level::Note, Topic::Ports, "c"));
        assert_eq!(findings.worst(), Some(Level::Error));
    }
}
