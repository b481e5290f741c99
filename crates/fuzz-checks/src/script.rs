//! Input bytes as a script: small choices taken one after another, zeros once they run out.

/// The bytes that are left.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// From the first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Script { rest: bytes }
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// Two bytes, big-endian.
    pub fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// At most `n` bytes.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = tail;
        head
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(self.rest.len())
    }

    /// One of `choices`.
    pub fn one_of<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.byte()) % choices.len()]
    }
}
