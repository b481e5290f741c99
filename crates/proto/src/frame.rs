//! Frames: a 32-bit length, then that many bytes. "Not complete yet" is a normal answer.

/// What the bytes at the front of a buffer are.
#[derive(Debug, PartialEq, Eq)]
pub enum Split<'a> {
    /// A whole frame's payload; it and its length take `used` bytes.
    Frame {
        /// The bytes after the length.
        payload: &'a [u8],
        /// Bytes to drop from the buffer once the frame is dealt with.
        used: usize,
    },
    /// More bytes are needed; the whole frame will take `wanted` bytes, where its length is known.
    Incomplete {
        /// Length prefix included.
        wanted: usize,
    },
    /// A length below zero or above the limit: the connection is to be closed.
    BadLength(i32),
}

/// Looks at the front of `bytes` for a frame of at most `limit` bytes.
pub fn split(bytes: &[u8], limit: usize) -> Split<'_> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<4>() else {
        return Split::Incomplete { wanted: 4 };
    };
    let length = i32::from_be_bytes(*prefix);
    let Ok(size) = usize::try_from(length) else { return Split::BadLength(length) };
    if size > limit {
        return Split::BadLength(length);
    }
    match rest.get(..size) {
        Some(payload) => Split::Frame { payload, used: 4 + size },
        None => Split::Incomplete { wanted: 4 + size },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_split_at_every_length() {
        let bytes = [0, 0, 0, 2, 7, 8, 0, 0];
        assert_eq!(split(&bytes[..3], 10), Split::Incomplete { wanted: 4 });
        assert_eq!(split(&bytes[..5], 10), Split::Incomplete { wanted: 6 });
        assert_eq!(split(&bytes, 10), Split::Frame { payload: &[7, 8], used: 6 });
        assert_eq!(split(&bytes, 1), Split::BadLength(2));
        assert_eq!(split(&[0xff; 4], 10), Split::BadLength(-1));
    }
}
