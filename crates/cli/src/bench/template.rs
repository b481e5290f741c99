//! Requests encoded once and sent many times: only the xid and the digits in paths change.

use ostler_proto::{
    acl::{Acl, Perms, write_acls},
    id::Xid,
    jute::Writer,
    op::Op,
    reply::{begin_frame, end_frame},
    request::{MultiHeader, RequestHeader},
};

/// The position of the xid in a frame: after the length.
const XID_AT: usize = 4;

/// A piece of a path.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    /// A decimal number of fixed width, filled in at each use from `numbers[slot]`.
    Number {
        slot: usize,
        width: usize,
    },
}

/// A path with places for numbers.
#[derive(Debug, Clone)]
pub(crate) struct Path(Vec<Part>);

impl Path {
    /// `text`, then a number of `width` digits.
    pub(crate) fn numbered(text: impl Into<String>, slot: usize, width: usize) -> Path {
        Path(vec![Part::Text(text.into()), Part::Number { slot, width }])
    }

    /// A path without numbers.
    pub(crate) fn fixed(text: impl Into<String>) -> Path {
        Path(vec![Part::Text(text.into())])
    }

    /// Appends `text` and a number.
    pub(crate) fn then(mut self, text: impl Into<String>, slot: usize, width: usize) -> Path {
        self.0.extend([Part::Text(text.into()), Part::Number { slot, width }]);
        self
    }
}

/// An encoded request with places for numbers.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    holes: Vec<Hole>,
}

#[derive(Debug, Clone, Copy)]
struct Hole {
    at: usize,
    slot: usize,
    width: usize,
}

impl Template {
    /// Appends the request with these numbers.
    pub(crate) fn append(&self, out: &mut Vec<u8>, xid: i32, numbers: &[u32]) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let frame = &mut out[start..];
        frame[XID_AT..XID_AT + 4].copy_from_slice(&xid.to_be_bytes());
        for hole in &self.holes {
            write_digits(&mut frame[hole.at..hole.at + hole.width], numbers[hole.slot]);
        }
    }

    /// The request with no numbers to fill in.
    pub(crate) fn frame(&self, xid: i32) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len());
        self.append(&mut out, xid, &[]);
        out
    }
}

fn write_digits(field: &mut [u8], mut number: u32) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Writes a request field by field.
pub(crate) struct Build {
    bytes: Vec<u8>,
    start: usize,
    holes: Vec<Hole>,
}

impl Build {
    /// Begins a request.
    pub(crate) fn new(op: Op) -> Build {
        let mut bytes = Vec::new();
        let start = begin_frame(&mut bytes);
        RequestHeader { xid: Xid(0), code: op.code() }.write(&mut bytes);
        Build { bytes, start, holes: Vec::new() }
    }

    pub(crate) fn path(mut self, path: &Path) -> Build {
        let mut text = String::new();
        for part in &path.0 {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Number { slot, width } => {
                    self.holes.push(Hole {
                        at: self.bytes.len() + 4 + text.len(),
                        slot: *slot,
                        width: *width,
                    });
                    text.extend(std::iter::repeat_n('0', *width));
                }
            }
        }
        self.bytes.string(&text);
        self
    }

    pub(crate) fn data(mut self, data: &[u8]) -> Build {
        self.bytes.buffer(Some(data));
        self
    }

    pub(crate) fn int(mut self, value: i32) -> Build {
        self.bytes.i32(value);
        self
    }

    pub(crate) fn flag(mut self, value: bool) -> Build {
        self.bytes.bool(value);
        self
    }

    fn open_acl(mut self) -> Build {
        write_acls(&mut self.bytes, &[Acl::world(Perms::ALL)]);
        self
    }

    fn multi_header(mut self, header: MultiHeader) -> Build {
        header.write(&mut self.bytes);
        self
    }

    /// The body of a create of a persistent znode that everybody may use.
    pub(crate) fn create_body(self, path: &Path, data: &[u8]) -> Build {
        self.path(path).data(data).open_acl().int(0)
    }

    /// An operation of a multi; its body follows.
    pub(crate) fn multi_op(self, op: Op) -> Build {
        self.multi_header(MultiHeader { code: op.code(), done: false, error: -1 })
    }

    /// Ends a multi.
    pub(crate) fn multi_end(self) -> Template {
        self.multi_header(MultiHeader::END).end()
    }

    pub(crate) fn end(mut self) -> Template {
        end_frame(&mut self.bytes, self.start);
        Template { bytes: self.bytes, holes: self.holes }
    }
}

pub(crate) fn create(path: &Path, data: &[u8]) -> Template {
    Build::new(Op::Create).create_body(path, data).end()
}

pub(crate) fn delete(path: &Path) -> Template {
    Build::new(Op::Delete).path(path).int(-1).end()
}

pub(crate) fn set_data(path: &Path, data: &[u8]) -> Template {
    Build::new(Op::SetData).path(path).data(data).int(-1).end()
}

/// getData, exists or getChildren.
pub(crate) fn read(op: Op, path: &Path, watch: bool) -> Template {
    Build::new(op).path(path).flag(watch).end()
}

/// A ping. Its xid is fixed.
pub(crate) fn ping() -> Vec<u8> {
    Build::new(Op::Ping).end().frame(Xid::PING.0)
}

pub(crate) fn close_session(xid: i32) -> Vec<u8> {
    Build::new(Op::CloseSession).end().frame(xid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::request::Request;

    fn decode(frame: &[u8]) -> (i32, Request<'_>) {
        let (header, body) = RequestHeader::read(&frame[4..]).unwrap();
        (header.xid.0, Request::read(header.code, body))
    }

    #[test]
    fn holes_are_filled_at_each_use() {
        let template = create(&Path::numbered("/fill/", 0, 4).then("/", 1, 6), b"xyz");
        let mut out = Vec::new();
        template.append(&mut out, 9, &[12, 34567]);
        let first = out.len();
        template.append(&mut out, 10, &[9999, 0]);
        let (xid, Request::Create(request)) = decode(&out[..first]) else { panic!("not a create") };
        assert_eq!((xid, &*request.path, request.data), (9, "/fill/0012/034567", Some(&b"xyz"[..])));
        let (xid, Request::Create(request)) = decode(&out[first..]) else { panic!("not a create") };
        assert_eq!((xid, &*request.path), (10, "/fill/9999/000000"));
    }

    #[test]
    fn a_multi_is_encoded_completely() {
        let path = Path::numbered("/k", 0, 2);
        let multi = Build::new(Op::Multi)
            .multi_op(Op::Check)
            .path(&path)
            .int(-1)
            .multi_op(Op::SetData)
            .path(&path)
            .data(b"v")
            .int(-1)
            .multi_end();
        let mut out = Vec::new();
        multi.append(&mut out, 1, &[42]);
        let (_, Request::Multi(ops)) = decode(&out) else { panic!("not a multi") };
        assert_eq!(ops.len(), 2);
        assert!(format!("{ops:?}").matches("/k42").count() == 2);
    }
}
