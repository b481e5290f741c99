//! Bodies of replies, as a client reads them.

use crate::{
    jute::{JuteError, Reader, Result},
    op::{self, Op},
    request::MultiHeader,
    stat::Stat,
};
use alloc::{borrow::Cow, string::String, vec::Vec};

/// The result of one operation of a multi or multiRead, as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpOutcome<'a> {
    /// The path of the new znode, and its Stat if the server sends one.
    Create(Cow<'a, str>, Option<Stat>),
    /// The znode is deleted.
    Delete,
    /// The data is set; the new Stat.
    SetData(Stat),
    /// The version is the expected one.
    Check,
    /// The data, `None` for null, and the Stat.
    GetData(Option<&'a [u8]>, Stat),
    /// The names of the children.
    GetChildren(Vec<String>),
    /// The operation was not done: its error code, or 0 if only a later operation failed.
    Error(i32),
}

/// Reads a list of names or paths. A null list reads as empty.
pub fn read_strings(r: &mut Reader<'_>) -> Result<Vec<String>> {
    let names = r.vector(|r| Ok(r.stored_string()?.ok_or(JuteError::Null)?.into_owned()))?;
    Ok(names.unwrap_or_default())
}

/// Reads the body of whoAmI: scheme and user of each identity.
pub fn read_identities(r: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    let text = |r: &mut Reader<'_>| Ok(r.stored_string()?.unwrap_or_default().into_owned());
    Ok(r.vector(|r| Ok((text(r)?, text(r)?)))?.unwrap_or_default())
}

/// Reads the results of a multi or multiRead, in the order of its operations.
pub fn read_outcomes<'a>(r: &mut Reader<'a>) -> Result<Vec<OpOutcome<'a>>> {
    let mut outcomes = Vec::new();
    loop {
        let header = MultiHeader::read(r)?;
        if header.done {
            return Ok(outcomes);
        }
        let unknown = JuteError::UnknownType(header.code);
        let path = |r: &mut Reader<'a>| r.stored_string()?.ok_or(JuteError::Null);
        outcomes.push(match Op::from_code(header.code) {
            Some(Op::Create) => OpOutcome::Create(path(r)?, None),
            Some(Op::Create2 | Op::CreateContainer | Op::CreateTtl) => {
                OpOutcome::Create(path(r)?, Some(Stat::read(r)?))
            }
            Some(Op::Delete) => OpOutcome::Delete,
            Some(Op::SetData) => OpOutcome::SetData(Stat::read(r)?),
            Some(Op::Check) => OpOutcome::Check,
            Some(Op::GetData) => OpOutcome::GetData(r.buffer()?, Stat::read(r)?),
            Some(Op::GetChildren) => OpOutcome::GetChildren(read_strings(r)?),
            None if header.code == op::ERROR => OpOutcome::Error(r.i32()?),
            _ => return Err(unknown),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        reply::{Body, OpResult},
        strings::SharedStrings,
    };
    use alloc::vec;

    #[test]
    fn a_client_reads_every_result_of_a_multi_that_a_server_writes() {
        let stat = Stat { version: 4, ..Stat::default() };
        let body = Body::Multi(vec![
            OpResult::Create("/a".into()),
            OpResult::Create2("/b".into(), stat),
            OpResult::Delete,
            OpResult::SetData(stat),
            OpResult::Check,
            OpResult::GetData(Some(b"x"[..].into()), stat),
            OpResult::GetData(None, stat),
            OpResult::GetChildren(SharedStrings::encode(["n"].into_iter())),
            OpResult::Error(-103),
        ]);
        let mut out = Vec::new();
        body.write(&mut out);
        let mut r = Reader::new(&out);
        let expected = vec![
            OpOutcome::Create("/a".into(), None),
            OpOutcome::Create("/b".into(), Some(stat)),
            OpOutcome::Delete,
            OpOutcome::SetData(stat),
            OpOutcome::Check,
            OpOutcome::GetData(Some(b"x"), stat),
            OpOutcome::GetData(None, stat),
            OpOutcome::GetChildren(vec!["n".into()]),
            OpOutcome::Error(-103),
        ];
        assert_eq!(read_outcomes(&mut r), Ok(expected));
        assert!(r.rest().is_empty());
        assert!(read_outcomes(&mut Reader::new(&out[..out.len() - 9])).is_err());
    }
}
