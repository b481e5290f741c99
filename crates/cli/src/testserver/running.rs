//! A standalone server or an ensemble that runs, and what can be done with it.

use super::{
    error::ControlError,
    request::{NewEnsemble, WhichServer},
};
use ostler_proto::id::{ServerId, SessionId};
use ostler_testkit::{TestEnsemble, TestServer, TestkitError};
use std::{path::Path, time::Duration};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

/// The id of a standalone server.
const STANDALONE: ServerId = ServerId(1);
const START_WITHIN: Duration = Duration::from_secs(60);
const EXPIRE_WITHIN: Duration = Duration::from_secs(10);

/// An act with one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Kill,
    Stop,
    Restart,
    Pause,
    Resume,
}

impl Act {
    pub(super) fn parse(text: &str) -> Option<Act> {
        Some(match text {
            "kill" => Act::Kill,
            "stop" => Act::Stop,
            "restart" => Act::Restart,
            "pause" => Act::Pause,
            "resume" => Act::Resume,
            _ => return None,
        })
    }
}

/// A session, and the server that its client is connected to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LiveSession {
    pub(super) id: SessionId,
    pub(super) server: Option<ServerId>,
}

/// A standalone server or an ensemble. When it is dropped, its servers end and their folders are removed.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: u32,
    servers: Servers,
    /// Its place among the ensembles that may be there.
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Servers {
    Standalone(Box<TestServer>),
    Ensemble(Box<TestEnsemble>),
}

impl Running {
    /// Starts the servers, with their folders below `folder`, and waits until all of them serve clients.
    pub(super) async fn start(
        id: u32,
        wanted: &NewEnsemble,
        folder: &Path,
        place: OwnedSemaphorePermit,
    ) -> Result<Running, ControlError> {
        let (size, options) = wanted.checked()?;
        let options = options.folder(folder);
        let starting = async {
            Ok::<Servers, TestkitError>(if size == 1 {
                Servers::Standalone(Box::new(TestServer::start_with(options).await?))
            } else {
                Servers::Ensemble(Box::new(TestEnsemble::start_with(size, options).await?))
            })
        };
        let servers = timeout(START_WITHIN, starting).await.map_err(|_| ControlError::Late {
            what: "the start of all servers",
            within: START_WITHIN,
            remedy: "is the machine overloaded? --log shows the servers' logs",
        })??;
        Ok(Running { id, servers, _place: place })
    }

    pub(super) fn connect_string(&self) -> String {
        match &self.servers {
            Servers::Standalone(server) => server.connect_string(),
            Servers::Ensemble(ensemble) => ensemble.connect_string(),
        }
    }

    pub(super) fn ids(&self) -> Vec<ServerId> {
        match &self.servers {
            Servers::Standalone(_) => vec![STANDALONE],
            Servers::Ensemble(ensemble) => ensemble.ids().collect(),
        }
    }

    /// The ensemble, if it is not a standalone server.
    pub(super) fn ensemble(&self) -> Option<&TestEnsemble> {
        match &self.servers {
            Servers::Standalone(_) => None,
            Servers::Ensemble(ensemble) => Some(ensemble),
        }
    }

    pub(super) fn server(&self, id: ServerId) -> Result<&TestServer, ControlError> {
        let unknown =
            || ControlError::NoServer { ensemble: self.id, server: id.0, servers: self.ids().len() };
        match &self.servers {
            Servers::Standalone(server) if id == STANDALONE => Ok(server),
            Servers::Standalone(_) => Err(unknown()),
            Servers::Ensemble(ensemble) => ensemble.member(id).map_err(|_| unknown()),
        }
    }

    /// The leader. A standalone server that runs counts as one.
    pub(super) fn leader(&self) -> Option<ServerId> {
        match &self.servers {
            Servers::Standalone(server) => (server.is_up() && !server.is_paused()).then_some(STANDALONE),
            Servers::Ensemble(ensemble) => ensemble.leader(),
        }
    }

