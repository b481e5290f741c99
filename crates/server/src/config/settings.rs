//! Turns lines into checked values: looks up each key in the table, reads its value, and notes messages for the operator.

use std::collections::BTreeMap;

use super::error::{ConfigError, Note, NoteLevel, SettingLocation};
use super::keys::{self, Fate, Key};
use super::properties::{self, Entry};
use super::values::{Reading, Value};
use super::written::{KeyInForce, Written, keys_in_force};

/// The values that count, by the table's name of the key, and the messages about them.
#[derive(Default)]
pub(super) struct Settings {
    checked: BTreeMap<&'static str, CheckedSetting>,
    /// Every line of a family of keys, in the order of the file.
    families: Vec<(&'static Key, Entry)>,
    /// The lines of keys that are not in the table.
    unknown: Vec<Entry>,
    pub(super) notes: Vec<Note>,
}

/// A setting whose value is allowed.
struct CheckedSetting {
    entry: Entry,
    value: Value,
}

impl Settings {
    /// Adds settings. A later one of the same key wins, also over those of earlier calls.
    pub(super) fn take(&mut self, entries: Vec<Entry>) -> Result<(), ConfigError> {
        for entry in entries {
            match keys::find(&entry.key) {
                Some(key) => self.take_known(key, entry)?,
                None => {
                    self.note_unknown(&entry);
                    self.unknown.push(entry);
                }
            }
        }
        Ok(())
    }

    fn take_known(&mut self, key: &'static Key, entry: Entry) -> Result<(), ConfigError> {
        let value = self.read(key, &entry)?;
        self.note_fate(key, &entry, &value)?;
        if key.is_family() {
            self.take_family_member(key, entry);
        } else {
            let earlier = self.checked.insert(key.name, CheckedSetting { entry: entry.clone(), value });
            if let Some(earlier) = earlier {
                self.note_repetition(&entry, &earlier.entry);
            }
        }
        Ok(())
    }

    fn take_family_member(&mut self, key: &'static Key, entry: Entry) {
        // A line of the file and a flag of the JVM name one key.
        let bare = |entry: &Entry| entry.key.strip_prefix("zookeeper.").unwrap_or(&entry.key).to_owned();
        let same = self.families.iter().position(|(_, earlier)| bare(earlier) == bare(&entry));
        if let Some(position) = same {
            let (_, earlier) = self.families.remove(position);
            self.note_repetition(&entry, &earlier);
        }
        self.families.push((key, entry));
    }

    fn read(&mut self, key: &Key, entry: &Entry) -> Result<Value, ConfigError> {
        let reading = key
            .kind
            .read(&entry.value, key.is_java_property())
            .map_err(|allowed| entry.bad_value(allowed))?;
        match reading {
            Reading::Clear(value) => Ok(value),
            Reading::Unclear { value, counts_as, clear_ones } => {
                let Entry { key, value: written, .. } = entry;
                let text =
                    format!("{key}={written} counts as {counts_as}, as in ZooKeeper; write {clear_ones}");
                self.note(NoteLevel::Warning, &entry.location, text);
                Ok(value)
            }
        }
    }

    fn note_fate(&mut self, key: &Key, entry: &Entry, value: &Value) -> Result<(), ConfigError> {
        let asks_for_nothing = key.kind.is_bool() && *value == Value::Bool(false);
        match key.fate {
            Fate::Obeyed(_) => {}
            _ if asks_for_nothing => {}
            Fate::Replaced(says) => {
                self.note(NoteLevel::Info, &entry.location, format!("{}: {says}", entry.key))
            }
            Fate::Absent(says) => {
                self.note(NoteLevel::Warning, &entry.location, format!("{}: {says}", entry.key))
            }
            Fate::Refused(says) => return Err(entry.refused(says)),
        }
        Ok(())
    }

    fn note_unknown(&mut self, entry: &Entry) {
        let advice =
            keys::nearest(&entry.key).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let text = format!("{} is not a known key and has no effect{advice}", entry.key);
        self.note(NoteLevel::Warning, &entry.location, text);
    }

