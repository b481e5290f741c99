//! The names that recipes give to their znodes. All patterns are here, with the rule of each in words.
//!
//! A name shows which program has written it only as far as programs name their znodes differently. Ostler's recipes lay
//! out their znodes as Curator does and put a tag into the id ([`RecipeTag`]), so these two can be told apart.

use ostler_client::RecipeTag;

/// The kind of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Latch,
    Selector,
    Mutex,
    ReadWrite,
    Semaphore,
    Election,
    WriteLock,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Latch,
        Kind::Selector,
        Kind::Mutex,
        Kind::ReadWrite,
        Kind::Semaphore,
        Kind::Election,
        Kind::WriteLock,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Latch => "latch",
            Kind::Selector => "selector",
            Kind::Mutex => "mutex",
            Kind::ReadWrite => "read_write",
            Kind::Semaphore => "semaphore",
            Kind::Election => "election",
            Kind::WriteLock => "write_lock",
        }
    }
}

/// The library that has created a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Maker {
    Curator,
    Kazoo,
    ZooKeeper,
    Ostler,
    Unknown,
}

impl Maker {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Maker::Curator => "curator",
            Maker::Kazoo => "kazoo",
            Maker::ZooKeeper => "zookeeper",
            Maker::Ostler => "ostler",
            Maker::Unknown => "unknown",
        }
    }
}

/// How far a recognition can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Confidence {
    /// The names are likely to be chance.
    Guess,
    /// The library is certain, and the kind is the usual one of several with these names.
    Likely,
    /// No other known recipe has such names.
    Sure,
}

impl Confidence {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Confidence::Guess => "guess",
            Confidence::Likely => "likely",
            Confidence::Sure => "sure",
        }
    }
}

/// The form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    /// `_c_UUID-latch-NUMBER`.
    Latch,
    /// `_c_UUID-lock-NUMBER`.
    Lock,
    /// `_c_UUID-__READ__NUMBER`; after a downgrade of Ostler's without a number of its own.
    Reader,
    /// `_c_UUID-__WRIT__NUMBER`.
    Writer,
    /// `_c_UUID-lease-NUMBER`.
    Lease,
    /// `HEX__lock__NUMBER`.
    KazooLock,
    /// `HEX__rlock__NUMBER`.
    KazooReader,
    /// `HEX`.
    KazooLease,
    /// `x-SESSION-NUMBER`.
    WriteLock,
    /// `n_NUMBER`.
    Offer,
    /// Any text with `lock`, `latch`, `leader` or `elect` before the number.
    Other,
    /// `leader`.
    Leader,
}

impl Form {
    /// All forms with rules of their own.
    const WITH_RULES: [Form; 11] = [
        Form::Latch,
        Form::Lock,
        Form::Reader,
        Form::Lease,
        Form::KazooLock,
        Form::KazooReader,
        Form::KazooLease,
        Form::WriteLock,
        Form::Offer,
        Form::Leader,
        Form::Other,
    ];

