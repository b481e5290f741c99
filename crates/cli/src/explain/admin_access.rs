//! The options by which admin servers are reached.

use crate::{
    admin_http::{AdminClient, TlsFilesError},
    tls_options::{TlsOptions, UnreadableFile},
};
use clap::Args;
use std::{fs, io, path::PathBuf};

/// The admin servers, and the identity for those that want one.
#[derive(Debug, Args)]
pub(super) struct AdminAccess {
    /// The admin servers of all members, joined by commas.
    #[arg(long, value_delimiter = ',', value_name = "URL,...", default_value = "http://127.0.0.1:8080")]
    pub(super) admin: Vec<String>,
    /// Identity for admin servers that want one, by digest; other users of this machine can see it, unlike with
    /// --auth-file.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "auth_file")]
    auth: Option<String>,
    /// File with USER:PASSWORD on its first line.
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
}

/// Why no admin server can be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("cannot read {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{0}")]
    Tls(#[from] TlsFilesError),
    #[error("an identity is USER:PASSWORD, without spaces and control characters")]
    Identity,
}

impl From<UnreadableFile> for AccessError {
    fn from(UnreadableFile { path, cause }: UnreadableFile) -> AccessError {
        AccessError::File { path, cause }
    }
}

impl AdminAccess {
    /// A client with these files and this identity.
    pub(super) fn client(&self) -> Result<AdminClient, AccessError> {
        let client = AdminClient::new(self.tls.read()?.as_ref())?;
        Ok(match self.identity()? {
            Some(identity) => client.with_identity(&identity),
            None => client,
        })
    }

    fn identity(&self) -> Result<Option<String>, AccessError> {
        let identity = match (&self.auth, &self.auth_file) {
            (Some(identity), _) => identity.clone(),
            (None, Some(path)) => {
                let text = fs::read_to_string(path)
                    .map_err(|cause| AccessError::File { path: path.clone(), cause })?;
                text.lines().next().unwrap_or_default().to_owned()
            }
            (None, None) => return Ok(None),
        };
        // The servers split the header at its spaces.
        let is_sound = identity.split_once(':').is_some_and(|(user, _)| !user.is_empty())
            && !identity.chars().any(|c| c.is_whitespace() || c.is_control());
        if is_sound { Ok(Some(identity)) } else { Err(AccessError::Identity) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        access: AdminAccess,
    }

    fn identity(words: &[&str]) -> Result<Option<String>, AccessError> {
        Cli::parse_from(["explain"].iter().chain(words)).access.identity()
    }

    #[test]
    fn an_identity_comes_from_the_line_or_from_a_file() {
        assert_eq!(identity(&[]).unwrap(), None);
        assert_eq!(identity(&["--auth", "ann:se:cret"]).unwrap().as_deref(), Some("ann:se:cret"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("identity");
        fs::write(&file, "ann:secret\nmore\n").unwrap();
        let file = file.display().to_string();
        assert_eq!(identity(&["--auth-file", &file]).unwrap().as_deref(), Some("ann:secret"));
        for wrong in ["ann", ":secret", "ann:a b", "ann:a\nb"] {
            assert!(matches!(identity(&["--auth", wrong]), Err(AccessError::Identity)), "{wrong}");
        }
        assert!(matches!(identity(&["--auth-file", "/no/such/file"]), Err(AccessError::File { .. })));
    }
}
