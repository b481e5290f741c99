//! Fuzzes the decoding of client requests.

use ostler_proto::{
    op::Op,
    request::{MultiOp, Request},
};
use ostler_server_core::ClientRequest;

/// Only an incomplete header is refused, and no list has more items than the payload has bytes.
pub fn check(payload: &[u8]) {
    let Ok(request) = ClientRequest::decode(payload) else {
        assert!(payload.len() < 8);
        return;
    };
    assert_eq!(request.payload, payload);
    assert_eq!(request.code().to_be_bytes(), payload[4..8]);
    assert!(items(&request.request) <= payload.len());
    if let Request::Malformed(op) = request.request {
        assert_eq!(op.code(), request.code());
    }
    if Op::from_code(request.code()).is_none() {
        assert_eq!(request.request, Request::Unimplemented);
    }
}

fn items(request: &Request<'_>) -> usize {
    match request {
        Request::Create(create) => create.acl.iter().flatten().count(),
        Request::SetAcl { acl, .. } => acl.iter().flatten().count(),
        Request::Multi(ops) => ops.iter().map(multi_items).sum(),
        Request::MultiRead { ops, .. } => ops.len(),
        Request::SetWatches(set) => {
            [&set.data, &set.exist, &set.child, &set.persistent, &set.persistent_recursive]
                .map(|paths| paths.len())
                .iter()
                .sum()
        }
        _ => 0,
    }
}

fn multi_items(op: &MultiOp<'_>) -> usize {
    match op {
        MultiOp::Create(create) => 1 + create.acl.iter().flatten().count(),
        _ => 1,
    }
}
