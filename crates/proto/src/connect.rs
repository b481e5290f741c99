//! The handshake: the first frame in each direction, which has no header.

use crate::{
    id::SessionId,
    jute::{Reader, Result, Writer},
};
use alloc::vec::Vec;

/// A session's password.
pub type Password = [u8; 16];

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    /// 0; nobody looks at it.
    pub protocol_version: i32,
    /// The highest zxid that the client has seen; compared as a signed number.
    pub last_zxid_seen: i64,
    /// Session timeout wished for, ms.
    pub timeout_ms: i32,
    /// The session to attach to again, or none.
    pub session: SessionId,
    /// That session's password.
    pub password: Option<&'a [u8]>,
    /// Whether a read-only server will do; `None` from clients before 3.4, which do not send the byte and
    /// do not expect it in the response.
    pub read_only: Option<bool>,
}

impl<'a> ConnectRequest<'a> {
    /// Reads a whole payload.
    pub fn read(payload: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(payload);
        Ok(ConnectRequest {
            protocol_version: r.i32()?,
            last_zxid_seen: r.i64()?,
            timeout_ms: r.i32()?,
            session: SessionId(r.i64()?),
            password: r.buffer()?,
            read_only: r.bool().ok(),
        })
    }

    /// Appends a whole frame.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        let start = crate::reply::begin_frame(out);
        out.i32(self.protocol_version);
        out.i64(self.last_zxid_seen);
        out.i32(self.timeout_ms);
        out.i64(self.session.0);
        out.buffer(self.password);
        if let Some(read_only) = self.read_only {
            out.bool(read_only);
        }
        crate::reply::end_frame(out, start);
    }
}

/// What the server grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectResponse {
    /// Negotiated timeout, ms; 0 says that the session is gone.
    pub timeout_ms: i32,
    /// The session.
    pub session: SessionId,
    /// Its password.
    pub password: Password,
    /// Whether the server is read-only; `None` leaves the byte out.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// Says that the session asked for is gone. Clients read a timeout of 0 as expiry.
    pub fn expired(read_only: Option<bool>) -> Self {
        ConnectResponse { timeout_ms: 0, session: SessionId::NONE, password: [0; 16], read_only }
    }

    /// Reads a whole payload.
    pub fn read(payload: &[u8]) -> Result<Self> {
        let mut r = Reader::new(payload);
        r.i32()?;
        let timeout_ms = r.i32()?;
        let session = SessionId(r.i64()?);
        let mut password = [0; 16];
        if let Some(bytes) = r.buffer()?
            && bytes.len() == password.len()
        {
            password.copy_from_slice(bytes);
        }
        Ok(ConnectResponse { timeout_ms, session, password, read_only: r.bool().ok() })
    }

    /// Appends a whole frame.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        let start = crate::reply::begin_frame(out);
        out.i32(0);
        out.i32(self.timeout_ms);
        out.i64(self.session.0);
        out.buffer(Some(&self.password));
        if let Some(read_only) = self.read_only {
            out.bool(read_only);
        }
        crate::reply::end_frame(out, start);
    }
}
