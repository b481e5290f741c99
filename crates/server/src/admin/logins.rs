//! Counts the logins of the header `Authorization`, which need no sign-in: the answers tell which of them has a right, so
//! they must not be guessed one after the other.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Passwords of one user that an address may try within [`WINDOW`].
const PASSWORDS_MAX: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Users of one address within that time.
const USERS_MAX: usize = 256;
/// Addresses that are counted at once.
const ADDRESSES_MAX: usize = 4096;
/// Logins of one address that are known to have a right.
const PROVEN_MAX: usize = 64;

/// The logins that were tried lately. None is kept as it is.
#[derive(Debug, Default)]
pub struct Logins {
    by_address: Mutex<HashMap<IpAddr, Tried>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Tried {
    since: Instant,
    /// The logins of each user.
    users: HashMap<u64, Vec<u64>>,
    /// Those that have a right, the oldest first.
    proven: Vec<u64>,
}

/// How a login stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was tried before.
    Known,
    /// It is counted from now on, unless it turns out to have a right ([`Logins::has_right`]).
    New,
    /// Too many others were tried.
    TooMany,
}

impl Logins {
    /// Notes a login, `USER:PASSWORD`, from an address.
    pub fn note(&self, address: IpAddr, login: &[u8], now: Instant) -> Standing {
        let (user, login) = self.hashes(login);
        let mut all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |tried: &Tried| now.saturating_duration_since(tried.since) >= WINDOW;
        let address = network(address);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            all.retain(|_, tried| !is_old(tried));
            if all.len() >= ADDRESSES_MAX {
                return Standing::TooMany;
            }
        }
        let new = || Tried { since: now, users: HashMap::new(), proven: Vec::new() };
        let tried = all.entry(address).or_insert_with(new);
        if is_old(tried) {
            (tried.since, tried.users) = (now, HashMap::new());
        }
        tried.note(user, login)
    }

    /// A login has a right, so it is no guess.
    pub fn has_right(&self, address: IpAddr, login: &[u8]) {
        let (user, login) = self.hashes(login);
        let mut all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tried) = all.get_mut(&network(address)) else { return };
        if let Some(logins) = tried.users.get_mut(&user) {
            logins.retain(|known| *known != login);
        }
        if tried.proven.len() >= PROVEN_MAX {
            tried.proven.remove(0);
        }
        tried.proven.push(login);
    }

    /// The numbers of the user and of the login.
    fn hashes(&self, login: &[u8]) -> (u64, u64) {
        let user = login.split(|byte| *byte == b':').next().unwrap_or_default();
        (self.hasher.hash_one(user), self.hasher.hash_one(login))
    }
}

impl Tried {
    fn note(&mut self, user: u64, login: u64) -> Standing {
        if self.proven.contains(&login) {
            return Standing::Known;
        }
        if self.users.len() >= USERS_MAX && !self.users.contains_key(&user) {
            return Standing::TooMany;
        }
        let logins = self.users.entry(user).or_default();
        if logins.contains(&login) {
            return Standing::Known;
        }
        if logins.len() >= PASSWORDS_MAX {
            return Standing::TooMany;
        }
        logins.push(login);
        Standing::New
    }
}

/// The part of an address by which clients are counted: one client mostly has a whole network of IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn five_passwords_of_a_user_in_a_minute() {
        let (logins, start) = (Logins::default(), Instant::now());
        let note = |login: &str, now| logins.note(address(1), login.as_bytes(), now);
        for number in 0..PASSWORDS_MAX {
            assert_eq!(note(&format!("ann:{number}"), start), Standing::New);
        }
        assert_eq!(note("ann:x", start), Standing::TooMany);
        assert_eq!(note("ann:0", start), Standing::Known);
        assert_eq!(note("bob:0", start), Standing::New);
        assert_eq!(logins.note(address(2), b"ann:x", start), Standing::New);
        assert_eq!(note("ann:x", start + WINDOW), Standing::New);
    }

    #[test]
    fn a_login_with_a_right_is_not_counted() {
        let (logins, start) = (Logins::default(), Instant::now());
        for number in 0..2 * PASSWORDS_MAX {
            let login = format!("ann:{number}").into_bytes();
            assert_eq!(logins.note(address(1), &login, start), Standing::New);
            logins.has_right(address(1), &login);
        }
        assert_eq!(logins.note(address(1), b"ann:0", start + 10 * WINDOW), Standing::Known);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (logins, start) = (Logins::default(), Instant::now());
        for number in 0..2 * USERS_MAX {
            logins.note(address(1), format!("{number}:pw").as_bytes(), start);
        }
        for number in 0..2 * PROVEN_MAX {
            logins.has_right(address(1), format!("0:{number}").as_bytes());
        }
        for number in 0..2 * u32::try_from(ADDRESSES_MAX).unwrap() {
            logins.note(address(number), b"ann:pw", start);
        }
        assert_eq!(logins.note(address(9999), b"ann:pw", start), Standing::TooMany);
        let all = logins.by_address.lock().unwrap();
        let one = &all[&address(1)];
        assert_eq!((all.len(), one.users.len(), one.proven.len()), (ADDRESSES_MAX, USERS_MAX, PROVEN_MAX));
        drop(all);
        assert_eq!(logins.note(address(9999), b"ann:pw", start + WINDOW), Standing::New);
    }
}
