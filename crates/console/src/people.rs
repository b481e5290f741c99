//! People who have signed in: cookies, tokens, and the limit of attempts.

use axum::http::{HeaderMap, header};
use ostler_proto::acl::Id;
use ostler_server::admin::logins::network;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// A sign-in holds for this time.
pub(crate) const LASTS: Duration = Duration::from_secs(8 * 3600);
/// People who are signed in at once. The one who signed in first makes room for the next.
const PEOPLE_MAX: usize = 256;
/// Attempts to sign in within [`WINDOW`], for each address.
const ATTEMPTS_MAX: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses whose attempts are counted at once.
const ADDRESSES_MAX: usize = 4096;

/// A random number that nobody can guess: the value of a cookie, or a token.
pub(crate) type Ticket = [u8; 32];

/// How somebody proves an identity to the server, again for each of the client's connections. It has no `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Proof {
    /// Nothing beyond the address and the certificate of the connection.
    None,
    /// `user:password` of the scheme digest.
    Digest(Vec<u8>),
    /// SASL DIGEST-MD5.
    Sasl { user: String, password: String },
}

/// A person who has signed in.
pub(crate) struct Person {
    /// The identities that the sign-in has proven, beside those of the connection.
    pub(crate) ids: Vec<Id>,
    pub(crate) proof: Proof,
    /// Each change by this person's pages must carry it.
    pub(crate) token: Ticket,
    pub(crate) since: Instant,
}

/// All who have signed in.
#[derive(Default)]
pub(crate) struct People {
    signed_in: Mutex<HashMap<Ticket, Arc<Person>>>,
    attempts: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

/// A new ticket; `None` if the system gives no random numbers.
pub(crate) fn new_ticket() -> Option<Ticket> {
    let mut ticket = [0; 32];
    getrandom::fill(&mut ticket).ok()?;
    Some(ticket)
}

pub(crate) fn hex(ticket: &Ticket) -> String {
    ticket.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Ticket> {
    let mut ticket = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in ticket.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(ticket)
}

/// Whether two tickets are the same, in a time that does not tell where they differ.
pub(crate) fn same(one: &Ticket, other: &str) -> bool {
    from_hex(other)
        .is_some_and(|other| one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0)
}

/// The cookie's name. Browsers send a cookie to all ports of a host, so the name has the port.
pub(crate) fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let port: String = port.chars().filter(char::is_ascii_digit).collect();
    format!("ostler_console_{port}")
}

fn ticket_of(headers: &HeaderMap) -> Option<Ticket> {
    let name = cookie_name(headers);
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    from_hex(pairs.find(|(key, _)| *key == name)?.1)
}

impl People {
    /// The person whose cookie a request has, with the cookie's value.
    pub(crate) fn of(&self, headers: &HeaderMap, now: Instant) -> Option<(Ticket, Arc<Person>)> {
        let ticket = ticket_of(headers)?;
        let mut signed_in = self.signed_in();
        let person = signed_in.get(&ticket)?.clone();
        if now.saturating_duration_since(person.since) >= LASTS {
            signed_in.remove(&ticket);
            return None;
        }
        Some((ticket, person))
    }

    /// Keeps a person under a new ticket.
    pub(crate) fn sign_in(&self, ticket: Ticket, person: Arc<Person>) {
        let mut signed_in = self.signed_in();
        if signed_in.len() >= PEOPLE_MAX
            && let Some(first) = signed_in.iter().min_by_key(|(_, person)| person.since).map(|(key, _)| *key)
        {
            signed_in.remove(&first);
        }
        signed_in.insert(ticket, person);
    }

    pub(crate) fn sign_out(&self, headers: &HeaderMap) {
        if let Some(ticket) = ticket_of(headers) {
            self.signed_in().remove(&ticket);
        }
    }

    /// Counts an attempt to sign in. Returns false if this address has tried too often.
    pub(crate) fn may_try(&self, address: IpAddr, now: Instant) -> bool {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() >= ADDRESSES_MAX {
            attempts.retain(|_, (since, _)| now.saturating_duration_since(*since) < WINDOW);
        }
        let address = network(address);
        if attempts.len() >= ADDRESSES_MAX && !attempts.contains_key(&address) {
            return false;
        }
        let (since, count) = attempts.entry(address).or_insert((now, 0));
        if now.saturating_duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= ATTEMPTS_MAX
    }

    fn signed_in(&self) -> MutexGuard<'_, HashMap<Ticket, Arc<Person>>> {
        self.signed_in.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn person(since: Instant) -> Arc<Person> {
        Arc::new(Person { ids: Vec::new(), proof: Proof::None, token: [7; 32], since })
    }

    fn with_cookie(ticket: &Ticket) -> HeaderMap {
        let cookie = format!("other=1; ostler_console_8080={}", hex(ticket));
        let pairs = [(header::HOST, "localhost:8080".to_owned()), (header::COOKIE, cookie)];
        pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_str(&value).unwrap())).collect()
    }

    #[test]
    fn a_sign_in_holds_for_eight_hours_or_until_the_person_signs_out() {
        let (people, start) = (People::default(), Instant::now());
        people.sign_in([1; 32], person(start));
        let headers = with_cookie(&[1; 32]);
        assert!(people.of(&headers, start).is_some());
        assert!(people.of(&with_cookie(&[2; 32]), start).is_none(), "another cookie");
        assert!(people.of(&headers, start + LASTS).is_none());
        people.sign_in([1; 32], person(start));
        people.sign_out(&headers);
        assert!(people.of(&headers, start).is_none());
    }

    #[test]
    fn the_first_one_makes_room_when_too_many_have_signed_in() {
        let (people, start) = (People::default(), Instant::now());
        for number in 0..=PEOPLE_MAX {
            let mut ticket = [0; 32];
            ticket[..8].copy_from_slice(&number.to_be_bytes());
            people.sign_in(ticket, person(start + Duration::from_millis(number as u64)));
        }
        assert_eq!(people.signed_in().len(), PEOPLE_MAX);
        assert!(!people.signed_in().contains_key(&[0; 32]));
    }

    #[test]
    fn five_attempts_in_a_minute() {
        let (people, start) = (People::default(), Instant::now());
        let (one, same_network) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        for _ in 0..ATTEMPTS_MAX {
            assert!(people.may_try(one, start));
        }
        assert!(!people.may_try(same_network, start));
        assert!(people.may_try("10.0.0.1".parse().unwrap(), start));
        assert!(people.may_try(one, start + WINDOW));
    }

    #[test]
    fn a_ticket_that_differs_anywhere_is_another() {
        let ticket = [0xab; 32];
        assert!(same(&ticket, &hex(&ticket)));
        for place in [0, 31] {
            let mut other = ticket;
            other[place] ^= 1;
            assert!(!same(&ticket, &hex(&other)));
        }
        for wrong in ["", "ab", &"zz".repeat(32), &"ü".repeat(32)] {
            assert!(!same(&ticket, wrong), "{wrong}");
        }
    }
}
