//! Bytes from a client: the handshake or a four-letter word first, then requests.

use super::{ClientConn, End, Over, SCRATCH, ending::Garbage};
use crate::{
    admin::word_exchange::WordRequest,
    driver::{Batch, Held},
    room::Waiter,
};
use ostler_proto::{connect::ConnectRequest, frame, id::SessionId};
use ostler_server_core::ClientRequest;
use std::io;

/// The length before each frame, in bytes.
const PREFIX: usize = 4;

/// The whole requests at the beginning of some bytes.
struct Frames<'a> {
    requests: Vec<ClientRequest<'a>>,
    /// Where each of them ends, counted from the first byte.
    ends: Vec<usize>,
    /// Why the bytes behind them are no request, if they are none.
    garbage: Option<Garbage>,
    /// The size of the request behind them, if only a part of it is there.
    incomplete: Option<usize>,
}

impl<'a> Frames<'a> {
    fn split(bytes: &'a [u8], start: usize, frame_max: usize) -> Frames<'a> {
        let mut frames = Frames { requests: Vec::new(), ends: Vec::new(), garbage: None, incomplete: None };
        let mut at = start;
        loop {
            match frame::split(&bytes[at..], frame_max) {
                frame::Split::Frame { payload, used } => {
                    // Less than a request header: upstream closes without an answer.
                    let Ok(request) = ClientRequest::decode(payload) else {
                        frames.garbage = Some(Garbage::NoRequestHeader);
                        return frames;
                    };
                    at += used;
                    frames.requests.push(request);
                    frames.ends.push(at);
                }
                frame::Split::Incomplete { wanted } => {
                    frames.incomplete = wanted.checked_sub(PREFIX).filter(|size| *size > 0);
                    return frames;
                }
                frame::Split::BadLength(length) => {
                    frames.garbage = Some(Garbage::FrameLength(length));
                    return frames;
                }
            }
        }
    }
}

impl ClientConn {
    /// Deals with the first `n` bytes of this thread's buffer.
    pub(super) fn arrived(&mut self, n: usize) -> Result<(), End> {
        if n == 0 {
            self.driver.traffic.count_dropped();
            if self.waits_to_open {
                return Err(End::Closed);
            }
            self.over = Some(Over::ByClient);
            return Ok(());
        }
        self.driver.traffic.count_bytes(n);
        let executes = self.may_execute();
        if self.outbox.unanswered() == 0 {
            self.bytes_since_idle = 0;
        }
        self.bytes_since_idle += n;
        SCRATCH.with_borrow_mut(|scratch| {
            if executes && self.partial.is_empty() {
                let used = self.take_frames(&scratch[..n])?;
                self.partial.extend_from_slice(&scratch[used..n]);
                self.note_waiting();
                return Ok(());
            }
            self.partial.extend_from_slice(&scratch[..n]);
            self.note_waiting();
            if executes {
                self.take_frames_of_partial()?;
            } else {
                self.note_sign_of_life();
            }
            Ok(())
        })
    }

    /// Takes the frames that have waited. Returns whether there was one.
    pub(super) fn take_frames_of_partial(&mut self) -> Result<bool, End> {
        let partial = std::mem::take(&mut self.partial);
        let used = self.take_frames(&partial)?;
        self.partial = partial;
        self.partial.drain(..used);
        self.note_used(used);
        self.note_waiting();
        if self.partial.is_empty() {
            self.partial = Vec::new();
        }
        Ok(used > 0)
    }

    /// Hands whole frames to the core. Returns the number of their bytes.
    fn take_frames(&mut self, bytes: &[u8]) -> Result<usize, End> {
        let mut used = 0;
        if !self.shaken_hands {
            used = self.handshake(bytes)?;
            if !self.shaken_hands {
                return Ok(used);
            }
        }
        // Once for all requests that came together.
        let since_us = self.driver.clock.mono_us();
        let mut frames = Frames::split(bytes, used, self.limits.frame_max);
        self.refuse_large(&mut frames, used);
        let Frames { requests, ends, garbage, .. } = frames;
        if !requests.is_empty() {
            let all = requests.len();
            let waits = self.waits(std::iter::once(used).chain(ends.iter().copied()));
            let taken = self.driver.requests(self.conn, &self.outbox, Batch { requests, since_us, waits });
            self.note_handed_over(taken.count);
            match taken.held {
                Some(Held::ForRoom) => self.waiter = Some(Waiter::at(&self.driver.room)),
                Some(Held::ForTurn) => self.wait_for_turn(),
                Some(Held::Dropped) => return Err(End::Closed),
                None => {}
            }
            if taken.count > 0 {
                used = ends[taken.count - 1];
            }
            if taken.count < all {
                return Ok(used);
            }
        }
        // All whole requests before the garbage are taken.
        if let Some(what) = garbage {
            self.over = Some(Over::Garbage(what));
            return Ok(bytes.len());
        }
        Ok(used)
    }

    /// Keeps of the requests only those before one that is a large request too many.
    fn refuse_large(&mut self, frames: &mut Frames<'_>, start: usize) {
        if self.throttle.is_none() {
            return;
        }
        let starts = std::iter::once(start).chain(frames.ends.iter().copied());
        let sizes = starts.zip(&frames.ends).map(|(start, end)| end - start - PREFIX);
        let refused =
            sizes.chain(frames.incomplete).enumerate().find(|(ahead, size)| !self.admits_size(*ahead, *size));
        if let Some((at, _)) = refused {
            frames.requests.truncate(at);
            frames.ends.truncate(at);
            frames.garbage = Some(Garbage::LargeRequest);
        }
    }

    /// The first bytes: a four-letter word or the handshake.
    fn handshake(&mut self, bytes: &[u8]) -> Result<usize, End> {
        if let Some(asked) = WordRequest::read(bytes) {
            return Err(End::Word(asked));
        }
        match frame::split(bytes, self.limits.frame_max) {
            frame::Split::Incomplete { .. } => Ok(0),
            frame::Split::BadLength(length) => Err(End::Garbage(Garbage::FirstFrameLength(length))),
            frame::Split::Frame { payload, used } => {
                let request =
                    ConnectRequest::read(payload).map_err(|_| End::Garbage(Garbage::NoHandshake))?;
                // In a storm a client gives a server up that has not answered in time, and comes back to its session
                // elsewhere. Its handshake here would take the session away from there.
                if request.session != SessionId::NONE && self.stream.is_closed_by_client() {
                    return Err(End::Closed);
                }
                if !self.is_counted && !self.driver.throttles.admits(self.driver.clock.mono(), &request)? {
                    self.driver.traffic.count_rejected();
                    return Err(End::Garbage(Garbage::TooManyNewConnections));
                }
                self.is_counted = true;
                let chance = getrandom::u64().map_err(io::Error::from)?;
                if !self.driver.connect(self.conn, request, (!self.has_waited, chance)) {
                    self.waits_to_open = true;
                    return Ok(0);
                }
                self.shaken_hands = true;
                Ok(used)
            }
        }
    }
}
