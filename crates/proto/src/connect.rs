//! The handshake between client and server: the first frame in each direction, which has no header.

use crate::{
    id::SessionId,
    jute::{Reader, Result, Writer},
};
use alloc::vec::Vec;

/// A session's password.
pub type Password = [u8; 16];

/// A client's request for a session, new or resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    /// Always 0; servers ignore it.
    pub protocol_version: i32,
    /// The highest zxid that the client has seen; compared as a signed number.
    pub last_zxid_seen: i64,
    /// The session timeout that the client wants, in ms.
    pub timeout_ms: i32,
    /// The session to resume, or [`SessionId::NONE`] for a new one.
    pub session: SessionId,
    /// The password of that session.
    pub password: Option<&'a [u8]>,
    /// Whether the client accepts a read-only server. `None` from clients before 3.4: they neither send the byte nor
    /// expect it in the response.
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

/// The session that the server grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The negotiated timeout in ms; 0 if the session that was asked for has expired.
    pub timeout_ms: i32,
    /// The id of the session.
    pub session: SessionId,
    /// The password with which a client resumes the session.
    pub password: Password,
    /// Whether the server is read-only; with `None` the byte is not sent.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// The response for a session that has expired. Clients read a timeout of 0 as expiry.
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
        if let Some(bytes) = r.buffer()?.filter(|bytes| bytes.len() == password.len()) {
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