    /// All rules, for somebody whose znodes are not recognised.
    pub(crate) fn rules() -> Vec<&'static str> {
        Form::WITH_RULES.into_iter().map(Form::rule).collect()
    }

    /// Whether it holds together with others of its form.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Form::Reader | Form::KazooReader)
    }

    /// The rule by which a znode of this form is recognised.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Form::Latch => {
                "The ephemerals are named _c_UUID-latch-NUMBER, as Curator's LeaderLatch names them."
            }
            Form::Lock => {
                "The ephemerals are named _c_UUID-lock-NUMBER, as Curator's InterProcessMutex names them."
            }
            Form::Reader | Form::Writer => {
                "The ephemerals are named _c_UUID-__READ__NUMBER and _c_UUID-__WRIT__NUMBER, as Curator's \
                 InterProcessReadWriteLock names them."
            }
            Form::Lease => {
                "The ephemerals below leases are named _c_UUID-lease-NUMBER, as Curator's InterProcessSemaphoreV2 and \
                 InterProcessSemaphoreMutex name them."
            }
            Form::KazooLock => {
                "The ephemerals are named HEX__lock__NUMBER, as kazoo's Lock, Election and WriteLock name them."
            }
            Form::KazooReader => {
                "There are ephemerals named HEX__rlock__NUMBER, as kazoo's ReadLock names them."
            }
            Form::KazooLease => {
                "The ephemerals are named by 32 hexadecimal digits, and the parent's data is a number, as kazoo's \
                 Semaphore makes them."
            }
            Form::WriteLock => {
                "The ephemerals are named x-SESSION-NUMBER, as ZooKeeper's recipe WriteLock names them."
            }
            Form::Offer => {
                "The ephemerals are named n_NUMBER, as ZooKeeper's recipe for elections names them."
            }
            Form::Other => {
                "The ephemerals are numbered, and their names say that they are for a lock or an election. No known \
                 library names them so."
            }
            Form::Leader => {
                "The ephemeral is named leader, and the transaction that created it has also written a random id into \
                 its parent, as Ostler's UnfairElection does."
            }
        }
    }
}

/// A name that some recipe can have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) form: Form,
    /// Ostler's tag.
    pub(crate) tag: Option<RecipeTag>,
    /// The number that orders the queue.
    pub(crate) number: Option<i32>,
    /// The session in the name.
    pub(crate) session: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn numbered(form: Form, number: i32) -> Name<'a> {
        Name { form, tag: None, number: Some(number), session: None }
    }

    /// The library that writes such names.
    pub(crate) fn maker(&self) -> Maker {
        match self.form {
            _ if self.tag.is_some() => Maker::Ostler,
            Form::Latch | Form::Lock | Form::Reader | Form::Writer | Form::Lease => Maker::Curator,
            Form::KazooLock | Form::KazooReader | Form::KazooLease => Maker::Kazoo,
            Form::WriteLock | Form::Offer => Maker::ZooKeeper,
            Form::Other => Maker::Unknown,
            Form::Leader => Maker::Ostler,
        }
    }
}

/// The words of Curator's recipes, before the number.
const OF_CURATOR: [(&str, Form); 5] = [
    ("latch-", Form::Latch),
    ("lock-", Form::Lock),
    ("__READ__", Form::Reader),
    ("__WRIT__", Form::Writer),
    ("lease-", Form::Lease),
];

/// Words that unknown recipes use before the number.
const OF_OTHERS: [&str; 4] = ["lock", "latch", "leader", "elect"];

/// Reads a name; `None` if no recipe writes such names.
pub(crate) fn read(name: &str) -> Option<Name<'_>> {
    of_curator(name)
        .or_else(|| of_kazoo(name))
        .or_else(|| of_zookeeper(name))
        .or_else(|| {
            (name == "leader").then_some(Name { form: Form::Leader, tag: None, number: None, session: None })
        })
        .or_else(|| of_others(name))
}

fn of_curator(name: &str) -> Option<Name<'_>> {
    let rest = name.strip_prefix("_c_")?;
    let id = rest.get(..36).filter(|id| is_uuid(id))?;
    let given = rest[id.len()..].strip_prefix('-')?;
    let tag = RecipeTag::of(name);
    let (form, number) = OF_CURATOR.iter().find_map(|(word, form)| {
        // Ostler puts the czxid of a writer before the word of the reader that it has become.
        let before = given.find(word).filter(|at| *at == 0 || is_arrival(&given[..*at]))?;
        Some((*form, number(&given[before + word.len()..])?))
    })?;
    Some(Name { tag, ..Name::numbered(form, number) })
}

/// `0000000500000abc-`.
fn is_arrival(text: &str) -> bool {
    text.len() == 17 && text.ends_with('-') && is_hex(&text[..16])
}

