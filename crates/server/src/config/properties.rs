//! Reads the key/value lines of a properties file, each with its location.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use java_properties::{LineContent, PropertiesIter};

use super::error::{ConfigError, SettingLocation};

/// A setting as it was written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) location: SettingLocation,
    pub(super) key: String,
    pub(super) value: String,
}

impl Entry {
    /// The key without the `zookeeper.` before it: with or without, it is the same key.
    pub(super) fn name(&self) -> &str {
        self.key.strip_prefix("zookeeper.").unwrap_or(&self.key)
    }

    pub(super) fn bad_value(&self, allowed: impl Into<String>) -> ConfigError {
        ConfigError::BadValue {
            location: self.location.clone(),
            key: self.key.clone(),
            value: self.value.clone(),
            allowed: allowed.into(),
        }
    }

    pub(super) fn refused(&self, reason: impl Into<String>) -> ConfigError {
        ConfigError::Refused { location: self.location.clone(), key: self.key.clone(), reason: reason.into() }
    }
}

/// The settings of a properties file, in file order.
pub(super) fn read_file(path: &Path) -> Result<Vec<Entry>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_path_buf(), source };
    let mut bytes = Vec::new();
    BufReader::new(File::open(path).map_err(unreadable)?).read_to_end(&mut bytes).map_err(unreadable)?;
    parse(&path.display().to_string(), &bytes)
}

/// The settings of a properties text; `file` names it in messages.
pub(super) fn parse(file: &str, text: &[u8]) -> Result<Vec<Entry>, ConfigError> {
    let file: Arc<str> = file.into();
    // The format has no byte-order mark, but the crate looks for one at the very beginning (and panics after that of
    // UTF-16). An empty line in front hides it, so that the mark is part of the first key, as upstream.
    let text = [b"\n", text].concat();
    let at = |line: usize| SettingLocation::in_file(&file, line.saturating_sub(1));
    let mut entries = Vec::new();
    for line in PropertiesIter::new(&*text) {
        let line = line.map_err(|error| ConfigError::Syntax {
            location: at(error.line_number().unwrap_or(0)),
            // The location has the line already.
            reason: error.to_string().split(" (line_number").next().unwrap_or_default().to_owned(),
        })?;
        let location = at(line.line_number());
        if let LineContent::KVPair(key, value) = line.consume_content() {
            // Upstream trims the white space that the properties format leaves at the end of a value.
            entries.push(Entry { location, key: key.trim().into(), value: value.trim().into() });
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_carry_the_line_they_start_on() {
        let text = b"# comment\n\ntickTime = 2000  \n! more\ndataDir:/var/\\\n   lib/zk\nclientPort 2181\n";
        let entries = parse("zoo.cfg", text).unwrap();
        let shown: Vec<String> =
            entries.iter().map(|entry| format!("{} {}={}", entry.location, entry.key, entry.value)).collect();
        assert_eq!(
            shown,
            ["zoo.cfg:3 tickTime=2000", "zoo.cfg:5 dataDir=/var/lib/zk", "zoo.cfg:7 clientPort=2181"]
        );
    }

    #[test]
    fn windows_line_ends_end_a_line() {
        let entries = parse("zoo.cfg", b"a=1\r\nb=2\r\n").unwrap();
        assert_eq!(entries[1].location.to_string(), "zoo.cfg:2");
        assert_eq!(entries[1].value, "2");
    }

    #[test]
    fn a_byte_order_mark_is_part_of_the_first_key() {
        for (mark, read) in [(&b"\xef\xbb\xbf"[..], "\u{ef}\u{bb}\u{bf}a"), (b"\xfe\xff", "\u{fe}\u{ff}a")] {
            let entries = parse("zoo.cfg", &[mark, b"a=1\nb=2\n\xe9=3\n"].concat()).unwrap();
            let keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
            assert_eq!(keys, [read, "b", "\u{e9}"]);
        }
    }

    #[test]
    fn a_broken_escape_is_reported_with_its_line() {
        let error = parse("zoo.cfg", b"a=1\nb=\\u00g0\n").unwrap_err().to_string();
        assert!(error.starts_with("zoo.cfg:2: this line is not in the form key=value"), "{error}");
        assert!(!error.contains("line_number"), "{error}");
    }
}
