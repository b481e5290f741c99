//! Fuzzes the splitting of bytes into frames: the frames must not depend on how the bytes arrive.

use ostler_proto::frame::{Split, split};

const LIMIT: usize = 1 << 20;

/// Takes the bytes whole, and in two pieces. The first byte gives the size of the first piece.
pub fn check(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let whole = frames(&[bytes]);
    let (head, tail) = bytes.split_at(usize::from(*cut).min(bytes.len()));
    assert_eq!(whole, frames(&[head, tail]));
}

#[derive(Debug, PartialEq, Eq)]
struct Taken {
    frames: Vec<Vec<u8>>,
    rest: Vec<u8>,
    bad_length: Option<i32>,
}

/// Splits bytes as a connection does: an incomplete frame waits for more.
fn frames(pieces: &[&[u8]]) -> Taken {
    let mut taken = Taken { frames: Vec::new(), rest: Vec::new(), bad_length: None };
    for piece in pieces {
        taken.rest.extend_from_slice(piece);
        while taken.bad_length.is_none() {
            let used = match split(&taken.rest, LIMIT) {
                Split::Frame { payload, used } => {
                    assert_eq!(used, 4 + payload.len());
                    assert_eq!(payload, &taken.rest[4..used]);
                    taken.frames.push(payload.to_vec());
                    used
                }
                Split::Incomplete { wanted } => {
                    assert!(wanted > taken.rest.len() && wanted <= LIMIT + 4);
                    break;
                }
                Split::BadLength(length) => {
                    assert!(usize::try_from(length).is_ok_and(|length| length > LIMIT) || length < 0);
                    taken.bad_length = Some(length);
                    break;
                }
            };
            taken.rest.drain(..used);
        }
    }
    taken
}
