//! The thread that sends spans to a collector, by OTLP over HTTP.

use super::{
    queue::{Gathered, TraceQueue},
    spans::spans,
};
use crate::{config::TraceSettings, log_throttle::LogThrottle};
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use ostler_proto::id::ServerId;
use std::{io, sync::Arc, thread, time::Duration};
use ureq::Agent;

/// Requests gather for this time before they are sent.
const GATHER: Duration = Duration::from_secs(1);
/// The time for sending a batch.
const WITHIN: Duration = Duration::from_secs(3);
/// Spans in a batch.
const BATCH: usize = 2048;

/// Why no traces can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TraceSettingsError {
    /// The endpoint cannot be used.
    #[error("otlp.endpoint cannot be used: {0}; it is as http://127.0.0.1:4318")]
    Endpoint(#[from] ExporterBuildError),
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}; raise the limit of processes or free some memory")]
    Thread(#[from] io::Error),
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct TraceExporter {
    queue: Arc<TraceQueue>,
    thread: thread::JoinHandle<()>,
}

impl TraceExporter {
    /// Starts the thread. The collector need not be there yet.
    pub(crate) fn start(
        settings: &TraceSettings,
        server: ServerId,
    ) -> Result<TraceExporter, TraceSettingsError> {
        let queue = Arc::<TraceQueue>::default();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(BlockingClient::new())
            .with_endpoint(format!("{}/v1/traces", settings.endpoint.trim_end_matches('/')))
            .with_timeout(WITHIN)
            .with_protocol(Protocol::HttpJson)
            .build()?;
        let instance = KeyValue::new("service.instance.id", server.0.to_string());
        let resource = Resource::builder_empty()
            .with_service_name("ostler")
            .with_attribute(instance)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        exporter.set_resource(&resource);
        let of_thread = queue.clone();
        let thread = thread::Builder::new()
            .name("traces".into())
            .spawn(move || send_until_the_end(&of_thread, &exporter, server))?;
        Ok(TraceExporter { queue, thread })
    }

    pub(crate) fn queue(&self) -> Arc<TraceQueue> {
        self.queue.clone()
    }

    /// Sends what waits, and ends the thread.
    pub(crate) fn end(self) {
        self.queue.stop();
        // A panic aborts the process, so the thread has ended by itself.
        let _ = self.thread.join();
    }
}

fn send_until_the_end(queue: &TraceQueue, exporter: &SpanExporter, server: ServerId) {
    let mut failures = LogThrottle::default();
    loop {
        let Gathered { requests, dropped, is_over } = queue.gather(GATHER);
        let all: Vec<SpanData> = requests.iter().flat_map(|request| spans(request, server)).collect();
        if dropped > 0 && failures.take_turn() {
            tracing::warn!(dropped, "traced requests were dropped: the collector takes them too slowly");
        }
        for batch in all.chunks(BATCH) {
            // The client blocks, so this future is ready at once.
            if let Err(error) = futures_executor::block_on(exporter.export(batch.to_vec()))
                && failures.take_turn()
            {
                tracing::warn!(%error, "traces could not be sent to otlp.endpoint, and are lost");
            }
            if is_over {
                break;
            }
        }
        if is_over {
            return;
        }
    }
}

/// An HTTP client that blocks, on a thread of its own.
#[derive(Debug)]
struct BlockingClient(Agent);

impl BlockingClient {
    fn new() -> BlockingClient {
        let config = Agent::config_builder().timeout_global(Some(WITHIN)).http_status_as_error(false).build();
        BlockingClient(config.into())
    }
}

#[async_trait::async_trait]
impl HttpClient for BlockingClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut answer = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let status = answer.status();
        let body = answer.body_mut().read_to_vec()?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        Ok(response)
    }
}
