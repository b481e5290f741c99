//! The keys in force and the origin of each value, for operators. Secrets are shown as `set`.

use super::error::{Note, SettingLocation};
use super::keys::{self, Fate, Key};
use super::properties::Entry;
use super::values::Kind;
use std::fmt;

/// The text in place of a secret.
const SET: &str = "set";
/// Parts of the names of known keys whose values are secrets.
const SECRET: [&str; 3] = ["password", "secret", "superdigest"];
/// Parts of the names of unknown keys whose values may be secrets.
const MAY_BE_SECRET: [&str; 8] = ["pass", "secret", "digest", "pwd", "cred", "token", "private", "apikey"];

/// A key as this server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInForce {
    /// The name of the table; that of the line for a member of a family such as `server.N`, and for an unknown key.
    pub key: String,
    /// The effect of the key.
    pub standing: Standing,
    /// The value as it was written, or the default; `None` for none. A secret is `set`.
    pub value: Option<String>,
    /// The origin of the value.
    pub origin: ValueOrigin,
    /// The effect in words, and what the start has noted about the line.
    pub note: String,
    /// The known key that an unknown one most likely meant.
    pub near: Option<&'static str>,
}

/// The effect of a key, as in docs/configuration.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It sets what the table says.
    Obeyed,
    /// Something else takes its place.
    Replaced,
    /// It asks for a feature that is not in this build.
    Absent,
    /// As absent, but the server would not start with it.
    Refused,
    /// It is not in the table.
    Unknown,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// A line of zoo.cfg, or of the file with the ensemble's servers.
    Line(SettingLocation),
    /// A property `-D` in an environment variable.
    Flag(SettingLocation),
    /// No file and no flag sets the key.
    Default,
}

impl Standing {
    fn of(fate: Fate) -> Standing {
        match fate {
            Fate::Obeyed(_) => Standing::Obeyed,
            Fate::Replaced(_) => Standing::Replaced,
            Fate::Absent(_) => Standing::Absent,
            Fate::Refused(_) => Standing::Refused,
        }
    }

    /// The word of the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Obeyed => "obeyed",
            Standing::Replaced => "replaced",
            Standing::Absent => "absent",
            Standing::Refused => "refused",
            Standing::Unknown => "unknown",
        }
    }
}

impl ValueOrigin {
    fn of(location: &SettingLocation) -> ValueOrigin {
        match location.line() {
            Some(_) => ValueOrigin::Line(location.clone()),
            None => ValueOrigin::Flag(location.clone()),
        }
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Line(location) => write!(f, "{location}"),
            ValueOrigin::Flag(_) => f.write_str("-D"),
            ValueOrigin::Default => f.write_str("default"),
        }
    }
}

/// The settings as they were written.
pub(super) struct Written<'a> {
    /// The lines and flags of known keys that count.
    pub(super) known: Vec<(&'static Key, &'a Entry)>,
    /// Lines of unknown keys.
    pub(super) unknown: &'a [Entry],
    pub(super) notes: &'a [Note],
}

/// All keys in the order of the table, then the unknown ones. A family has its members, and is left out without any.
pub(super) fn keys_in_force(written: &Written<'_>) -> Vec<KeyInForce> {
    let mut all: Vec<KeyInForce> = Vec::new();
    for key in keys::all() {
        let of_key = written.known.iter().filter(|(of, _)| of.name == key.name);
        let before = all.len();
        all.extend(of_key.map(|(_, entry)| set(key, entry, written.notes)));
        if all.len() == before && !key.is_family() {
            all.push(by_default(key));
        }
    }
    all.extend(written.unknown.iter().map(unknown));
    all
}

/// A key that no line sets.
fn by_default(key: &Key) -> KeyInForce {
    KeyInForce {
        key: key.name.into(),
        standing: Standing::of(key.fate),
        value: Some(key.default.into()).filter(|value: &String| !value.is_empty()),
        origin: ValueOrigin::Default,
        note: sentence(key.fate),
        near: None,
    }
}

fn set(key: &Key, entry: &Entry, notes: &[Note]) -> KeyInForce {
    let Entry { location, value, .. } = entry;
    let name = if key.is_family() { entry.name() } else { key.name };
    let is_hidden = is_secret(key, name);
    let mut note = sentence(key.fate);
    // A flag has no line of its own, so the name decides. The effect of the key is noted already.
    let is_about = |of: &&Note| {
        of.location == *location && of.text.contains(&*entry.key) && !note.contains(effect_of(&of.text))
    };
    let noted: Vec<&str> = notes.iter().filter(is_about).map(|of| &*of.text).collect();
    for text in noted {
        note = format!("{note} {text}.");
    }
    KeyInForce {
        key: name.into(),
        standing: Standing::of(key.fate),
        value: Some(if is_hidden { SET.into() } else { value.clone() }),
        origin: ValueOrigin::of(location),
        note,
        near: None,
    }
}

