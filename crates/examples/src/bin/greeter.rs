//! A service that registers itself, so that a gateway finds it: see `gateway`.

use axum::{Router, extract::Path, routing::get};
use clap::Parser;
use ostler_examples::{ConnectOptions, give_back, serve, start_log};
use ostler_recipes::prelude::*;
use std::{error::Error, net::SocketAddr};
use tokio::net::TcpListener;

/// The parent of all services, which the gateway has to know.
const SERVICES: &str = "/examples/services";

/// Greets by HTTP: GET /hello/NAME.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The name of this instance, which no other instance has.
    #[arg(long)]
    name: String,
    /// The address for requests, at which the gateway can reach this instance.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let client = options.connect.connect().await?;
    let ended = run(&client, options).await;
    client.close().await;
    ended
}

async fn run(client: &Client, options: Options) -> Result<(), Box<dyn Error>> {
    // The port is open before anybody can find it.
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;

    let services: ServiceDiscovery = ServiceDiscovery::new(client, SERVICES);
    let mut instance = ServiceInstance::new("greeter", &address.ip().to_string(), address.port());
    instance.id = options.name.clone();
    instance.uri_spec = Some("{scheme}://{address}:{port}".parse()?);
    // From here on it stays registered: over lost connections, and in a new session if this one is lost.
    services.register(instance).await?;
    tracing::info!("{} is registered, and serves at {address}", options.name);

    let name = options.name;
    let hello = move |Path(who): Path<String>| async move { format!("hello {who}, from {name}\n") };
    // First nobody finds it any more, then it ends what it has begun. The other order would fail requests.
    let before_end = async move {
        if give_back(services.close()).await.is_some() {
            tracing::info!("is not registered any more");
        }
    };
    let app = Router::new().route("/hello/{who}", get(hello));
    serve(listener, app, before_end).await?;
    Ok(())
}
