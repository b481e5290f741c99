//! Compressed data of znodes, as Curator's `GzipCompressionProvider` writes and reads it.
//!
//! Needs the feature `gzip`. Whoever reads a znode must know that its data is compressed: nothing in the znode says so.
//!
//! ```
//! # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
//! # let server = server::TestServer::start();
//! # let client = server.client().await;
//! let text = "a long text, ".repeat(1000);
//! client.create("/text", &text).compressed().await?;
//! let (data, stat) = client.get_data("/text").decompressed().await?;
//! assert!(data == text && stat.data_length < 200);
//! client.set_data("/text", "another one").compressed().await?;
//! # Ok(()) }
//! ```

use crate::{
    error::{Error, Result},
    operation::Operation,
    reads::Read,
    watch::Watch,
};
use bytes::Bytes;
use flate2::{Compression, GzBuilder, bufread::GzDecoder};
use ostler_proto::stat::Stat;
use std::{
    future::IntoFuture,
    io::{ErrorKind, Read as _, Write},
};

/// The largest size of decompressed data by default, in bytes.
pub const DECOMPRESSED_MAX: usize = 16 << 20;

/// The first bytes of data in gzip's format, whose method is deflate.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// Why data cannot be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecompressError {
    /// The data does not begin as gzip does. It may have been written without compression.
    #[error("it is not in gzip's format; perhaps it was written without compression")]
    NotGzip,
    /// The data ends too early.
    #[error("it ends too early")]
    Truncated,
    /// The compressed part is damaged, or the checksum or size at the end is not that of the data.
    #[error("it is damaged")]
    Corrupt,
    /// Something follows the compressed data.
    #[error("something follows the compressed data")]
    TrailingData,
    /// The decompressed data would be larger than the limit.
    #[error("it would have more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// Compresses data.
///
/// ```
/// use ostler_client::gzip;
///
/// let compressed = gzip::compress(b"data");
/// assert_eq!(gzip::decompress(&compressed, 1024).as_deref(), Ok(&b"data"[..]));
/// ```
pub fn compress(data: &[u8]) -> Vec<u8> {
    // Java writes 255 (unknown) for the operating system since 16.
    let mut encoder = GzBuilder::new().operating_system(255).write(Vec::new(), Compression::default());
    // A write to memory does not fail.
    let _ = encoder.write_all(data);
    encoder.finish().unwrap_or_default()
}

/// Decompresses data, up to `limit` bytes. Empty data is taken for empty: compressed data never is.
///
/// # Errors
/// [`DecompressError`].
pub fn decompress(data: &[u8], limit: usize) -> std::result::Result<Bytes, DecompressError> {
    if data.is_empty() {
        return Ok(Bytes::new());
    }
    let (mut decoder, mut out) = (GzDecoder::new(data), Vec::new());
    // One byte more than the limit shows that there is more.
    let room = (limit as u64).saturating_add(1);
    let read = decoder.by_ref().take(room).read_to_end(&mut out);
    if out.len() > limit {
        return Err(DecompressError::TooLarge { limit });
    }
    match read {
        Ok(_) if decoder.into_inner().is_empty() => Ok(out.into()),
        Ok(_) => Err(DecompressError::TrailingData),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(DecompressError::Truncated),
        Err(_) if !data.starts_with(&MAGIC) => Err(DecompressError::NotGzip),
        Err(_) => Err(DecompressError::Corrupt),
    }
}

/// A read of compressed data: await it, or call [`watch`](ReadDecompressed::watch) to set a watch as well.
#[derive(Debug)]
#[must_use = "no request is sent until it is awaited"]
pub struct ReadDecompressed<'a> {
    read: Read<'a, (Bytes, Stat)>,
    limit: usize,
}

impl<'a> Read<'a, (Bytes, Stat)> {
    /// Decompresses the data, up to [`DECOMPRESSED_MAX`] bytes. Curator's `decompressed`. Needs the feature `gzip`.
    ///
    /// # Errors
    /// [`Error::Decompress`].
    pub fn decompressed(self) -> ReadDecompressed<'a> {
        ReadDecompressed { read: self, limit: DECOMPRESSED_MAX }
    }
}

impl ReadDecompressed<'_> {
    /// The largest size of the decompressed data, in bytes.
    pub fn max_size(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Hands the read to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<(Bytes, Stat)> {
        let (path, limit) = (Box::from(self.read.path()), self.limit);
        let read = self.read.send();
        Operation::new(async move { unpack(read.await?, path, limit) })
    }

    /// Reads, and sets a watch for the next change. If the data cannot be decompressed, there is no watch.
    pub fn watch(self) -> Operation<((Bytes, Stat), Watch)> {
        let (path, limit) = (Box::from(self.read.path()), self.limit);
        let read = self.read.watch();
        Operation::new(async move {
            let (found, watch) = read.await?;
            Ok((unpack(found, path, limit)?, watch))
        })
    }
}

