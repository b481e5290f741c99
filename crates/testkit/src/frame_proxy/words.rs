//! Four-letter words through a proxy. They are no frames: four letters from the client, a text from the server, the end.

use super::{Direction, connection::Shared};
use crate::lane;
use std::time::Duration;
use tokio::{io, net::TcpStream, time::Instant};

/// The pause before the next look, if a part of the first four bytes has arrived.
const NEXT_LOOK: Duration = Duration::from_millis(1);

/// Whether the client's first four bytes are a four-letter word; no length of a frame looks like one. The bytes are not
/// taken. Returns false if the server is the first to send something or to close.
pub(super) async fn begins_with_word(client: &TcpStream, server: &TcpStream) -> bool {
    let (mut first, mut other) = ([0; 4], [0; 1]);
    loop {
        let read = tokio::select! {
            read = client.peek(&mut first) => read,
            _ = server.peek(&mut other) => return false,
        };
        match read {
            Ok(4) => return first.iter().all(u8::is_ascii_lowercase),
            Ok(1..) => tokio::time::sleep(NEXT_LOOK).await,
            Ok(0) | Err(_) => return false,
        }
    }
}

/// Passes on the word and its answer. Faults of both directions hold back the word, so that no answer comes meanwhile.
pub(super) async fn pass(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let came = Instant::now();
    for direction in [Direction::ToServer, Direction::ToClient] {
        lane::pass(&mut shared.flow.subscribe(), |flow| flow.lane(direction), came).await;
    }
    let _ = io::copy_bidirectional(&mut client, &mut server).await;
}
