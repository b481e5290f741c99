//! A gateway: it finds the live instances of a service, passes each request on to one of them, and tries another one
//! if that is gone.
//!
//! A list of instances can only say who was there a moment ago. An instance that is killed stays listed until its
//! session expires. So the gateway has to expect that an instance does not answer, and says so to its provider.

mod upstream;

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use clap::Parser;
use ostler_examples::{ConnectOptions, start_log, stop_signal};
use ostler_recipes::{
    discovery::{DownInstancePolicy, ServiceProvider},
    prelude::*,
    serde_json::Value,
};
use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use upstream::Upstream;

/// The parent of all services, which the instances have to know.
const SERVICES: &str = "/examples/services";
/// The number of instances that one request is passed on to, at most.
const TRIES: usize = 4;
/// The size of the largest request, in bytes. It is kept in memory, so that it can be sent again.
const REQUEST_MAX: usize = 1 << 20;

/// Passes HTTP requests on to the instances of a service.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The name of the service.
    #[arg(long, default_value = "greeter")]
    service: String,
    /// The address for requests.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// How long an instance may take for an answer, in ms.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    patience_ms: u64,
    /// For how long an instance that has failed gets no request, in ms.
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    down_ms: u64,
}

struct Gateway {
    provider: ServiceProvider<Value>,
    upstream: Upstream,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let client = options.connect.connect().await?;
    let services = ServiceDiscovery::new(&client, SERVICES);
    let down = DownInstancePolicy { timeout: Duration::from_millis(options.down_ms), error_threshold: 1 };
    let provider = services.provider(&options.service).down_instances(down).start().await?;
    log_instances(&provider);
    let upstream = Upstream::new(Duration::from_millis(options.patience_ms));
    let app = Router::new().fallback(pass_on).with_state(Arc::new(Gateway { provider, upstream }));

    let listener = TcpListener::bind(options.listen).await?;
    tracing::info!("passes requests to {} on, at {}", options.service, listener.local_addr()?);
    let stopped = async {
        if let Err(error) = stop_signal().await {
            tracing::error!("cannot listen to signals: {error}");
        }
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    client.close().await;
    Ok(())
}

/// Logs the number of instances at each change.
fn log_instances(provider: &ServiceProvider<Value>) {
    tracing::info!("{} instances are registered", provider.all_instances().len());
    let mut changes = provider.cache().changes();
    tokio::spawn(async move {
        while changes.next().await.is_some() {
            tracing::info!("the list of instances has changed");
        }
    });
}

/// The answer of the first instance that gives one.
async fn pass_on(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, REQUEST_MAX).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response();
    };
    for _ in 0..TRIES {
        let Some(instance) = gateway.provider.instance() else { break };
        match gateway.try_one(&instance, &head, &body).await {
            Ok(answer) => return answer,
            Err(Failed::ForGood(answer)) => return answer,
            Err(Failed::TryAnother) => {}
        }
    }
    let retry_soon = [("retry-after", "1")];
    (StatusCode::SERVICE_UNAVAILABLE, retry_soon, "no instance of the service answers\n").into_response()
}

/// The outcome of a try without an answer of the instance.
enum Failed {
    TryAnother,
    ForGood(Response),
}

impl Gateway {
    async fn try_one(
        &self,
        instance: &ServiceInstance<Value>,
        head: &Parts,
        body: &Bytes,
    ) -> Result<Response<Body>, Failed> {
        // An instance without a URI is tried as one whose URI is empty, and fails.
        let uri = instance.build_uri(&[]).unwrap_or_default();
        let error = match self.upstream.ask(&uri, head, body).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        tracing::warn!("{} fails: {error}", instance.id);
        // The next requests go to others, until some time has passed.
        self.provider.note_error(instance);
        // A request that was sent may have been done. Only one that may be done twice is sent again.
        if error.was_sent() && !head.method.is_idempotent() {
            let text = "the instance has failed, and the request may have been done\n";
            return Err(Failed::ForGood((StatusCode::BAD_GATEWAY, text).into_response()));
        }
        Err(Failed::TryAnother)
    }
}
