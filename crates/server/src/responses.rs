//! Counts of what goes out to clients: bytes, and the sizes of replies and notifications.

/// The length in front of a frame is not counted.
const LENGTH_BYTES: usize = 4;

/// Since the start or `srst`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Responses {
    /// Of answers to requests; upstream leaves out those to pings and auth.
    pub(crate) reply_bytes: u64,
    /// Of notifications.
    pub(crate) notification_bytes: u64,
    /// Of all of these.
    pub(crate) sizes: Option<Sizes>,
}

/// Bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) last: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Responses {
    /// A frame with a reply was given to a connection. `asked` is false for pings and auth.
    pub(crate) fn count_reply(&mut self, frame_len: usize, asked: bool) {
        let size = frame_len.saturating_sub(LENGTH_BYTES) as u64;
        if asked {
            self.reply_bytes += size;
        }
        self.count_size(size);
    }

    /// Counts a frame with a notification that was given to this number of connections.
    pub(crate) fn count_notification(&mut self, frame_len: usize, conns: usize) {
        if conns > 0 {
            let size = frame_len.saturating_sub(LENGTH_BYTES) as u64;
            self.notification_bytes += size * conns as u64;
            self.count_size(size);
        }
    }

    fn count_size(&mut self, size: u64) {
        let before = self.sizes.unwrap_or(Sizes { last: size, min: size, max: size });
        self.sizes = Some(Sizes { last: size, min: before.min.min(size), max: before.max.max(size) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_in_front_does_not_count() {
        let mut counted = Responses::default();
        assert_eq!(counted.sizes, None);
        counted.count_reply(20 + 4, false);
        counted.count_reply(30 + 4, true);
        counted.count_notification(10 + 4, 3);
        counted.count_notification(99 + 4, 0);
        let sizes = Some(Sizes { last: 10, min: 10, max: 30 });
        assert_eq!(counted, Responses { reply_bytes: 30, notification_bytes: 30, sizes });
    }
}
