//! The port of the admin server, and the port for metrics.

use crate::{
    admin::{
        AdminHandle,
        http::{
            listener::HttpPort,
            router::{AdminConn, router},
            state::AdminState,
        },
        prometheus::Exporter,
        reports::Reports,
    },
    client_conn::ClientService,
    config::{AdminHttps, AdminSettings, MetricsSettings, ServerConfig},
    error::ServerError,
    listener,
    overrides::AdminRoutes,
    tls_files::TlsFiles,
    tls_handshake::{PortSecurity, TlsConfig},
};
use axum::{Router, extract::Query, routing::get};
use ostler_data_dir::snapshots::SnapshotSettings;
use ostler_tls::material::TlsMaterial;
use std::{
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// A scraper's connection without a request is closed after this time.
const METRICS_IDLE: Duration = Duration::from_secs(60);

/// The ports that are bound. Nothing is accepted yet.
pub(super) struct AdminPorts {
    admin: Option<(StdListener, AdminSettings, AdminTls)>,
    metrics: Option<(StdListener, MetricsSettings)>,
    /// Paths beside those of the commands.
    routes: Option<AdminRoutes>,
}

/// The parts of the server that the admin server needs.
pub(super) struct AdminParts {
    pub(super) service: ClientService,
    pub(super) reports: Arc<Reports>,
    pub(super) snapshots: SnapshotSettings,
}

/// TLS of the admin server.
struct AdminTls {
    security: PortSecurity,
    files: Option<(TlsFiles<rustls::ServerConfig>, TlsConfig)>,
}

impl AdminTls {
    fn open(https: Option<&AdminHttps>) -> Result<AdminTls, ServerError> {
        let Some(https) = https else { return Ok(AdminTls { security: PortSecurity::Plain, files: None }) };
        let (files, config) = TlsFiles::open(https.tls.clone(), "ssl.quorum.*", TlsMaterial::server_config)?;
        let config = TlsConfig::new(config);
        let security = match https.unification {
            true => PortSecurity::Either(config.clone()),
            false => PortSecurity::Tls(config.clone()),
        };
        Ok(AdminTls { security, files: Some((files, config)) })
    }
}

impl AdminPorts {
    /// Takes the ports. Without files for its TLS, and without its default port, the server runs on without its admin
    /// server; one that the configuration names must be there.
    pub(super) fn bind(
        config: &ServerConfig,
        routes: Option<AdminRoutes>,
    ) -> Result<AdminPorts, ServerError> {
        let metrics = config.metrics.as_ref().map(|metrics| {
            let bound =
                bind(metrics.address, "metrics", "metricsProvider.httpHost and metricsProvider.httpPort");
            bound.map(|socket| (socket, metrics.clone()))
        });
        let admin = match &config.admin {
            Some(admin) => bind_admin(admin)?,
            None => None,
        };
        Ok(AdminPorts { admin, metrics: metrics.transpose()?, routes })
    }

    /// Serves the ports. Returns the address of the admin server.
    pub(super) fn serve(
        self,
        config: &ServerConfig,
        parts: AdminParts,
        tasks: &mut JoinSet<()>,
    ) -> Result<Option<SocketAddr>, ServerError> {
        if let Some((socket, settings)) = self.metrics {
            let (driver, reports) = (parts.service.driver.clone(), parts.reports.clone());
            let exporter = Exporter::new(driver, reports, settings.export_jvm_info);
            let listener = listen(socket, settings.address)?;
            let router = metrics_router(Arc::new(exporter));
            tasks.spawn(
                HttpPort { listener, security: PortSecurity::Plain, router, idle: METRICS_IDLE }.run(),
            );
        }
        let Some((socket, settings, tls)) = self.admin else { return Ok(None) };
        let listener = listen(socket, settings.address)?;
        let address = listener.local_addr().ok();
        // A port that the system has chosen is known only now.
        let settings = AdminSettings { address: address.unwrap_or(settings.address), ..settings };
        let idle = Duration::from_millis(settings.idle_timeout_ms.max(1).into());
        let AdminParts { service, reports, snapshots } = parts;
        let state = AdminState::new(config, &settings, (service.driver.clone(), reports, snapshots));
        let state = Arc::new(state);
        let mut router = router(state.clone());
        if let Some(routes) = self.routes {
            router = router.merge(routes(AdminHandle::new(state, service, tasks)));
        }
        tasks.spawn(HttpPort { listener, security: tls.security, router, idle }.run());
        if let Some((files, config)) = tls.files {
            tasks.spawn(files.watch(move |changed| config.replace(changed)));
        }
        Ok(address)
    }
}

fn bind_admin(admin: &AdminSettings) -> Result<Option<(StdListener, AdminSettings, AdminTls)>, ServerError> {
    let tls = match AdminTls::open(admin.https.as_deref()) {
        Ok(tls) => tls,
        // As in Java.
        Err(error) => {
            tracing::warn!(%error, "the admin server is not started: its files of TLS cannot be used");
            return Ok(None);
        }
    };
    match bind(admin.address, "the admin server", "admin.serverAddress and admin.serverPort") {
        Ok(socket) => Ok(Some((socket, admin.clone(), tls))),
        Err(error) if admin.is_written => Err(error),
        Err(error) => {
            tracing::warn!(%error, "the server starts without its admin server");
            Ok(None)
        }
    }
}

fn bind(address: SocketAddr, purpose: &'static str, keys: &'static str) -> Result<StdListener, ServerError> {
    listener::bind(address, BACKLOG).map_err(|source| ServerError::ListenForOperators {
        address,
        purpose,
        keys,
        source,
    })
}

fn listen(socket: StdListener, address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::from_std(socket).map_err(|source| ServerError::Listen { address, source })
}

/// The only path of the port for metrics.
fn metrics_router(exporter: Arc<Exporter>) -> Router {
    let scrape = move |Query(query): Query<Vec<(String, String)>>, _conn: axum::Extension<AdminConn>| {
        exporter.clone().scrape(query)
    };
    Router::new().route("/metrics", get(scrape))
}
