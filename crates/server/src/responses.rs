//! Counts of the replies and notifications to clients: their bytes and sizes.

/// The length in front of a frame is not counted.
const LENGTH_BYTES: usize = 4;

/// The counts since the start or `srst`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Responses {
    /// Bytes of replies; without those to pings and auth, as upstream.
    pub(crate) reply_bytes: u64,
    /// Bytes of notifications.
    pub(crate) notification_bytes: u64,
    /// Sizes of all replies and notifications; `None` if there was none.
    pub(crate) sizes: Option<Sizes>,
}

/// Sizes of messages, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) last: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Responses {
    /// Counts a frame with a reply that was given to a connection. `asked` is false for pings and auth.
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
    fn the_length_prefix_of_a_frame_is_not_counted() {
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
