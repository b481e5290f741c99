//! The logins that Bitnami's image asks for, as a JAAS file.

use super::{error::EntryError, variables::Variables};

/// A JAAS file, and the keys of zoo.cfg that go with it, without the one that names the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Logins {
    pub(super) jaas: String,
    pub(super) keys: Vec<String>,
}

/// The logins of clients (`ZOO_ENABLE_AUTH`) and of servers (`ZOO_ENABLE_QUORUM_AUTH`).
///
/// # Errors
/// Logins that nobody could pass, names and passwords that do not match in number, and a server that is asked to refuse
/// anonymous clients without logins.
pub(super) fn read(variables: &Variables) -> Result<Logins, EntryError> {
    let mut logins = Logins::default();
    let clients = variables.switch("ZOO_ENABLE_AUTH")?.unwrap_or(false);
    for name in ["ALLOW_ANONYMOUS_LOGIN", "ALLOW_EMPTY_PASSWORD"] {
        if variables.switch(name)? == Some(false) && !clients {
            return Err(EntryError::NobodyLogsIn(name));
        }
    }
    if clients {
        let users = users(variables, "ZOO_ENABLE_AUTH", "ZOO_SERVER_USERS", "ZOO_SERVER_PASSWORDS")?;
        logins.jaas += &section("Server", &users);
        logins.keys.extend(
            [
                "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                "sessionRequireClientSASLAuth=true",
                "enforce.auth.enabled=true",
                "enforce.auth.schemes=sasl",
            ]
            .map(str::to_owned),
        );
    }
    if variables.switch("ZOO_ENABLE_QUORUM_AUTH")?.unwrap_or(false) {
        let switch = "ZOO_ENABLE_QUORUM_AUTH";
        let users = users(variables, switch, "ZOO_QUORUM_SERVER_USERS", "ZOO_QUORUM_SERVER_PASSWORDS")?;
        let get =
            |name: &str| variables.get(name).ok_or_else(|| EntryError::Missing(name.to_owned(), switch));
        let (user, password) = (get("ZOO_QUORUM_LEARNER_USER")?, get("ZOO_QUORUM_LEARNER_PASSWORD")?);
        if [user, password].iter().any(|word| word.contains("${")) {
            return Err(EntryError::Property("ZOO_QUORUM_LEARNER_PASSWORD"));
        }
        let own = [("username", user), ("password", password)]
            .map(|(name, word)| (name.to_owned(), word.to_owned()));
        logins.jaas += &section("QuorumLearner", &own);
        logins.jaas += &section("QuorumServer", &users);
        logins.keys.extend(
            [
                "quorum.auth.enableSasl=true",
                "quorum.auth.learnerRequireSasl=true",
                "quorum.auth.serverRequireSasl=true",
            ]
            .map(str::to_owned),
        );
    }
    Ok(logins)
}

/// Options `user_NAME` of a section, each with its password.
fn users(
    variables: &Variables,
    switch: &'static str,
    names: &'static str,
    passwords: &'static str,
) -> Result<Vec<(String, String)>, EntryError> {
    let list = |name: &str| {
        let text = variables.get(name).ok_or_else(|| EntryError::Missing(name.to_owned(), switch))?;
        let parts = text.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
        Ok::<_, EntryError>(parts.filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>())
    };
    let (users, words) = (list(names)?, list(passwords)?);
    if users.len() != words.len() {
        return Err(EntryError::Uneven {
            users: names,
            of_users: users.len(),
            passwords,
            of_passwords: words.len(),
        });
    }
    // The words that a JAAS file can have as the name of an option.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if let Some(user) = users.iter().find(|user| !user.chars().all(is_allowed)) {
        return Err(EntryError::User { variable: names, user: user.clone() });
    }
    if words.iter().any(|word| word.contains("${")) {
        return Err(EntryError::Property(passwords));
    }
    Ok(users.into_iter().map(|user| format!("user_{user}")).zip(words).collect())
}