fn of_kazoo(name: &str) -> Option<Name<'_>> {
    let (id, rest) = (name.get(..32).filter(|id| is_hex(id))?, &name[32..]);
    if rest.is_empty() {
        return Some(Name { form: Form::KazooLease, tag: None, number: None, session: None });
    }
    debug_assert_eq!(id.len(), 32);
    let forms = [("__lock__", Form::KazooLock), ("__rlock__", Form::KazooReader)];
    forms.iter().find_map(|(word, form)| Some(Name::numbered(*form, number(rest.strip_prefix(word)?)?)))
}

fn of_zookeeper(name: &str) -> Option<Name<'_>> {
    if let Some(rest) = name.strip_prefix("n_") {
        return Some(Name::numbered(Form::Offer, number(rest)?));
    }
    // A session id in Java is a signed number, so the sign is a part of it.
    let (session, digits) = name.strip_prefix("x-")?.rsplit_once('-')?;
    let number = number(digits)?;
    let digits = session.strip_prefix('-').unwrap_or(session);
    let is_session = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_session.then_some(Name { session: Some(session), ..Name::numbered(Form::WriteLock, number) })
}

fn of_others(name: &str) -> Option<Name<'_>> {
    let at = name.len().checked_sub(10)?;
    let (before, digits) = (name.get(..at)?, name.get(at..)?);
    let word = before.trim_end_matches(['-', '_']).to_ascii_lowercase();
    let says_so = OF_OTHERS.iter().any(|known| word.contains(known));
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    (says_so && is_number).then(|| Some(Name::numbered(Form::Other, digits.parse().ok()?)))?
}

/// The number that a server has appended: ten characters at least, the sign included.
fn number(digits: &str) -> Option<i32> {
    let is_number = digits.len() >= 10
        && digits.bytes().enumerate().all(|(at, byte)| byte.is_ascii_digit() || (at == 0 && byte == b'-'));
    digits.parse().ok().filter(|_| is_number)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is a UUID as Java writes it.
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups = [8, 4, 4, 4, 12];
    text.is_ascii() && text.split('-').map(str::len).eq(groups) && text.split('-').all(is_hex)
}

