//! The end of a connection that the server closes: the last bytes for its client.

use super::{ClientConn, End};
use crate::admin::word_exchange::{self, WordRequest};
use std::{future::poll_fn, time::Duration};

/// The time that a closing connection's last bytes may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl ClientConn {
    /// A connection that is to be closed waits for its client only a moment longer.
    pub(super) async fn last_words(&mut self) -> End {
        loop {
            match self.send() {
                Ok(Some(_)) => return self.close().await,
                Ok(None) => {}
                Err(end) => return end,
            }
            match tokio::time::timeout(LAST_WORDS, self.stream.writable()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return End::Io(error),
                Err(_) => return End::Closed,
            }
        }
    }

    /// On the heap: no other connection needs room for it.
    pub(super) async fn answer(&mut self, asked: WordRequest) -> End {
        Box::pin(word_exchange::answer(&self.door, (&self.driver, self.conn), &mut self.stream, asked)).await;
        Box::pin(self.close()).await
    }

    /// For a moment bytes that the client still sends are read and thrown away: closing over unread bytes would
    /// reset the connection, and with it the last reply.
    async fn close(&mut self) -> End {
        let _ = self.stream.shutdown().await;
        // On the heap: an array would be part of every connection's task for all its life.
        let mut rest = vec![0; 4096];
        let patience = self.patience_at_end();
        let drained =
            async { while matches!(poll_fn(|cx| self.stream.poll_read(cx, &mut rest)).await, Ok(1..)) {} };
        self.other_side_closed = tokio::time::timeout(patience, drained).await.is_ok();
        End::Closed
    }
}
