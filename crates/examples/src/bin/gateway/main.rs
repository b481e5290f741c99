//! A gateway: it finds the live instances of a service, passes each request on to one of them, and tries another one
//! if that is gone.
//!
//! A list of instances can only say who was there a moment ago. An instance that is killed stays listed until its
//! session expires. So the gateway has to expect that an instance does not answer, and says so to its provider.

mod upstream;

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::{Request, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use clap::Parser;
use ostler_examples::{ConnectOptions, serve, start_log};
use ostler_recipes::{
    discovery::{DownInstancePolicy, ServiceProvider},
    prelude::*,
    serde_json::Value,
};
use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use upstream::{AskError, Upstream};

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

type Instance = Arc<ServiceInstance<Value>>;

struct Gateway {
    provider: ServiceProvider<Value>,
    upstream: Upstream,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let client = options.connect.connect().await?;
    let ended = run(&client, &options).await;
    client.close().await;
    ended
}

async fn run(client: &Client, options: &Options) -> Result<(), Box<dyn Error>> {
    let services = ServiceDiscovery::new(client, SERVICES);
    let down = DownInstancePolicy { timeout: Duration::from_millis(options.down_ms), error_threshold: 1 };
    let provider = services.provider(&options.service).down_instances(down).start().await?;
    log_instances(&provider);
    let upstream = Upstream::new(Duration::from_millis(options.patience_ms));
    let app = Router::new().fallback(pass_on).with_state(Arc::new(Gateway { provider, upstream }));

    let listener = TcpListener::bind(options.listen).await?;
    tracing::info!("passes requests to {} on, at {}", options.service, listener.local_addr()?);
    serve(listener, app, async {}).await?;
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

/// Passes a request on, if it is one that an instance can answer.
async fn pass_on(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // `OPTIONS *` and CONNECT are about a server, and not about a service.
    if !head.uri.path().starts_with('/') {
        return refuse(StatusCode::BAD_REQUEST, "the request has no path");
    }
    match to_bytes(body, REQUEST_MAX).await {
        Ok(body) => gateway.answer(&head, &body).await,
        Err(_) => refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"),
    }
}

fn refuse(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}

impl Gateway {
    /// The answer of the first instance that gives one.
    async fn answer(&self, head: &Parts, body: &Bytes) -> Response {
        let (mut tried, mut late): (Vec<Instance>, Option<Instance>) = (Vec::new(), None);
        while tried.len() < TRIES {
            let Some(instance) = self.instance_after(&tried) else { break };
            tried.push(instance.clone());
            // An instance without a URI fails as one whose URI is empty.
            let uri = instance.build_uri(&[]).unwrap_or_default();
            let error = match self.upstream.ask(&uri, head, body).await {
                Ok(answer) => {
                    // This one was not late with the same request. So the late one is to blame.
                    if let Some(late) = &late {
                        self.provider.note_error(late);
                    }
                    return answer;
                }
                Err(error) => error,
            };
            tracing::warn!("{} fails: {error}", instance.id);
            match error {
                // The next requests go to others, until some time has passed.
                AskError::Address(_) | AskError::Connect(_) | AskError::Broken(_) | AskError::Answer(_) => {
                    self.provider.note_error(&instance);
                }
                AskError::Late(_) if late.is_none() => late = Some(instance),
                AskError::Late(_) => break,
                AskError::Request(_) => {
                    return refuse(StatusCode::BAD_REQUEST, "the request cannot be passed on");
                }
                AskError::TooLarge => return refuse(StatusCode::BAD_GATEWAY, "the answer is too large"),
            }
            // A request that was sent may have been done. Only one that may be done twice is sent again.
            if error.was_sent() && !head.method.is_idempotent() {
                let text = "the instance has not answered, and the request may have been done";
                return refuse(StatusCode::BAD_GATEWAY, text);
            }
        }
        match late {
            Some(_) => refuse(StatusCode::GATEWAY_TIMEOUT, "no instance has answered in time"),
            None => {
                let retry_soon = [("retry-after", "1")];
                let text = "no instance of the service answers\n";
                (StatusCode::SERVICE_UNAVAILABLE, retry_soon, text).into_response()
            }
        }
    }

    /// The next instance in turn, or another one if the request has been there.
    fn instance_after(&self, tried: &[Instance]) -> Option<Instance> {
        let is_new = |instance: &Instance| tried.iter().all(|before| before.id != instance.id);
        let next = self.provider.instance().filter(is_new);
        next.or_else(|| self.provider.all_instances().into_iter().find(is_new))
    }
}
