//! The settings of session passwords: a key sets the kind of new ones, a file has the secrets.

use super::error::{ConfigError, NoteLevel};
use super::settings::Settings;
use ostler_server_core::passwords::{NewPasswords, Passwords, Secret};
use std::fmt;
use std::path::Path;

/// The limit of secrets. A password is checked against each in turn, under the server's lock.
const SECRETS_MAX: usize = 8;
const NEEDED: &str = "needs secrets; add a line such as sessionSecrets=/etc/zookeeper/session-secrets";
const FORM: &str = "a file with up to 8 lines, each of at least 32 hexadecimal digits";

/// The kind of session passwords, and the secrets to make and check them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SessionPasswords {
    /// The kind of new passwords.
    pub new: NewPasswords,
    secrets: Vec<Vec<u8>>,
}

impl fmt::Debug for SessionPasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {} secrets", self.new, self.secrets.len())
    }
}

impl SessionPasswords {
    pub(super) fn from_settings(settings: &mut Settings) -> Result<SessionPasswords, ConfigError> {
        let new = match settings.text("sessionPasswords").as_deref() {
            Some("secret") => NewPasswords::Secret,
            Some("leaving") => NewPasswords::Leaving,
            _ => NewPasswords::Derived,
        };
        let Some(entry) = settings.entry("sessionSecrets").filter(|entry| !entry.value.is_empty()).cloned()
        else {
            return match settings.entry("sessionPasswords") {
                Some(entry) if new != NewPasswords::Derived => Err(entry.refused(NEEDED)),
                _ => Ok(SessionPasswords { new, secrets: Vec::new() }),
            };
        };
        let text = std::fs::read_to_string(&entry.value)
            .map_err(|error| entry.bad_value(format!("{FORM} ({error})")))?;
        let secrets = secrets(&text).ok_or_else(|| entry.bad_value(FORM))?;
        if is_open(Path::new(&entry.value)) {
            let text = format!(
                "{}: others than this server's user may read {}, and with it take any session; chmod 600 is meant",
                entry.key, entry.value
            );
            settings.note(NoteLevel::Warning, &entry.location, text);
        }
        Ok(SessionPasswords { new, secrets })
    }

    /// The same settings in the form of the core.
    pub fn passwords(&self) -> Passwords {
        Passwords {
            new: self.new,
            secrets: self.secrets.iter().filter_map(|bytes| Secret::new(bytes)).collect(),
        }
    }
}

/// The secrets in a file's text. Empty lines and those that begin with `#` are ignored.
fn secrets(text: &str) -> Option<Vec<Vec<u8>>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let secrets: Vec<Vec<u8>> = lines.map(secret).collect::<Option<_>>()?;
    (!secrets.is_empty() && secrets.len() <= SECRETS_MAX).then_some(secrets)
}

fn secret(line: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        line.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (digits.len().is_multiple_of(2) && bytes.len() >= Secret::LENGTH_MIN).then_some(bytes)
}

#[cfg(unix)]
fn is_open(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|of| of.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::super::properties;
    use super::*;
    use std::io::Write;

    const SECRET: &str = "00112233445566778899aabbccddeeff";

    fn read(text: &str) -> (Result<SessionPasswords, String>, Vec<String>) {
        let mut settings = Settings::default();
        settings.take(properties::parse("zoo.cfg", text.as_bytes()).unwrap()).unwrap();
        let read = SessionPasswords::from_settings(&mut settings).map_err(|error| error.to_string());
        (read, settings.notes.iter().map(ToString::to_string).collect())
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn passwords_are_derived_by_default_and_other_kinds_need_secrets() {
        assert_eq!(read("").0, Ok(SessionPasswords::default()));
        let needs = "zoo.cfg:1: sessionPasswords: needs secrets; add a line such as \
                     sessionSecrets=/etc/zookeeper/session-secrets";
        assert_eq!(read("sessionPasswords=secret").0, Err(needs.into()));
        assert_eq!(read("sessionPasswords=leaving").0, Err(needs.into()));
    }

    #[test]
    fn secrets_are_read_from_a_file_and_not_shown_by_debug() {
        let file = file(&format!("# of today\n{SECRET}\n\n  {SECRET}FF \n"));
        let text = format!("sessionPasswords=secret\nsessionSecrets={}", file.path().display());
        let (read, notes) = read(&text);
        let read = read.unwrap();
        assert_eq!(format!("{read:?}"), "Secret with 2 secrets");
        assert_eq!(read.passwords().secrets.len(), 2);
        assert_eq!(notes, [""; 0], "nobody else may read a temporary file");
    }

    #[cfg(unix)]
    #[test]
    fn a_secrets_file_that_others_may_read_leaves_a_warning() {
        use std::os::unix::fs::PermissionsExt;
        let file = file(SECRET);
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let (read, notes) = read(&format!("sessionSecrets={}", file.path().display()));
        assert_eq!(read.unwrap().new, NewPasswords::Derived);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("chmod 600"), "{notes:?}");
    }

    #[test]
    fn a_file_without_valid_secrets_is_refused() {
        let many = format!("{SECRET}\n").repeat(9);
        for text in ["", "# nothing", "0011", &SECRET[1..], "00112233445566778899aabbccddeefg", &many] {
            let file = file(text);
            let (read, _) = read(&format!("sessionSecrets={}", file.path().display()));
            assert!(read.unwrap_err().contains("at least 32 hexadecimal digits"), "{text}");
        }
        assert!(read("sessionSecrets=/nowhere/at/all").0.is_err());
    }
}
