//! Two instances of a service, and one that looks for them. `cargo run -p ostler-recipes --example discovery` runs it
//! against a server of its own; with a connect string, against that.

use ostler_client::Client;
use ostler_recipes::discovery::{DownInstancePolicy, RoundRobin, ServiceDiscovery, ServiceInstance, Sticky};
use ostler_testkit::TestServer;
use std::{error::Error, time::Duration};

const BASE: &str = "/examples/services";

type Services = ServiceDiscovery<String>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let east = registered(&servers, "east", 8081).await?;
    let west = registered(&servers, "west", 8082).await?;

    let client = Client::connect(&servers).await?;
    let services = Services::new(&client, BASE);
    println!("services: {:?}", services.names().await?);
    let down = DownInstancePolicy { timeout: Duration::from_secs(30), error_threshold: 1 };
    let provider = services
        .provider("api")
        .strategy(Sticky::new(RoundRobin::default()))
        .down_instances(down)
        .start()
        .await?;
    for _ in 0..3 {
        let Some(instance) = provider.instance() else { return Err("no instance".into()) };
        println!("use {} at {}", instance.id, instance.build_uri(&[]).ok_or("no URI")?);
    }
    if let Some(instance) = provider.instance() {
        provider.note_error(&instance);
        println!("{} has failed", instance.id);
    }
    println!("use {:?}", provider.instance().map(|instance| instance.id.clone()));

    let mut changes = provider.cache().changes();
    west.close().await;
    while provider.cache().instances().len() > 1 {
        changes.next().await.ok_or("the client is closed")?;
    }
    let (registered, usable) = (provider.cache().instances().len(), provider.all_instances().len());
    println!("west is unregistered; registered: {registered}, left to use: {usable}");
    east.close().await;
    Ok(())
}

/// A process of the service: what it has registered goes when it closes this, or with its session.
async fn registered(servers: &str, id: &str, port: u16) -> Result<Services, Box<dyn Error>> {
    let client = Client::connect(servers).await?;
    let services = Services::new(&client, BASE);
    let mut instance = ServiceInstance::new("api", "127.0.0.1", port);
    instance.id = id.to_owned();
    instance.payload = Some(format!("zone {id}"));
    instance.uri_spec = Some("{scheme}://{address}:{port}".parse()?);
    services.register(instance).await?;
    Ok(services)
}
