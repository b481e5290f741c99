//! Access control lists as people write them: `scheme:id:cdrwa`, joined by commas.

use super::value_text::escaped;
use ostler_client::{Acl, Id, Perms};
use std::fmt::Write;

/// Permissions and their letters, in the order in which zkCli.sh prints them.
const LETTERS: [(char, Perms); 5] = [
    ('c', Perms::CREATE),
    ('d', Perms::DELETE),
    ('r', Perms::READ),
    ('w', Perms::WRITE),
    ('a', Perms::ADMIN),
];

/// The reason why a text is not a valid list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AclTextError {
    #[error("{0:?} is no entry of an ACL: it has the form scheme:id:perms, as in world:anyone:cdrwa")]
    Form(String),
    #[error("{letter:?} in {entry:?} is no permission: they are c, d, r, w and a")]
    Letter { letter: char, entry: String },
}

/// Reads a list. An id may contain colons: it goes from the first to the last.
pub(crate) fn parse(text: &str) -> Result<Vec<Acl>, AclTextError> {
    text.split(',').map(entry).collect()
}

fn entry(text: &str) -> Result<Acl, AclTextError> {
    let form = || AclTextError::Form(text.to_owned());
    let (scheme, rest) = text.split_once(':').ok_or_else(form)?;
    let (id, letters) = rest.rsplit_once(':').ok_or_else(form)?;
    let mut perms = 0;
    for letter in letters.chars() {
        let known = LETTERS.iter().find(|(known, _)| *known == letter);
        let wrong = || AclTextError::Letter { letter, entry: text.to_owned() };
        perms |= known.ok_or_else(wrong)?.1.0;
    }
    Ok(Acl { perms: Perms(perms), id: Id::new(scheme, id) })
}

/// The letters of the permissions that are granted, of `cdrwa`.
pub(crate) fn letters(perms: Perms) -> String {
    LETTERS.iter().filter(|(_, perm)| perms.any_of(*perm)).map(|(letter, _)| letter).collect()
}

/// One entry, as [`parse`] reads it, without quotes.
pub(crate) fn entry_text(acl: &Acl) -> String {
    format!("{}:{}:{}", escaped(&acl.id.scheme), escaped(&acl.id.id), letters(acl.perms))
}

/// A list as zkCli.sh prints it.
pub(crate) fn upstream_text(acl: &[Acl]) -> String {
    let mut text = String::new();
    for entry in acl {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "'{},'{}\n: {}\n",
            escaped(&entry.id.scheme),
            escaped(&entry.id.id),
            letters(entry.perms)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        let text = "world:anyone:r,auth:user1:12345:crwad,ip:10.0.0.0/8:";
        let acl = parse(text).unwrap();
        assert_eq!(acl[0], Acl::world(Perms::READ));
        assert_eq!(acl[1].id, Id::new("auth", "user1:12345"));
        let written: Vec<String> = acl.iter().map(entry_text).collect();
        assert_eq!(written, ["world:anyone:r", "auth:user1:12345:cdrwa", "ip:10.0.0.0/8:"]);
        assert_eq!(upstream_text(&acl[..1]), "'world,'anyone\n: r\n");
    }

    #[test]
    fn malformed_lists_are_refused() {
        for text in ["", "world", "world:anyone", "world:anyone:r,"] {
            assert!(matches!(parse(text), Err(AclTextError::Form(_))), "{text}");
        }
        let wrong = AclTextError::Letter { letter: 'x', entry: "world:anyone:rx".into() };
        assert_eq!(parse("world:anyone:rx"), Err(wrong));
    }
}
