//! The line of one connection in `cons` and, shorter, in `stat`.

use std::fmt::{self, Write};

use super::java_text::Address;
use super::view::{Connection, ConnectionSession};

pub(super) fn write_brief(out: &mut String, connection: &Connection) -> fmt::Result {
    write_counters(out, connection)?;
    out.write_str(")\n")
}

pub(super) fn write_full(out: &mut String, connection: &Connection) -> fmt::Result {
    write_counters(out, connection)?;
    if let Some(session) = &connection.session {
        write_session(out, session)?;
    }
    out.write_str(")\n")
}

fn write_counters(out: &mut String, connection: &Connection) -> fmt::Result {
    let Connection { remote, has_tls: _, interest_ops, queued, received, sent, session: _ } = connection;
    write!(out, " {}[{interest_ops:x}](queued={queued},recved={received},sent={sent}", Address(*remote))
}

fn write_session(out: &mut String, session: &ConnectionSession) -> fmt::Result {
    write!(out, ",sid=0x{:x},lop={}", session.session_id, session.last_operation)?;
    write!(out, ",est={},to={}", session.established_ms, session.timeout_ms)?;
    if session.last_cxid >= 0 {
        write!(out, ",lcxid=0x{:x}", session.last_cxid)?;
    }
    write!(out, ",lzxid=0x{:x},lresp={}", session.last_zxid, session.last_response_ms)?;
    write!(out, ",llat={},minlat={}", session.last_latency_ms, session.min_latency_ms)?;
    write!(out, ",avglat={},maxlat={}", session.avg_latency_ms, session.max_latency_ms)
}
