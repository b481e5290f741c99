//! The table of all keys that a zoo.cfg or the properties of a Java server can have, and their effect here.

mod ensemble;
mod limits;
mod network;
mod operations;
mod security;
mod storage;
mod tls;

use super::values::Kind;

/// A key, or with `.*` or `.N` at its end a family of keys.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    /// Other spellings of the key in ZooKeeper's admin guide.
    pub also: &'static [&'static str],
    pub form: Form,
    pub kind: Kind,
    /// The value if the key is absent, as text; empty for none.
    pub default: &'static str,
    pub fate: Fate,
}

/// Where a Java server reads the key. Ostler reads all keys in zoo.cfg, too, with or without `zookeeper.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From zoo.cfg only.
    File,
    /// From zoo.cfg, or as the system property `zookeeper.<key>`.
    Property,
    /// As the system property `<key>` only.
    BareProperty,
    /// From zoo.cfg, or as the system property with or without `zookeeper.`.
    EitherProperty,
}

/// The effect of a key in Ostler. A boolean key that is false leaves no note and is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The key is obeyed; the text names what it sets.
    Obeyed(&'static str),
    /// The key has no effect here; the text names the replacement. Setting it leaves an informative note.
    Replaced(&'static str),
    /// The key asks for a feature that is not in this build; the text names it. Setting it leaves a warning.
    Absent(&'static str),
    /// As `Absent`, but the server does not start, because without the feature data could be exposed or lost.
    Refused(&'static str),
}

/// Keys of one subject.
pub struct Section {
    pub title: &'static str,
    pub keys: &'static [Key],
}

/// The whole table.
pub const SECTIONS: [Section; 7] = [
    network::SECTION,
    storage::SECTION,
    limits::SECTION,
    security::SECTION,
    tls::SECTION,
    operations::SECTION,
    ensemble::SECTION,
];

const JAVA_THREADS: &str = "Threads follow the number of cores; there are no pools to size";
const BETWEEN_SERVERS: &str = "Servers connect, wait for and synchronize each other without this setting";

const fn file(name: &'static str, kind: Kind, default: &'static str, fate: Fate) -> Key {
    Key { name, also: &[], form: Form::File, kind, default, fate }
}

const fn property(name: &'static str, kind: Kind, default: &'static str, fate: Fate) -> Key {
    Key { form: Form::Property, ..file(name, kind, default, fate) }
}

const fn bare_property(name: &'static str, kind: Kind, default: &'static str, fate: Fate) -> Key {
    Key { form: Form::BareProperty, ..file(name, kind, default, fate) }
}

const fn either_property(name: &'static str, kind: Kind, default: &'static str, fate: Fate) -> Key {
    Key { form: Form::EitherProperty, ..file(name, kind, default, fate) }
}

impl Key {
    const fn also(self, also: &'static [&'static str]) -> Key {
        Key { also, ..self }
    }

    /// Every spelling.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }

    /// Whether the key stands for a family of keys, all of which may be set.
    pub fn is_family(&self) -> bool {
        self.name.ends_with(".*") || self.name.ends_with(".N")
    }

    fn covers(&self, key: &str) -> bool {
        match self.name.strip_suffix(".*").or_else(|| self.name.strip_suffix(".N")) {
            Some(family) => key.strip_prefix(family).is_some_and(|rest| rest.starts_with('.')),
            None => self.spellings().any(|spelling| spelling == key),
        }
    }

    /// Whether Java decodes the value as that of a system property.
    pub(super) fn is_java_property(&self) -> bool {
        self.form != Form::File
    }
}

/// Every key of the table.
pub fn all() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().flat_map(|section| section.keys)
}

/// The key that a line of zoo.cfg names.
pub fn find(written: &str) -> Option<&'static Key> {
    let key = written.strip_prefix("zookeeper.").unwrap_or(written);
    let exact = all().find(|known| !known.is_family() && known.covers(key));
    exact.or_else(|| all().filter(|known| known.covers(key)).max_by_key(|known| known.name.len()))
}