    pub(super) fn which(&self, which: WhichServer) -> Result<ServerId, ControlError> {
        match which {
            WhichServer::Leader => self.leader().ok_or(ControlError::NoLeader(self.id)),
            WhichServer::Id(id) => self.server(id).map(|_| id),
        }
    }

    /// Does this with a server. Returns its id.
    pub(super) async fn act(&mut self, which: WhichServer, act: Act) -> Result<ServerId, ControlError> {
        let id = self.which(which)?;
        if matches!(act, Act::Pause | Act::Resume) && !self.server(id)?.is_up() {
            return Err(ControlError::Down(id.0));
        }
        match &mut self.servers {
            Servers::Standalone(server) => match act {
                Act::Kill => server.kill().await,
                Act::Stop => server.stop().await?,
                Act::Restart => server.restart().await?,
                Act::Pause => server.pause().await?,
                Act::Resume => server.resume(),
            },
            Servers::Ensemble(ensemble) => match act {
                Act::Kill => ensemble.kill(id).await?,
                Act::Stop => ensemble.stop(id).await?,
                Act::Restart => ensemble.restart(id).await?,
                Act::Pause => ensemble.pause(id).await?,
                Act::Resume => ensemble.resume(id)?,
            },
        }
        Ok(id)
    }
}

/// Sessions.
impl Running {
    /// The live sessions that the running servers know.
    pub(super) fn sessions(&self) -> Result<Vec<LiveSession>, ControlError> {
        let (mut all, mut connected) = (Vec::new(), Vec::new());
        for id in self.ids() {
            let server = self.server(id)?;
            if server.is_up() {
                all.extend(server.sessions()?);
                let of_server = server.connections()?.into_iter().filter_map(|connection| connection.session);
                connected.extend(of_server.map(|session| (session, id)));
            }
        }
        all.sort();
        all.dedup();
        let server = |id| connected.iter().find(|(session, _)| *session == id).map(|(_, server)| *server);
        Ok(all.into_iter().map(|id| LiveSession { id, server: server(id) }).collect())
    }

    /// Expires a session by a transaction, as if its client had been silent for its timeout.
    pub(super) async fn expire(&self, session: SessionId) -> Result<(), ControlError> {
        let expiring = async {
            match &self.servers {
                Servers::Standalone(server) => {
                    self.check_awake(STANDALONE)?;
                    Ok(server.expire(session).await?)
                }
                Servers::Ensemble(ensemble) => Ok(ensemble.expire(session).await?),
            }
        };
        let expired = timeout(EXPIRE_WITHIN, expiring).await.map_err(|_| ControlError::Late {
            what: "the expiry of the session",
            within: EXPIRE_WITHIN,
            remedy: "it is a transaction, which needs a majority of the servers",
        })?;
        expired.map_err(|error| match error {
            ControlError::Testkit(TestkitError::NoSession(session)) => ControlError::NoSession(session),
            ControlError::Testkit(TestkitError::NoLeader) => ControlError::NoLeader(self.id),
            other => other,
        })
    }

    /// Closes the connection of a session. The session lives on.
    pub(super) fn disconnect(&self, session: SessionId) -> Result<(), ControlError> {
        let closed = match &self.servers {
            Servers::Standalone(server) => {
                self.check_awake(STANDALONE)?;
                server.cut_session(session)?
            }
            Servers::Ensemble(ensemble) => ensemble.cut_session(session)?,
        };
        match closed {
            0 if self.sessions()?.iter().all(|live| live.id != session) => {
                Err(ControlError::NoSession(session))
            }
            0 => Err(ControlError::NoConnection(session)),
            _ => Ok(()),
        }
    }

    fn check_awake(&self, id: ServerId) -> Result<(), ControlError> {
        let server = self.server(id)?;
        match (server.is_up(), server.is_paused()) {
            (false, _) => Err(ControlError::Down(id.0)),
            (true, true) => Err(ControlError::Paused(id.0)),
            (true, false) => Ok(()),
        }
    }
}
