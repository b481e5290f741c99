//! Local sessions, which cannot hold anything unless they can become global ones.

use crate::world::{SESSION, code, connect, patiently};
use ostler_client::ErrorCode::{EphemeralOnLocalSession, SessionExpired};
use ostler_recipes::{leader::UnfairElection, lock::InterProcessMutex};
use ostler_testkit::{TestEnsemble, TestOptions};

/// A follower says of a multi with an ephemeral znode that the session has expired, although it lives.
#[tokio::test]
async fn local_session_that_cannot_hold_gets_an_error() {
    let options = TestOptions::new().setting("localSessionsEnabled", "true");
    let ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    ensemble.until_settled().await.unwrap();
    for id in ensemble.ids() {
        let client = connect(&ensemble.member(id).unwrap().connect_string(), SESSION).await;
        let unfair = patiently("told", UnfairElection::new(&client, "/unfair", "me").campaign()).await;
        assert!(matches!(code(&unfair), Some(SessionExpired | EphemeralOnLocalSession)), "{unfair:?}");
        let mutex = patiently("told", InterProcessMutex::new(&client, "/mutex").acquire()).await;
        assert_eq!(code(&mutex), Some(EphemeralOnLocalSession), "{mutex:?}");
    }
}
