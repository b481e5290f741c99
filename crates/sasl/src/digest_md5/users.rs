//! The users that a server knows.

use super::{Profile, UserHash};
use alloc::{collections::BTreeMap, string::String};

/// The users, and what proves them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<String, UserHash>);

/// Why a file of users cannot be read. No part of a line is in it: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} is not in the form name:password or name:md5:HASH, where HASH is 32 hexadecimal digits: the MD5 of \
     name:realm:password"
)]
pub struct UsersError {
    /// The line, counted from 1.
    pub line: usize,
}

/// The beginning of a password that is a hash already.
const HASHED: &str = "md5:";

impl Users {
    /// Users with their passwords.
    pub fn new<'a>(profile: Profile, users: impl IntoIterator<Item = (&'a str, &'a str)>) -> Users {
        let hashed =
            |(user, password): (&str, &str)| (user.into(), UserHash::new(user, profile.realm(), password));
        Users(users.into_iter().map(hashed).collect())
    }

    /// Reads lines of `name:password` or `name:md5:HASH`. Blank lines and those that begin with `#` are left out. A name
    /// that comes again replaces the one before.
    pub fn parse(profile: Profile, text: &str) -> Result<Users, UsersError> {
        let mut users = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (user, password) = line.split_once(':').ok_or(UsersError { line: at + 1 })?;
            let hash = match password.strip_prefix(HASHED) {
                Some(digits) => UserHash::from_hex(digits).ok_or(UsersError { line: at + 1 })?,
                None => UserHash::new(user, profile.realm(), password),
            };
            users.insert(user.into(), hash);
        }
        Ok(Users(users))
    }

    /// Adds a user, or changes the password.
    pub fn insert(&mut self, profile: Profile, user: &str, password: &str) {
        self.0.insert(user.into(), UserHash::new(user, profile.realm(), password));
    }

    /// The number of users.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no users.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn hash_of(&self, user: &str) -> Option<&UserHash> {
        self.0.get(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn files_have_passwords_and_hashes() {
        let text = "# users\n\nbob:pw:with:colons\nann:md5:00112233445566778899aabbccddeeff\n";
        let users = Users::parse(Profile::Clients, text).unwrap();
        assert_eq!(users.len(), 2);
        assert_eq!(users.hash_of("bob"), Some(&UserHash::new("bob", "zk-sasl-md5", "pw:with:colons")));
        let ann = UserHash::from_hex("00112233445566778899aabbccddeeff");
        assert_eq!(users.hash_of("ann"), ann.as_ref());
        assert!(!format!("{users:?}").contains("112233"), "secrets are not shown");
    }

    #[test]
    fn a_line_that_is_neither_is_named_by_its_number() {
        for (text, line) in
            [("bob", 1), ("a:b\nbob:md5:12", 2), ("bob:md5:zz112233445566778899aabbccddeeff", 1)]
        {
            assert_eq!(Users::parse(Profile::Clients, text), Err(UsersError { line }));
        }
    }
}