    /// Notes that a key is set twice in a file, which is likely a mistake. A file may override the flags of the start
    /// script.
    fn note_repetition(&mut self, entry: &Entry, earlier: &Entry) {
        if let (Some(_), Some(line)) = (entry.location.line(), earlier.location.line()) {
            let text = format!("{} is set again; this line counts, line {line} does not", entry.key);
            self.note(NoteLevel::Warning, &entry.location, text);
        }
    }

    pub(super) fn note(&mut self, level: NoteLevel, location: &SettingLocation, text: String) {
        self.notes.push(Note { level, location: location.clone(), text });
    }

    /// All keys with their values and where these come from.
    pub(super) fn in_force(&self) -> Vec<KeyInForce> {
        let checked = self
            .checked
            .values()
            .filter_map(|setting| Some((keys::find(&setting.entry.key)?, &setting.entry)));
        let families = self.families.iter().map(|(key, entry)| (*key, entry));
        // The servers' lines may be in a file of their own.
        let dynamic =
            self.text("dynamicConfigFile").and_then(|file| properties::read_file(file.as_ref()).ok());
        let dynamic = dynamic.unwrap_or_default();
        let servers = dynamic.iter().filter_map(|entry| Some((keys::find(&entry.key)?, entry)));
        let known = checked.chain(families).chain(servers).collect();
        keys_in_force(&Written { known, unknown: &self.unknown, notes: &self.notes })
    }

    /// The last line that sets a key, if there is one.
    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.checked.get(name).map(|setting| &setting.entry)
    }

    /// The lines of a family such as `server.N`.
    pub(super) fn family(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.families.iter().filter(move |(key, _)| key.name == name).map(|(_, entry)| entry)
    }

    /// The lines of zoo.cfg that set keys with this beginning.
    pub(super) fn lines_under(&self, prefix: &str) -> impl Iterator<Item = &Entry> {
        let set = self.checked.iter().filter(move |(name, _)| name.starts_with(prefix));
        set.map(|(_, setting)| &setting.entry).filter(|entry| entry.location.line().is_some())
    }

    pub(super) fn int(&self, name: &str) -> i64 {
        match self.value_or_default(name) {
            Some(Value::Int(number)) => number,
            other => panic!("the table of keys has a whole number for {name}, not {other:?}"),
        }
    }

    /// A number; negative ones count as 0.
    pub(super) fn unsigned(&self, name: &str) -> u32 {
        u32::try_from(self.int(name).max(0)).unwrap_or(u32::MAX)
    }

    /// A number that means "no limit" below 1, which is `None`.
    pub(super) fn limit(&self, name: &str) -> Option<u64> {
        u64::try_from(self.int(name)).ok().filter(|&limit| limit > 0)
    }