/// The text of a note behind the name of its key.
fn effect_of(note: &str) -> &str {
    note.split_once(": ").map_or(note, |(_, effect)| effect)
}

fn sentence(fate: Fate) -> String {
    let (Fate::Obeyed(says) | Fate::Replaced(says) | Fate::Absent(says) | Fate::Refused(says)) = fate;
    format!("{says}.")
}

fn unknown(entry: &Entry) -> KeyInForce {
    let near = keys::nearest(&entry.key);
    let advice = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    KeyInForce {
        key: entry.key.clone(),
        standing: Standing::Unknown,
        value: Some(if may_be_secret(&entry.key) { SET.into() } else { entry.value.clone() }),
        origin: ValueOrigin::of(&entry.location),
        note: format!("It is not a known key and has no effect.{advice}"),
        near,
    }
}

/// Whether the value of a known key is a secret. The place of a file with a secret counts, too: somebody may have written
/// the secret there.
fn is_secret(key: &Key, written: &str) -> bool {
    let name = written.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part)) && !matches!(key.kind, Kind::OneOf(_))
}

/// Whether the value of an unknown key may be a secret: by its name, or by the known key that it is likely meant to be.
fn may_be_secret(key: &str) -> bool {
    let name = key.to_ascii_lowercase();
    MAY_BE_SECRET.iter().any(|part| name.contains(part))
        || keys::nearest(key).and_then(keys::find).is_some_and(|near| is_secret(near, near.name))
}

/// Whether the value behind a key of a file must not be shown.
fn is_hidden(key: &str) -> bool {
    match keys::find(key) {
        Some(known) => is_secret(known, key),
        None => may_be_secret(key),
    }
}

/// The text of a configuration, without the values of secrets. Lines that are commented out count, too: they may be the
/// secrets of yesterday.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (sign, rest) = uncommented(line);
        let key = key_of(rest);
        let hides = key.is_some_and(is_hidden);
        match key {
            Some(key) if hides => {
                out += sign;
                out += key;
                out += "=****";
            }
            _ => out += line,
        }
        out.push('\n');
        // The value goes on in the next lines.
        let mut last = line;
        while key.is_some() && goes_on(last) {
            let Some(next) = lines.next() else { break };
            if !hides {
                out += next;
                out.push('\n');
            }
            last = next;
        }
    }
    out
}

/// The signs of a comment before a line, and the line behind them.
fn uncommented(line: &str) -> (&str, &str) {
    let rest = line.trim_start_matches(|c: char| matches!(c, '#' | '!') || c.is_whitespace());
    line.split_at(line.len() - rest.len())
}

/// The key of a line of a properties file: up to `=`, `:` or white space. `None` for an empty line.
fn key_of(line: &str) -> Option<&str> {
    if line.is_empty() {
        return None;
    }
    line.split(|c: char| matches!(c, '=' | ':') || c.is_whitespace()).next()
}

/// Whether an odd number of backslashes is at the end of a line.
fn goes_on(line: &str) -> bool {
    line.len().wrapping_sub(line.trim_end_matches('\\').len()) % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_however_they_are_written() {
        let secret = "hunter2";
        for line in [
            "ssl.keyStore.password=hunter2",
            "  ssl.keyStore.password : hunter2",
            "ssl.keyStore.password hunter2",
            "zookeeper.ssl.quorum.trustStore.password\thunter2",
            "ssl.keyStore.password=\\\n   hunter2",
            "ssl.keyStore.password=hun\\\n   ter2\\\nhunter2",
            "ssl.keyStore.pasword=hunter2",
            "my.passphrase=hunter2",
            "DB_PWD=hunter2",
            "#ssl.keyStore.password=hunter2",
            "  ## ssl.keyStore.password : hunter2",
            "!DigestAuthenticationProvider.superDigest=hunter2",
            "#ssl.keyStore.password=\\\n# hunter2",
        ] {
            let shown = masked(&format!("tickTime=2000\n{line}\nclientPort=1\n"));
            assert!(!shown.contains(secret) && !shown.contains("ter2"), "{line}: {shown}");
            assert!(
                shown.starts_with("tickTime=2000\n") && shown.ends_with("clientPort=1\n"),
                "{line}: {shown}"
            );
        }
        let plain =
            "# A remark.\n#clientPort=2\nserver.1=a:1:2\ndataDir=/a\\\n  /b\nsessionPasswords=derived\n";
        assert_eq!(masked(plain), plain);
    }
}
