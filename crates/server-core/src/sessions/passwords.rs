//! Session passwords: how they are made and checked. docs/sessions.md says what they protect.
//!
//! By default a password is derived from the session id as in upstream, so Java servers can check it. With secrets, new
//! session ids are marked, and their passwords are made with a secret that the servers of an ensemble share; Java
//! servers refuse these. A client gets its password with each handshake, so passwords change their kind as clients come
//! back.

use alloc::vec::Vec;
use core::fmt;
use hmac::{Hmac, Mac};
use ostler_proto::{
    connect::Password,
    id::{ServerId, SessionId},
    password,
};
use sha2::Sha256;

/// Makes these passwords differ from anything else that is made with the same secret.
const PURPOSE: &[u8] = b"ostler session password";

/// A secret that only the servers of an ensemble know.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// The least number of bytes of a secret.
    pub const LENGTH_MIN: usize = 16;

    /// A secret of random bytes; `None` if they are too few.
    pub fn new(bytes: &[u8]) -> Option<Secret> {
        if bytes.len() < Secret::LENGTH_MIN {
            return None;
        }
        Hmac::new_from_slice(bytes).ok().map(|keyed: Hmac<Sha256>| Secret(keyed.chain_update(PURPOSE)))
    }

    fn mac_of(&self, session: SessionId) -> Hmac<Sha256> {
        self.0.clone().chain_update(session.0.to_be_bytes())
    }

    fn password_of(&self, session: SessionId) -> Password {
        let mut password = Password::default();
        let made = self.mac_of(session).finalize().into_bytes();
        let length = password.len();
        password.copy_from_slice(&made[..length]);
        password
    }

    /// Takes the same time for every wrong password of the right length.
    fn opens(&self, session: SessionId, given: &[u8]) -> bool {
        given.len() == Password::default().len() && self.mac_of(session).verify_truncated_left(given).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The kind of passwords that this server makes (`sessionPasswords`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewPasswords {
    /// New sessions have passwords that are derived from their ids.
    #[default]
    Derived,
    /// New sessions have passwords that are made with the first secret.
    Secret,
    /// As `Derived`. Also sessions with a secret password get a derived one as their clients come back, so that Java
    /// servers accept them.
    Leaving,
}

/// The result of checking a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The password is right.
    Right,
    /// The password is wrong at every server.
    Wrong,
    /// Wrong here, but another server may accept it: it may have another secret, or be at another step of a change.
    Unknown,
}

/// How a server makes and judges passwords.
#[derive(Debug, Clone, Default)]
pub struct Passwords {
    /// The kind of new passwords.
    pub new: NewPasswords,
    /// The first makes passwords; each of them checks passwords.
    pub secrets: Vec<Secret>,
}

impl Passwords {
    /// An id for a new session.
    pub(crate) fn draw(&self, server: ServerId, chance: u64) -> SessionId {
        match self.new {
            NewPasswords::Secret if !self.secrets.is_empty() => SessionId::random_with_secret(server, chance),
            _ => SessionId::random(server, chance),
        }
    }

    /// The password for a client whose session is opened.
    pub(crate) fn password_of(&self, session: SessionId) -> Password {
        match self.secrets.first() {
            Some(secret) if session.has_secret() && self.new != NewPasswords::Leaving => {
                secret.password_of(session)
            }
            _ => password::password_of(session),
        }
    }

    /// Whether a password opens a session.
    pub(crate) fn judge(&self, session: SessionId, given: Option<&[u8]>) -> Verdict {
        let derived = password::opens(session, given);
        if !session.has_secret() {
            return if derived { Verdict::Right } else { Verdict::Wrong };
        }
        let by_secret =
            given.is_some_and(|given| self.secrets.iter().any(|secret| secret.opens(session, given)));
        // Without a secret this server accepts the same passwords as a Java server.
        let takes_derived = self.secrets.is_empty() || self.new == NewPasswords::Leaving;
        if by_secret || derived && takes_derived { Verdict::Right } else { Verdict::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const PLAIN: SessionId = SessionId(0x0101_0203_0405_0607);
    const MARKED: SessionId = SessionId(0x01ff_0203_0405_0607);

    fn of(new: NewPasswords, secrets: &[&[u8]]) -> Passwords {
        Passwords { new, secrets: secrets.iter().map(|bytes| Secret::new(bytes).unwrap()).collect() }
    }

    const ONE: &[u8] = b"the first of two secrets";
    const TWO: &[u8] = b"the second of two secrets";

    /// The number is Python's.
    #[test]
    fn a_secret_password_is_the_beginning_of_a_mac() {
        let made = of(NewPasswords::Secret, &[ONE]).password_of(MARKED);
        assert_eq!(made, 0x2400_2613_1160_a77a_4931_0d90_771d_8d2f_u128.to_be_bytes());
        assert!(Secret::new(&ONE[..15]).is_none());
        assert_eq!(
            alloc::format!("{:?}", of(NewPasswords::Secret, &[ONE])),
            "Passwords { new: Secret, secrets: [Secret] }"
        );
    }

    #[test]
    fn each_kind_of_server_takes_what_it_should() {
        use NewPasswords::{Derived, Leaving, Secret};
        use Verdict::{Right, Unknown, Wrong};
        let derived = password::password_of(MARKED);
        let one = of(Secret, &[ONE]).password_of(MARKED);
        let two = of(Secret, &[TWO]).password_of(MARKED);
        let servers = [
            // Its verdicts on the derived password, on that of the first secret, and on that of the second.
            (of(Derived, &[]), [Right, Unknown, Unknown]),
            (of(Derived, &[ONE]), [Unknown, Right, Unknown]),
            (of(Secret, &[ONE]), [Unknown, Right, Unknown]),
            (of(Secret, &[TWO, ONE]), [Unknown, Right, Right]),
            (of(Leaving, &[ONE]), [Right, Right, Unknown]),
        ];
        for (server, expected) in servers {
            let found = [derived, one, two].map(|password| server.judge(MARKED, Some(&password)));
            assert_eq!(found, expected, "{server:?}");
            for wrong in [None, Some(&[][..]), Some(&[0; 16]), Some(&one[..15])] {
                assert_eq!(server.judge(MARKED, wrong), Unknown, "{server:?}");
                assert_eq!(server.judge(PLAIN, wrong), Wrong, "{server:?}");
            }
            let plain = password::password_of(PLAIN);
            assert_eq!(server.judge(PLAIN, Some(&plain)), Right, "{server:?}: of before");
            assert_eq!(server.password_of(PLAIN), plain);
            assert_eq!(server.judge(SessionId::NONE, Some(&password::password_of(SessionId::NONE))), Wrong);
        }
    }

    /// A client goes from server to server, with the password that it was given last.
    #[test]
    fn a_session_survives_each_change_of_the_servers() {
        use NewPasswords::{Derived, Leaving, Secret};
        let goes = |session: SessionId, way: &[Passwords]| {
            let mut password = way[0].password_of(session);
            for (at, server) in way.iter().enumerate() {
                assert_eq!(server.judge(session, Some(&password)), Verdict::Right, "{session}, place {at}");
                password = server.password_of(session);
            }
            password
        };
        // Secrets come, are used, change, and go.
        let way = [
            of(Derived, &[ONE]),
            of(Secret, &[ONE]),
            of(Secret, &[ONE, TWO]),
            of(Secret, &[TWO, ONE]),
            of(Secret, &[TWO]),
            of(Leaving, &[TWO]),
            of(Derived, &[]),
        ];
        for session in [PLAIN, MARKED] {
            assert_eq!(goes(session, &way), password::password_of(session), "what Java takes");
        }
        // Back and forth between servers before a step and after it.
        for pair in way[..5].windows(2).chain([&[of(Leaving, &[TWO]), of(Derived, &[])][..]]) {
            let [before, after] = pair else { panic!("two") };
            goes(MARKED, &[before.clone(), after.clone(), before.clone(), after.clone()]);
        }
        // From the step on that leads away a server with the secret leaves a client to the others, and ends nothing.
        let left = of(Leaving, &[TWO]).password_of(MARKED);
        assert_eq!(of(Secret, &[TWO]).judge(MARKED, Some(&left)), Verdict::Unknown);
        assert_eq!(vec![goes(MARKED, &[of(Leaving, &[TWO]), of(Leaving, &[TWO])])], vec![left]);
    }
}