/// The key that a system property of a Java server names.
pub fn find_property(written: &str) -> Option<&'static Key> {
    let prefixed = written.starts_with("zookeeper.");
    find(written).filter(|key| match key.form {
        Form::File => false,
        Form::Property => prefixed,
        Form::BareProperty => !prefixed,
        Form::EitherProperty => true,
    })
}

/// The known spelling that an unknown key most likely meant.
pub fn nearest(unknown: &str) -> Option<&'static str> {
    let key = unknown.strip_prefix("zookeeper.").unwrap_or(unknown).to_lowercase();
    let length = key.chars().count();
    let tolerance = (length / 4).clamp(1, 4);
    all()
        .filter(|known| !known.is_family())
        .flat_map(Key::spellings)
        // The difference of the lengths is the least number of edits. Counting them exactly takes long.
        .filter(|spelling| spelling.chars().count().abs_diff(length) <= tolerance)
        .map(|spelling| (strsim::damerau_levenshtein(&key, &spelling.to_lowercase()), spelling))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, spelling)| spelling)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_spelling_is_in_the_table_once() {
        let mut seen = BTreeSet::new();
        for spelling in all().flat_map(Key::spellings) {
            assert!(seen.insert(spelling), "{spelling}");
        }
    }

    #[test]
    fn defaults_are_values_that_the_key_allows() {
        for key in all().filter(|key| !key.default.is_empty()) {
            assert!(key.kind.read(key.default, false).is_ok(), "{}={}", key.name, key.default);
        }
    }

    #[test]
    fn sentences_end_without_a_full_stop() {
        for key in all() {
            let (Fate::Obeyed(says) | Fate::Replaced(says) | Fate::Absent(says) | Fate::Refused(says)) =
                key.fate;
            assert!(!says.is_empty() && !says.ends_with('.') && !says.contains('|'), "{}: {says}", key.name);
        }
    }

    #[test]
    fn keys_are_found_under_every_spelling() {
        let name = |written| find(written).map(|key| key.name);
        assert_eq!(name("tickTime"), Some("tickTime"));
        assert_eq!(name("zookeeper.snapCount"), Some("snapCount"));
        assert_eq!(name("requestThrottleLimit"), Some("request_throttle_max_requests"));
        assert_eq!(name("maxConcurrentSnapSyncs"), Some("leader.maxConcurrentSnapSyncs"));
        assert_eq!(name("authProvider.1"), Some("authProvider.*"));
        assert_eq!(name("server.12"), Some("server.N"));
        assert_eq!(name("ssl.keyStore.location"), Some("ssl.keyStore.location"));
        assert_eq!(name("zookeeper.ssl.quorum.crl"), Some("ssl.quorum.crl"));
        assert_eq!(name("metricsProvider.httpPort"), Some("metricsProvider.httpPort"));
        assert_eq!(name("metricsProvider.numWorkerThreads"), Some("metricsProvider.*"));
        assert_eq!(name("ticktime"), None);
        assert_eq!(name("server"), None);
    }

    #[test]
    fn properties_are_found_in_the_form_that_java_reads() {
        let name = |written| find_property(written).map(|key| key.name);
        assert_eq!(name("zookeeper.snapCount"), Some("snapCount"));
        assert_eq!(name("snapCount"), None);
        assert_eq!(name("jute.maxbuffer"), Some("jute.maxbuffer"));
        assert_eq!(name("zookeeper.jute.maxbuffer"), None);
        assert_eq!(name("fsync.warningthresholdms"), Some("fsync.warningthresholdms"));
        assert_eq!(name("zookeeper.fsync.warningthresholdms"), Some("fsync.warningthresholdms"));
        assert_eq!(name("zookeeper.tickTime"), None);
    }

    #[test]
    fn a_misspelled_key_is_recognised() {
        assert_eq!(nearest("tickTme"), Some("tickTime"));
        assert_eq!(nearest("ticktime"), Some("tickTime"));
        assert_eq!(nearest("maxClientConns"), Some("maxClientCnxns"));
        assert_eq!(nearest("autopurge.purgeIntervall"), Some("autopurge.purgeInterval"));
        assert_eq!(nearest("zookeeper.snapCout"), Some("snapCount"));
        assert_eq!(nearest("cluster.name"), None);
        assert_eq!(nearest("x"), None);
    }
}
