//! JSON as Java's AdminServer lays it out. Scripts read it line by line, so each member has a line of its own.

use serde_json::{
    Map, Value,
    ser::{Formatter, Serializer},
};
use std::io::{self, Write};

/// An object with the members in the order in which they were added.
pub(crate) type Object = Map<String, Value>;

/// Two spaces for each level of objects, ` : ` after a key, arrays on the line.
#[derive(Debug, Default)]
struct JavaLayout {
    level: usize,
    has_members: bool,
}

impl JavaLayout {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.level).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for JavaLayout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b" " } else { b", " })
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" ]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.level += 1;
        self.has_members = false;
        out.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_members = true;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.level -= 1;
        if self.has_members {
            self.line(out)?;
        } else {
            out.write_all(b" ")?;
        }
        // The object that this one is in has a member now.
        self.has_members = true;
        out.write_all(b"}")
    }
}

/// The text of an answer, without an end of line.
pub(crate) fn text(body: &Object) -> Vec<u8> {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, JavaLayout::default());
    serde::Serialize::serialize(body, &mut serializer).expect("a value of JSON is written into memory");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_layout_is_that_of_java() {
        let Value::Object(body) = json!({
            "connections": [{"a": 1, "b": []}, {"a": 2, "b": ["x", "y"]}],
            "none": {},
            "inside": {"one": -1},
            "command": "c",
            "error": null,
        }) else {
            unreachable!()
        };
        let expected = r#"{
  "connections" : [ {
    "a" : 1,
    "b" : [ ]
  }, {
    "a" : 2,
    "b" : [ "x", "y" ]
  } ],
  "none" : { },
  "inside" : {
    "one" : -1
  },
  "command" : "c",
  "error" : null
}"#;
        assert_eq!(String::from_utf8(text(&body)).unwrap(), expected);
    }
}
