//! The budget of retries, which all operations of a client share.

use crate::{proxy::Proxy, server::TestServer};
use ostler_client::{Client, Error, RetryBudget, RetryPolicy};
use std::time::Duration;

/// The connect request, its answer, and the request that is lost.
const MESSAGES_TO_A_REQUEST: i64 = 3;

/// The number of lost requests, when a client with this budget reads twice and no request arrives.
async fn lost_requests(budget: Option<RetryBudget>, tries: u32) -> [usize; 2] {
    let server = TestServer::start();
    let proxy = Proxy::to(server.address).await;
    let wait = Duration::from_millis(1);
    let mut builder =
        Client::builder(&proxy.address.to_string()).retry(RetryPolicy::exponential(wait, wait, tries));
    if let Some(budget) = budget {
        builder = builder.retry_budget(budget);
    }
    let client = builder.await.unwrap();
    proxy.cut_again_after(MESSAGES_TO_A_REQUEST);
    proxy.cut_at(1);
    let mut lost = [0; 2];
    for (client, lost) in [client.clone(), client].into_iter().zip(&mut lost) {
        let error = client.get_data("/").await.unwrap_err();
        assert!(matches!(error, Error::ConnectionLoss { .. }), "{error}");
        *lost = proxy.cuts();
    }
    lost
}

#[tokio::test]
async fn retries_end_with_the_budget_of_the_client_and_its_clones() {
    let budget = RetryBudget::new().percent(0).per_second(0).saved_max(3);
    assert_eq!(lost_requests(Some(budget), 100).await, [1 + 3, 1 + 3 + 1]);
}

#[tokio::test]
async fn without_a_budget_the_policy_ends_the_retries_of_each_operation() {
    assert_eq!(lost_requests(None, 2).await, [1 + 2, 2 * (1 + 2)]);
}
