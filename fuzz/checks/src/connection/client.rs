//! One fuzzed client: notes its requests, and checks that each reply answers one of them.

use ostler_proto::{
    connect::ConnectResponse,
    id::{SessionId, Xid, Zxid},
    jute::Reader,
    reply::{Reply, ReplyHeader},
    request::Request,
};
use ostler_server_core::{ClientRequest, ConnId};
use std::collections::VecDeque;

pub(super) struct Client {
    pub(super) conn: ConnId,
    /// Bytes of an incomplete frame.
    pub(super) partial: Vec<u8>,
    pub(super) shaken_hands: bool,
    pub(super) session: Option<SessionId>,
    pub(super) next_xid: i32,
    /// Xids that must be answered in the order of the requests. At the end of a session some stay without an answer.
    ordered: VecDeque<Xid>,
    /// Xids that may be answered out of order: auth and SASL, and requests of a client that is not authenticated yet.
    unordered: Vec<Xid>,
}

impl Client {
    pub(super) fn new(conn: ConnId) -> Self {
        Client {
            conn,
            partial: Vec::new(),
            shaken_hands: false,
            session: None,
            next_xid: 0,
            ordered: VecDeque::new(),
            unordered: Vec::new(),
        }
    }

    pub(super) fn expect(&mut self, request: &ClientRequest<'_>) {
        let xid = if request.request == Request::Ping { Xid::PING } else { request.xid };
        self.ordered.push_back(xid);
        self.unordered.push(request.xid);
    }

    pub(super) fn connected(&mut self, response: &ConnectResponse) {
        let mut frame = Vec::new();
        response.write_frame(&mut frame);
        assert_eq!(ConnectResponse::read(&frame[4..]), Ok(*response));
        if response.timeout_ms > 0 {
            assert_ne!(response.session, SessionId::NONE);
            assert_eq!(self.session, None, "a handshake is answered once");
            self.session = Some(response.session);
        }
    }

    pub(super) fn answered(&mut self, reply: &Reply) {
        let mut frame = Vec::new();
        reply.write_frame(&mut frame);
        assert_eq!(frame[..4], (frame.len() as u32 - 4).to_be_bytes());
        let header =
            ReplyHeader::read(&mut Reader::new(&frame[4..])).expect("a reply starts with its header");
        assert_eq!(header.xid, reply.xid);

        if reply.zxid == Some(Zxid::ZERO)
            && let Some(at) = self.unordered.iter().position(|xid| *xid == reply.xid)
        {
            self.unordered.swap_remove(at);
            return;
        }
        while let Some(next) = self.ordered.pop_front() {
            if next == reply.xid {
                return;
            }
        }
        panic!("{reply:?} answers no request, or comes out of order");
    }
}
