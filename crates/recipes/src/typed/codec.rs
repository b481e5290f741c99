//! How values become a znode's data, and the reverse.

use ostler_client::Bytes;
use serde::{Serialize, de::DeserializeOwned};

/// Why a value cannot be written, or data cannot be read as a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct CodecError {
    problem: Box<str>,
}

impl CodecError {
    /// An error with this reason.
    pub fn new(problem: impl std::fmt::Display) -> CodecError {
        CodecError { problem: problem.to_string().into() }
    }
}

/// A format of values. Curator's `ModelSerializer`.
pub trait Codec<T>: Send + Sync + 'static {
    /// The data of a value.
    ///
    /// # Errors
    /// The format cannot represent the value.
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError>;

    /// The value of data. The data may be anything that a client has written.
    ///
    /// # Errors
    /// The data is not a value in this format.
    fn decode(&self, data: &Bytes) -> Result<T, CodecError>;
}

/// JSON, as Curator's `JacksonModelSerializer` writes it for the same fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        serde_json::to_vec(value).map_err(CodecError::new)
    }

    fn decode(&self, data: &Bytes) -> Result<T, CodecError> {
        serde_json::from_slice(data).map_err(CodecError::new)
    }
}

/// Another format, compressed as Curator compresses data. Needs the feature `gzip`.
#[cfg(feature = "gzip")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed<C = Json> {
    codec: C,
    limit: usize,
}

#[cfg(feature = "gzip")]
impl<C> Compressed<C> {
    /// Compresses what `codec` writes. Decompressed data may have up to
    /// [`DECOMPRESSED_MAX`](ostler_client::gzip::DECOMPRESSED_MAX) bytes.
    pub fn new(codec: C) -> Compressed<C> {
        Compressed { codec, limit: ostler_client::gzip::DECOMPRESSED_MAX }
    }

    /// The largest size of the decompressed data, in bytes.
    #[must_use]
    pub fn max_size(self, bytes: usize) -> Compressed<C> {
        Compressed { limit: bytes, ..self }
    }
}

#[cfg(feature = "gzip")]
impl<T, C: Codec<T>> Codec<T> for Compressed<C> {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        Ok(ostler_client::gzip::compress(&self.codec.encode(value)?))
    }

    fn decode(&self, data: &Bytes) -> Result<T, CodecError> {
        let data = ostler_client::gzip::decompress(data, self.limit).map_err(CodecError::new)?;
        self.codec.decode(&data)
    }
}