impl IntoFuture for ReadDecompressed<'_> {
    type Output = Result<(Bytes, Stat)>;
    type IntoFuture = Operation<(Bytes, Stat)>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

fn unpack((data, stat): (Bytes, Stat), path: Box<str>, limit: usize) -> Result<(Bytes, Stat)> {
    match decompress(&data, limit) {
        Ok(data) => Ok((data, stat)),
        Err(cause) => Err(Error::Decompress { path, cause }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Crc;
    use proptest::prelude::*;

    /// The bits of the header's flags.
    const HEADER_CRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;

    /// No data, as in Curator 5.9 on Java 17.
    const EMPTY: [u8; 20] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// A text, as `GzipCompressionProvider` of Curator 5.9 has compressed it.
    const WORDS: [u8; 29] = [
        31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 203, 47, 46, 201, 73, 45, 82, 200, 71, 166, 0, 220, 92, 199, 15,
        20, 0, 0, 0,
    ];

    proptest! {
        #[test]
        fn data_is_the_same_after_both(data in proptest::collection::vec(any::<u8>(), 0..5000), times in 1_usize..40) {
            let data = data.repeat(times);
            prop_assert_eq!(decompress(&compress(&data), data.len()), Ok(Bytes::from(data)));
        }

        #[test]
        fn damaged_data_gives_an_error_or_the_same(
            data in proptest::collection::vec(any::<u8>(), 1..200),
            (at, bits) in (any::<prop::sample::Index>(), 1_u8..),
        ) {
            let mut damaged = compress(&data);
            let at = at.index(damaged.len());
            damaged[at] ^= bits;
            if let Ok(read) = decompress(&damaged, 4096) {
                prop_assert_eq!(read, data);
            }
        }

        #[test]
        fn any_bytes_give_data_within_the_limit_or_an_error(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            is_gzip in any::<bool>(),
            limit in 0_usize..2000,
        ) {
            if is_gzip {
                bytes.splice(..bytes.len().min(3), [31, 139, 8]);
            }
            if let Ok(data) = decompress(&bytes, limit) {
                prop_assert!(data.len() <= limit);
            }
        }
    }

    #[test]
    fn every_truncation_and_anything_that_follows_is_an_error() {
        let whole = compress(b"some data, some data, some data");
        for end in 1..whole.len() {
            let cut = decompress(&whole[..end], 100);
            assert!(
                matches!(cut, Err(DecompressError::Truncated | DecompressError::NotGzip)),
                "{end}: {cut:?}"
            );
        }
        assert_eq!(decompress(&[&whole[..], &whole[..]].concat(), 100), Err(DecompressError::TrailingData));
        assert_eq!(decompress(b"plain text", 100), Err(DecompressError::NotGzip));
    }

    #[test]
    fn a_small_znode_that_would_become_huge_is_an_error() {
        let bomb = compress(&vec![0; 4 << 20]);
        assert!(bomb.len() < 10_000);
        assert_eq!(decompress(&bomb, 1 << 20), Err(DecompressError::TooLarge { limit: 1 << 20 }));
        assert_eq!(decompress(&bomb, 4 << 20).map(|data| data.len()), Ok(4 << 20));
    }

    #[test]
    fn data_is_read_that_curator_has_compressed() {
        let text = "ostler ostler ostler";
        assert_eq!(decompress(&WORDS, text.len()).as_deref(), Ok(text.as_bytes()));
        assert_eq!(
            decompress(&WORDS, text.len() - 1),
            Err(DecompressError::TooLarge { limit: text.len() - 1 })
        );
    }

    #[test]
    fn empty_data_is_as_curator_writes_it() {
        assert_eq!(compress(b""), EMPTY);
        assert_eq!(decompress(&EMPTY, 0), Ok(Bytes::new()));
        assert_eq!(decompress(b"", 0), Ok(Bytes::new()));
    }

    #[test]
    fn headers_with_all_fields_are_read() {
        let plain = compress(b"x");
        let mut header = plain[..10].to_vec();
        header[3] = HEADER_CRC | EXTRA | NAME | COMMENT;
        header.extend(b"\x03\x00abcname\0comment\0");
        let mut crc = Crc::new();
        crc.update(&header);
        let sum = (crc.sum() as u16).to_le_bytes();
        let with = |sum: [u8; 2]| [&header[..], &sum, &plain[10..]].concat();
        assert_eq!(decompress(&with(sum), 1).as_deref(), Ok(&b"x"[..]));
        assert_eq!(decompress(&with([sum[0] ^ 1, sum[1]]), 1), Err(DecompressError::Corrupt));
    }
}
