//! A queue znode's data: one or more items, as Curator's `ItemSerializer` writes them.
//!
//! ```text
//! data = version item* end      version = 00 01 00 01
//! item = 01 length bytes        length = 4 bytes, big-endian
//! end  = 02
//! ```

use bytes::Bytes;

const VERSION: u32 = 0x0001_0001;
const ITEM: u8 = 1;
const END: u8 = 2;

/// Why a znode's data is not a queue item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ItemError {
    /// The data begins with an unknown version.
    #[error("unknown version {0:#x}")]
    Version(u32),
    /// The data has an unknown code where an item or the end must be.
    #[error("code {0} where an item or the end must be")]
    Code(u8),
    /// The data ends too early.
    #[error("the data ends too early")]
    Short,
}

pub(crate) fn encode<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut data = VERSION.to_be_bytes().to_vec();
    for item in items {
        data.push(ITEM);
        // Longer ones are refused by the client: they are larger than a packet.
        data.extend(u32::try_from(item.len()).unwrap_or(u32::MAX).to_be_bytes());
        data.extend(item);
    }
    data.push(END);
    data
}

pub(crate) fn decode(data: &Bytes) -> Result<Vec<Bytes>, ItemError> {
    let version = u32::from_be_bytes(array(data, 0)?);
    if version != VERSION {
        return Err(ItemError::Version(version));
    }
    let (mut items, mut at) = (Vec::new(), 4);
    loop {
        match *data.get(at).ok_or(ItemError::Short)? {
            END => return Ok(items),
            ITEM => {
                let length = u32::from_be_bytes(array(data, at + 1)?) as usize;
                let (from, to) = (at + 5, (at + 5).checked_add(length).ok_or(ItemError::Short)?);
                if to > data.len() {
                    return Err(ItemError::Short);
                }
                items.push(data.slice(from..to));
                at = to;
            }
            code => return Err(ItemError::Code(code)),
        }
    }
}

fn array(data: &[u8], at: usize) -> Result<[u8; 4], ItemError> {
    data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).ok_or(ItemError::Short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_as_curator_writes_them() {
        let data = encode([&b"ab"[..], b""]);
        assert_eq!(data, [0, 1, 0, 1, 1, 0, 0, 0, 2, b'a', b'b', 1, 0, 0, 0, 0, 2]);
        let data = Bytes::from(data);
        assert_eq!(decode(&data).unwrap(), [&b"ab"[..], b""]);
        for cut in 0..data.len() {
            assert_eq!(decode(&data.slice(..cut)), Err(ItemError::Short), "{cut}");
        }
        assert_eq!(decode(&Bytes::from_static(&[0, 1, 0, 2, 2])), Err(ItemError::Version(0x10002)));
        assert_eq!(decode(&Bytes::from_static(&[0, 1, 0, 1, 3])), Err(ItemError::Code(3)));
        let huge = Bytes::from_static(&[0, 1, 0, 1, 1, 255, 255, 255, 255, 2]);
        assert_eq!(decode(&huge), Err(ItemError::Short));
    }
}
