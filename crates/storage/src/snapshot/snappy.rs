//! Writes and reads the stream format of the Java Snappy library: a header, then blocks with their length in front.
//!
//! ```text
//! stream = 0x82 "SNAPPY" 0x00 version:i32=1 compatible:i32=1 (length:i32 block)*
//! ```
//!
//! The blocks are plain Snappy. The format is not Snappy's own framing format.

use snap::raw::{Decoder, Encoder, decompress_len};
use std::io::{self, Read, Write};

/// The first bytes of every stream.
pub(super) const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// The size of the blocks that are written, before compression: the Java library's default.
const BLOCK: usize = 32 << 10;
/// The largest block that is read. A larger one is refused before memory is allocated.
const BLOCK_LIMIT: usize = 16 << 20;

/// Compresses to a stream.
pub(super) struct SnappyWriter<W> {
    out: W,
    block: Vec<u8>,
    compressed: Vec<u8>,
    encoder: Encoder,
}

impl<W: Write> SnappyWriter<W> {
    /// Starts a stream.
    pub(super) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[MAGIC, VERSIONS].concat())?;
        let compressed = vec![0; snap::raw::max_compress_len(BLOCK)];
        Ok(SnappyWriter { out, block: Vec::with_capacity(BLOCK), compressed, encoder: Encoder::new() })
    }

    /// Writes the last block and returns the stream.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        Ok(self.out)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let size = self.encoder.compress(&self.block, &mut self.compressed).map_err(io::Error::other)?;
        let length = u32::try_from(size).expect("a compressed block is not much longer than the block");
        self.out.write_all(&length.to_be_bytes())?;
        self.out.write_all(&self.compressed[..size])?;
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for SnappyWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            self.write_block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Decompresses a stream.
pub(super) struct SnappyReader<R> {
    input: R,
    started: bool,
    compressed: Vec<u8>,
    block: Vec<u8>,
    at: usize,
    decoder: Decoder,
}

impl<R: Read> SnappyReader<R> {
    /// A reader from the start of a stream.
    pub(super) fn new(input: R) -> Self {
        SnappyReader {
            input,
            started: false,
            compressed: Vec::new(),
            block: Vec::new(),
            at: 0,
            decoder: Decoder::new(),
        }
    }

    /// Reads the next block. Returns false at the end of the stream.
    fn next_block(&mut self) -> io::Result<bool> {
        if !self.started {
            let mut header = [0; 16];
            self.input.read_exact(&mut header)?;
            if header[..8] != MAGIC {
                return Err(malformed("no Snappy stream"));
            }
            self.started = true;
        }
        let mut prefix = [0; 4];
        if self.input.read(&mut prefix[..1])? == 0 {
            return Ok(false);
        }
        self.input.read_exact(&mut prefix[1..])?;
        let length = u32::from_be_bytes(prefix) as usize;
        if length > BLOCK_LIMIT {
            return Err(malformed("a Snappy block is too long"));
        }
        self.compressed.resize(length, 0);
        self.input.read_exact(&mut self.compressed)?;
        let size = decompress_len(&self.compressed).map_err(malformed)?;
        if size > BLOCK_LIMIT {
            return Err(malformed("a Snappy block is too long"));
        }
        self.block.resize(size, 0);
        self.decoder.decompress(&self.compressed, &mut self.block).map_err(malformed)?;
        self.at = 0;
        Ok(true)
    }
}

fn malformed(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl<R: Read> Read for SnappyReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let size = into.len().min(self.block.len() - self.at);
        into[..size].copy_from_slice(&self.block[self.at..self.at + size]);
        self.at += size;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_as_it_was_written_and_an_incomplete_one_is_an_error() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(|n| n.wrapping_mul(n).to_be_bytes()).collect();
        let mut writer = SnappyWriter::new(Vec::new()).unwrap();
        writer.write_all(&bytes).unwrap();
        let stream = writer.finish().unwrap();
        let mut back = Vec::new();
        SnappyReader::new(&stream[..]).read_to_end(&mut back).unwrap();
        assert!(back == bytes);
        assert!(SnappyReader::new(&stream[..stream.len() - 1]).read_to_end(&mut back).is_err());
    }

    #[test]
    fn a_block_with_a_huge_length_is_an_error() {
        let mut stream = [MAGIC, VERSIONS].concat();
        stream.extend([0x7f, 0xff, 0xff, 0xff, 1]);
        assert!(SnappyReader::new(&stream[..]).read_to_end(&mut Vec::new()).is_err());
    }
}