fn section(name: &str, options: &[(String, String)]) -> String {
    let mut text = format!("{name} {{\n    org.apache.zookeeper.server.auth.DigestLoginModule required");
    for (option, value) in options {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        text += &format!("\n    {option}=\"{value}\"");
    }
    text + ";\n};\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins(pairs: &[(&str, &str)]) -> Result<Logins, String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables = Variables::new(pairs, |_| Err(std::io::ErrorKind::NotFound.into()));
        read(&variables.unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn users_of_clients_are_in_the_section_of_the_server() {
        let logins = logins(&[
            ("ZOO_ENABLE_AUTH", "yes"),
            ("ZOO_SERVER_USERS", "ann, bob"),
            ("ZOO_SERVER_PASSWORDS", r#"a"b\c;two"#),
        ])
        .unwrap();
        assert_eq!(
            logins.jaas,
            "Server {\n    org.apache.zookeeper.server.auth.DigestLoginModule required\n    \
             user_ann=\"a\\\"b\\\\c\"\n    user_bob=\"two\";\n};\n"
        );
        assert!(logins.keys.contains(&"enforce.auth.schemes=sasl".to_owned()));
    }

    #[test]
    fn servers_log_in_by_their_own_sections() {
        let logins = logins(&[
            ("ZOO_ENABLE_QUORUM_AUTH", "yes"),
            ("ZOO_QUORUM_SERVER_USERS", "zk"),
            ("ZOO_QUORUM_SERVER_PASSWORDS", "secret"),
            ("ZOO_QUORUM_LEARNER_USER", "zk"),
            ("ZOO_QUORUM_LEARNER_PASSWORD", "secret"),
        ])
        .unwrap();
        assert!(logins.jaas.starts_with("QuorumLearner {"), "{}", logins.jaas);
        assert!(logins.jaas.contains("username=\"zk\"\n    password=\"secret\";"), "{}", logins.jaas);
        assert!(logins.jaas.contains("QuorumServer {"), "{}", logins.jaas);
    }

    #[test]
    fn what_would_let_in_the_wrong_ones_is_refused() {
        for (pairs, reason) in [
            (vec![("ALLOW_ANONYMOUS_LOGIN", "no")], "ALLOW_ANONYMOUS_LOGIN=no asks for logins"),
            (vec![("ALLOW_EMPTY_PASSWORD", "false")], "ALLOW_EMPTY_PASSWORD=no asks for logins"),
            (vec![("ZOO_ENABLE_AUTH", "yes")], "ZOO_SERVER_USERS is not set, but ZOO_ENABLE_AUTH needs it"),
            (
                vec![("ZOO_ENABLE_AUTH", "yes"), ("ZOO_SERVER_USERS", "a,b"), ("ZOO_SERVER_PASSWORDS", "x")],
                "ZOO_SERVER_USERS has 2 entries and ZOO_SERVER_PASSWORDS has 1",
            ),
            (
                vec![("ZOO_ENABLE_AUTH", "1"), ("ZOO_SERVER_USERS", "a=\"b"), ("ZOO_SERVER_PASSWORDS", "x")],
                "ZOO_SERVER_USERS: the user \"a=\"b\" is not allowed",
            ),
            (
                vec![
                    ("ZOO_ENABLE_QUORUM_AUTH", "yes"),
                    ("ZOO_QUORUM_SERVER_USERS", "a"),
                    ("ZOO_QUORUM_SERVER_PASSWORDS", "x"),
                ],
                "ZOO_QUORUM_LEARNER_USER is not set, but ZOO_ENABLE_QUORUM_AUTH needs it",
            ),
            (
                vec![("ZOO_ENABLE_AUTH", "1"), ("ZOO_SERVER_USERS", "a"), ("ZOO_SERVER_PASSWORDS", "${x}")],
                "ZOO_SERVER_PASSWORDS has ${",
            ),
        ] {
            let error = logins(&pairs).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
        assert_eq!(logins(&[("ALLOW_ANONYMOUS_LOGIN", "yes")]).unwrap(), Logins::default());
    }
}
