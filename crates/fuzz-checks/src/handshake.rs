//! The first frame in each direction.

use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    password,
};

/// Whatever is read is written back and read again; no password opens a session but its own.
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
