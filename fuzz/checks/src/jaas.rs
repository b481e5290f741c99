//! Fuzzes JAAS files and files of users.

use ostler_sasl::{
    digest_md5::{Profile, Users},
    jaas::{JaasFile, Login},
};

/// Each section has a name of its own, each option comes once, and no text of an error has a value in it.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let property = |name: &str| (name == "user.home").then(|| "/root".to_owned());
    match JaasFile::parse(text, &property) {
        Ok(file) => {
            for (at, section) in file.sections.iter().enumerate() {
                assert!(file.sections[..at].iter().all(|before| before.name != section.name));
                for module in &section.modules {
                    for (at, (name, _)) in module.options.iter().enumerate() {
                        assert!(module.options[..at].iter().all(|(before, _)| before != name));
                    }
                }
                let _ = Login::of(section);
            }
        }
        Err(error) => drop(error.to_string()),
    }
    if let Ok(users) = Users::parse(Profile::Clients, text) {
        assert!(users.len() <= text.lines().count());
    }
}
