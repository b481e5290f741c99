//! Fuzzes the first frame in each direction.

use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    password,
};

/// A handshake that is read can be written and read again. Only a session's own password opens it.
pub fn check(payload: &[u8]) {
    if let Ok(request) = ConnectRequest::read(payload) {
        let mut frame = Vec::new();
        request.write_frame(&mut frame);
        assert_eq!(ConnectRequest::read(&frame[4..]), Ok(request.clone()));
        if password::opens(request.session, request.password) {
            assert_eq!(request.password, Some(&password::password_of(request.session)[..]));
        }
    }
    if let Ok(response) = ConnectResponse::read(payload) {
        let mut frame = Vec::new();
        response.write_frame(&mut frame);
        assert_eq!(ConnectResponse::read(&frame[4..]), Ok(response));
    }
}