    pub(super) fn bool(&self, name: &str) -> bool {
        match self.value_or_default(name) {
            Some(Value::Bool(value)) => value,
            other => panic!("the table of keys has a boolean for {name}, not {other:?}"),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.value_or_default(name) {
            Some(Value::Text(text)) => Some(text),
            None => None,
            other => panic!("the table of keys has a text for {name}, not {other:?}"),
        }
    }

    fn value_or_default(&self, name: &str) -> Option<Value> {
        if let Some(setting) = self.checked.get(name) {
            return Some(setting.value.clone());
        }
        let key = keys::find(name).expect("settings are asked for by their name in the table of keys");
        match key.kind.read(key.default, key.is_java_property()) {
            Ok(Reading::Clear(_)) if key.default.is_empty() => None,
            Ok(Reading::Clear(value)) => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, ConfigError> {
        let mut settings = Settings::default();
        settings.take(properties::parse("zoo.cfg", text.as_bytes())?)?;
        Ok(settings)
    }

    #[track_caller]
    fn check_notes(text: &str, expected: &[&str]) {
        let notes: Vec<String> = settings(text).unwrap().notes.iter().map(Note::to_string).collect();
        assert_eq!(notes, expected);
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        assert_eq!(settings(text).err().expect("an error").to_string(), expected);
    }

    #[test]
    fn defaults_come_from_the_table() {
        let settings = settings("").unwrap();
        assert_eq!(settings.int("tickTime"), 3000);
        assert!(settings.bool("forceSync") && !settings.bool("skipACL"));
        assert_eq!(settings.text("dataDir"), None);
        assert_eq!(settings.limit("txnLogSizeLimitInKb"), None);
        assert_eq!(settings.limit("snapSizeLimitInKb"), Some(4_194_304));
    }

    #[test]
    fn the_last_line_of_a_key_counts_and_leaves_a_warning() {
        assert_eq!(settings("tickTime=1\nzookeeper.tickTime=2").unwrap().int("tickTime"), 2);
        check_notes(
            "tickTime=1\n\ntickTime=2",
            &["zoo.cfg:3: tickTime is set again; this line counts, line 1 does not"],
        );
        check_notes(
            "superUser.a=x\nsuperUser.a=y",
            &["zoo.cfg:2: superUser.a is set again; this line counts, line 1 does not"],
        );
    }

    #[test]
    fn unknown_keys_leave_a_warning_with_the_nearest_known_key() {
        check_notes(
            "tickTme=1\norg.example.thing=2",
            &[
                "zoo.cfg:1: tickTme is not a known key and has no effect; did you mean tickTime?",
                "zoo.cfg:2: org.example.thing is not a known key and has no effect",
            ],
        );
    }

    #[test]
    fn replaced_keys_leave_a_note_with_the_replacement() {
        check_notes(
            "request_throttler.shutdownTimeout=5",
            &[
                "zoo.cfg:1: request_throttler.shutdownTimeout: A server that stops gives up the requests that wait",
            ],
        );
    }

    #[test]
    fn a_switch_that_is_off_leaves_no_note() {
        check_notes(
            "admin.enableServer=false\naudit.enable=false\nsslQuorum=false\nquorum.auth.enableSasl=false",
            &[],
        );
    }

    #[test]
    fn unclear_switches_leave_a_warning_with_the_value_that_java_reads() {
        check_notes(
            "enforceQuota=yes",
            &["zoo.cfg:1: enforceQuota=yes counts as false, as in ZooKeeper; write true or false"],
        );
        assert!(!settings("skipACL=true").unwrap().bool("skipACL"));
    }

    #[test]
    fn keys_that_would_be_unsafe_to_ignore_are_refused() {
        check_error(
            "ssl.ocsp=true",
            "zoo.cfg:1: ssl.ocsp: Ostler asks no OCSP server; name a file of revocation lists with crl.location instead, \
             which is read again when it changes",
        );
        let line = "ssl.context.supplier.class=a.B";
        assert!(matches!(settings(line), Err(ConfigError::Refused { .. })), "{line}");
    }

    #[test]
    fn errors_about_bad_values_name_the_allowed_ones() {
        check_error(
            "tickTime=2s",
            "zoo.cfg:1: tickTime=2s is not allowed; tickTime must be a whole number from 1 to 107374182",
        );
        check_error(
            "tickTime=0",
            "zoo.cfg:1: tickTime=0 is not allowed; tickTime must be a whole number from 1 to 107374182",
        );
        check_error(
            "\nreconfigEnabled=on",
            "zoo.cfg:2: reconfigEnabled=on is not allowed; reconfigEnabled must be true or false",
        );
        check_error(
            "electionAlg=1",
            "zoo.cfg:1: electionAlg=1 is not allowed; electionAlg must be a whole number from 3 to 3",
        );
        check_error("dataDir=", "zoo.cfg:1: dataDir= is not allowed; dataDir must be a path");
        check_error(
            "snapshot.compression.method=zstd",
            "zoo.cfg:1: snapshot.compression.method=zstd is not allowed; snapshot.compression.method must be \
             nothing, gz or snappy",
        );
    }
}
