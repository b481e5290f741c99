//! The operations of a mix: their names, their shares, and their requests.

use super::template::{self, Build, Path, Template};
use ostler_proto::{
    error::ErrorCode,
    jute::Reader,
    op::{self, Op},
    request::MultiHeader,
};
use std::str::FromStr;

/// An operation of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Set,
    Exists,
    Create,
    Delete,
    Children,
    Multi,
    Sync,
}

impl Kind {
    pub(crate) const ALL: [Kind; 8] = [
        Kind::Get,
        Kind::Set,
        Kind::Exists,
        Kind::Create,
        Kind::Delete,
        Kind::Children,
        Kind::Multi,
        Kind::Sync,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Set => "set",
            Kind::Exists => "exists",
            Kind::Create => "create",
            Kind::Delete => "delete",
            Kind::Children => "children",
            Kind::Multi => "multi",
            Kind::Sync => "sync",
        }
    }
}

/// Operations with their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shares(Vec<(Kind, u16)>);

impl Shares {
    /// One entry for each unit of weight: a uniform choice from the list is a choice by weight.
    pub(crate) fn urn(&self) -> Vec<Kind> {
        self.0.iter().flat_map(|&(kind, weight)| std::iter::repeat_n(kind, weight.into())).collect()
    }

    /// The operations whose weight is not zero.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.0.iter().filter(|(_, weight)| *weight > 0).map(|(kind, _)| *kind)
    }
}

impl FromStr for Shares {
    type Err = String;

    fn from_str(text: &str) -> Result<Shares, String> {
        let one = |item: &str| {
            let (name, weight) = item.split_once('=').unwrap_or((item, "1"));
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                let known = Kind::ALL.map(Kind::name).join(", ");
                format!("there is no operation {name:?}; known are {known}")
            })?;
            match weight.parse() {
                Ok(weight @ 0..=10_000) => Ok((kind, weight)),
                _ => Err(format!("the weight of {name} must be a number from 0 to 10000, not {weight:?}")),
            }
        };
        let shares = Shares(text.split(',').map(one).collect::<Result<_, String>>()?);
        if shares.kinds().next().is_none() {
            return Err("all weights are 0".into());
        }
        Ok(shares)
    }
}

/// The paths of a mix.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) root: String,
}

impl Places {
    pub(crate) fn keys_parent(&self) -> String {
        format!("{}/keys", self.root)
    }
    /// The key of `numbers[0]`.
    pub(crate) fn key(&self) -> Path {
        Path::numbered(format!("{}/keys/k", self.root), 0, 8)
    }
    /// A parent with always the same few children, for the operation `children`.
    pub(crate) fn family(&self) -> String {
        format!("{}/family", self.root)
    }
    pub(crate) fn family_member(&self) -> Path {
        Path::numbered(format!("{}/family/m", self.root), 0, 2)
    }
    pub(crate) fn fresh_parent(&self) -> String {
        format!("{}/fresh", self.root)
    }
    /// A znode that a session (`numbers[0]`) creates as its `numbers[1]`-th.
    pub(crate) fn fresh(&self) -> Path {
        Path::numbered(format!("{}/fresh/s", self.root), 0, 5).then("-", 1, 10)
    }

    /// The request of each kind, in the order of [`Kind::ALL`].
    pub(crate) fn templates(&self, value: &[u8]) -> [Template; 8] {
        let key = self.key();
        Kind::ALL.map(|kind| match kind {
            Kind::Get => template::read(Op::GetData, &key, false),
            Kind::Set => template::set_data(&key, value),
            Kind::Exists => template::read(Op::Exists, &key, false),
            Kind::Create => template::create(&self.fresh(), value),
            Kind::Delete => template::delete(&self.fresh()),
            Kind::Children => template::read(Op::GetChildren, &Path::fixed(self.family()), false),
            Kind::Multi => Build::new(Op::Multi)
                .multi_op(Op::Check)
                .path(&key)
                .int(-1)
                .multi_op(Op::SetData)
                .path(&key)
                .data(value)
                .int(-1)
                .multi_end(),
            Kind::Sync => Build::new(Op::Sync).path(&key).end(),
        })
    }
}

/// The error in a multi's reply. The header has 0 even if the multi failed. Then each result has a code: the failed
/// operation its error, the others RuntimeInconsistency.
pub(crate) fn multi_error(body: &[u8]) -> i32 {
    let mut reader = Reader::new(body);
    let mut found = 0;
    while let Ok(MultiHeader { code: op::ERROR, done: false, error }) = MultiHeader::read(&mut reader) {
        if found == 0 || found == ErrorCode::RuntimeInconsistency.code() {
            found = error;
        }
        if reader.i32().is_err() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::reply::{Body, OpResult};

    #[test]
    fn a_failed_multi_is_seen_in_its_body() {
        let error_of = |results| {
            let mut body = Vec::new();
            Body::Multi(results).write(&mut body);
            multi_error(&body)
        };
        assert_eq!(error_of(vec![OpResult::Error(0), OpResult::Error(-101), OpResult::Error(-2)]), -101);
        assert_eq!(error_of(vec![OpResult::Check, OpResult::Delete]), 0);
        assert_eq!(error_of(vec![]), 0);
    }

    #[test]
    fn weights_of_operations_are_read() {
        let shares: Shares = "get=3,set".parse().unwrap();
        assert_eq!(shares.urn(), [Kind::Get, Kind::Get, Kind::Get, Kind::Set]);
        for wrong in ["", "get=x", "got=1", "get=0"] {
            assert!(wrong.parse::<Shares>().is_err(), "{wrong:?}");
        }
    }
}
