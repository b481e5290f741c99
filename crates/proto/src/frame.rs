//! Splits a client's stream into frames: a 32-bit length, then that number of bytes.

/// The result of looking for a frame at the front of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Split<'a> {
    /// The buffer starts with a whole frame.
    Frame {
        /// The bytes after the length prefix.
        payload: &'a [u8],
        /// The size of the frame with its length prefix: the caller drops that number of bytes after use.
        used: usize,
    },
    /// The frame is not complete yet.
    Incomplete {
        /// The size of the whole frame with its length prefix; 4 as long as the prefix is not complete.
        wanted: usize,
    },
    /// The length is below zero or above the limit. The connection must be closed.
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
    fn a_buffer_is_split_or_refused_by_the_length_of_its_frame() {
        let bytes = [0, 0, 0, 2, 7, 8, 0, 0];
        assert_eq!(split(&bytes[..3], 10), Split::Incomplete { wanted: 4 });
        assert_eq!(split(&bytes[..5], 10), Split::Incomplete { wanted: 6 });
        assert_eq!(split(&bytes, 10), Split::Frame { payload: &[7, 8], used: 6 });
        assert_eq!(split(&bytes, 1), Split::BadLength(2));
        assert_eq!(split(&[0xff; 4], 10), Split::BadLength(-1));
    }
}
