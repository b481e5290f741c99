//! Uses input bytes as a script: each choice takes some bytes. After the end of the input all bytes are 0.

/// The rest of the script.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// A script of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Script { rest: bytes }
    }

    /// Whether no byte is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// Takes two bytes, big-endian.
    pub fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Takes up to `n` bytes.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = tail;
        head
    }

    /// Takes all bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(self.rest.len())
    }

    /// Takes one byte, and picks one of `choices`, which must not be empty.
    pub fn one_of<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.byte()) % choices.len()]
    }
}