/// Whether a session id in a name, decimal as Java writes it or hexadecimal as the C client does, is this session's.
pub(crate) fn is_session(text: &str, session: i64) -> bool {
    text.parse() == Ok(session) || u64::from_str_radix(text, 16) == Ok(session as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that the real clients have made: Curator 5.9.0, kazoo 2.11.0. Those of ZooKeeper's recipes are by its
    /// sources.
    #[test]
    fn names_of_real_clients_are_read() {
        let table: &[(&str, Form, Maker, Option<i32>)] = &[
            (
                "_c_970e5c47-4962-4e75-8c04-568be4164a0a-latch-0000000000",
                Form::Latch,
                Maker::Curator,
                Some(0),
            ),
            ("_c_63e8c29f-bef7-4676-84c0-321fadc41636-lock-0000000001", Form::Lock, Maker::Curator, Some(1)),
            (
                "_c_c8298c0e-70dd-4ca3-99c8-3702142b49ba-__READ__0000000000",
                Form::Reader,
                Maker::Curator,
                Some(0),
            ),
            (
                "_c_6d46a8e3-bc73-4645-9f76-f1b040817289-__WRIT__0000000001",
                Form::Writer,
                Maker::Curator,
                Some(1),
            ),
            (
                "_c_22373b1b-44d0-4a85-a380-2e3daf604ed2-lease-0000000000",
                Form::Lease,
                Maker::Curator,
                Some(0),
            ),
            ("2a1f4c21f4c44df1a4087394f537a224__lock__0000000001", Form::KazooLock, Maker::Kazoo, Some(1)),
            ("d473dabf9fa142ccaf429583df40c8aa__rlock__0000000001", Form::KazooReader, Maker::Kazoo, Some(1)),
            ("8223bb3c3590491d80396adbfede6ba2", Form::KazooLease, Maker::Kazoo, None),
            ("x-72057595140210688-0000000003", Form::WriteLock, Maker::ZooKeeper, Some(3)),
            ("x--72057595140210688-0000000003", Form::WriteLock, Maker::ZooKeeper, Some(3)),
            ("x-0100000012ab0001-0000000003", Form::WriteLock, Maker::ZooKeeper, Some(3)),
            ("n_0000000012", Form::Offer, Maker::ZooKeeper, Some(12)),
            ("leader", Form::Leader, Maker::Ostler, None),
            ("my-lock-0000000001", Form::Other, Maker::Unknown, Some(1)),
            ("LeaderElection_0000000001", Form::Other, Maker::Unknown, Some(1)),
            // go-zookeeper: an id without dashes.
            ("_c_22373b1b44d04a85a3802e3daf604ed2-lock-0000000001", Form::Other, Maker::Unknown, Some(1)),
            // At the end of the parent's counter.
            (
                "_c_63e8c29f-bef7-4676-84c0-321fadc41636-lock-2147483647",
                Form::Lock,
                Maker::Curator,
                Some(i32::MAX),
            ),
            (
                "_c_63e8c29f-bef7-4676-84c0-321fadc41636-lock--2147483648",
                Form::Lock,
                Maker::Curator,
                Some(i32::MIN),
            ),
        ];
        for (name, form, maker, number) in table {
            let read = read(name).unwrap_or_else(|| panic!("{name} is not read"));
            assert_eq!((read.form, read.maker(), read.number), (*form, *maker, *number), "{name}");
            assert_eq!(read.tag, None, "{name}");
        }
    }

    #[test]
    fn ostlers_names_have_a_tag() {
        let table = [
            ("_c_970e5c47-4962-85e1-8c04-568be4164a0a-latch-0000000000", Form::Latch, RecipeTag::LeaderLatch),
            (
                "_c_970e5c47-4962-85e2-8c04-568be4164a0a-lock-0000000007",
                Form::Lock,
                RecipeTag::LeaderSelector,
            ),
            ("_c_970e5c47-4962-85e3-8c04-568be4164a0a-lock-0000000007", Form::Lock, RecipeTag::Mutex),
            (
                "_c_970e5c47-4962-85e4-8c04-568be4164a0a-__READ__0000000012",
                Form::Reader,
                RecipeTag::ReadWriteLock,
            ),
            (
                "_c_970e5c47-4962-85e4-8c04-568be4164a0a-0000000500000abc-__READ__2147483647",
                Form::Reader,
                RecipeTag::ReadWriteLock,
            ),
            ("_c_970e5c47-4962-85e5-8c04-568be4164a0a-lease-0000000000", Form::Lease, RecipeTag::Semaphore),
        ];
        for (name, form, tag) in table {
            let read = read(name).unwrap();
            assert_eq!((read.form, read.tag, read.maker()), (form, Some(tag), Maker::Ostler), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_read() {
        for name in [
            "",
            "0000000001",
            "lock-1",
            "lock",
            "config-0000000001",
            "member_0000000001",
            "_c_970e5c47-4962-4e75-8c04-568be4164a0a-member-0000000000",
            "_c_970e5c47-4962-4e75-8c04-568be4164a0a-xlock-000000000",
            "_c_970e5c47-4962-4e75-8c04-568be4164a0a",
            "_c_ä70e5c47-4962-4e75-8c04-568be4164a0",
            "8223BB3C3590491D80396ADBFEDE6BA2",
            "8223bb3c3590491d80396adbfede6ba2__lock__1",
            "8223bb3c3590491d80396adbfede6ba20",
            "x-0000000003",
            "x-zz-0000000003",
            "x--0000000003",
            "n_12",
            "ä0000000001",
            "lock-00000\u{e9}000",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }

    #[test]
    fn a_session_in_a_name_is_compared() {
        assert!(is_session("72057595140210688", 72_057_595_140_210_688));
        assert!(is_session("-72057595140210688", -72_057_595_140_210_688));
        assert!(is_session("0100000012ab0001", 0x0100_0000_12ab_0001));
        assert!(is_session("ff00000012ab0001", 0xff00_0000_12ab_0001_u64 as i64));
        assert!(!is_session("5", 6) && !is_session("", 0) && !is_session("x", 0));
    }
}
