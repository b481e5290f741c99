//! Reads the files of TLS at the start, and again when they change.

use crate::{
    error::ServerError,
    tls_handshake::TlsConfig,
    watched_files::{LOOK_EVERY, SettledContents},
};
use ostler_tls::{
    material::{TlsFileContents, TlsFileError, TlsMaterial},
    settings::TlsSettings,
};
use tokio::task::spawn_blocking;

/// The files of one set of keys, and the configuration that was made of them.
pub(crate) struct TlsFiles<C> {
    settings: TlsSettings,
    /// The keys, for messages.
    keys: &'static str,
    contents: SettledContents<TlsFileContents>,
    build: fn(&TlsMaterial, &TlsSettings) -> Result<C, TlsFileError>,
}

impl<C: Send + 'static> TlsFiles<C> {
    /// Reads the files for the first time.
    pub(crate) fn open(
        settings: TlsSettings,
        keys: &'static str,
        build: fn(&TlsMaterial, &TlsSettings) -> Result<C, TlsFileError>,
    ) -> Result<(TlsFiles<C>, C), ServerError> {
        // Before the files are used: a change meanwhile is seen at the next look.
        let contents = SettledContents::new(TlsFileContents::read(&settings));
        let built = TlsMaterial::read(&settings).and_then(|material| build(&material, &settings));
        let config = built.map_err(|source| ServerError::Tls { keys, source })?;
        Ok((TlsFiles { settings, keys, contents, build }, config))
    }

    /// Reads the files again if they have changed. If they cannot be used, what was read before stays in force.
    fn look(&mut self) -> Option<C> {
        if !self.contents.note(TlsFileContents::read(&self.settings)) {
            return None;
        }
        let built =
            TlsMaterial::read(&self.settings).and_then(|material| (self.build)(&material, &self.settings));
        match built {
            Ok(config) => {
                tracing::info!(keys = self.keys, "the files of TLS have changed: new connections use them");
                Some(config)
            }
            Err(error) => {
                tracing::error!(
                    keys = self.keys, %error,
                    "the files of TLS have changed and cannot be used: the certificate that was read before stays in force; \
                     correct the file"
                );
                None
            }
        }
    }

    /// Looks at the files until it is dropped, and passes on what is made of changed ones.
    pub(crate) async fn watch(mut self, replace: impl Fn(C)) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let looked = spawn_blocking(move || {
                let changed = self.look();
                (self, changed)
            });
            let Ok((files, changed)) = looked.await else { return };
            self = files;
            if let Some(config) = changed {
                replace(config);
            }
        }
    }
}

/// The configuration of a port for clients, and its files.
pub(crate) fn client_port(
    settings: &TlsSettings,
) -> Result<(TlsFiles<rustls::ServerConfig>, TlsConfig), ServerError> {
    let (files, config) = TlsFiles::open(settings.clone(), "ssl.*", TlsMaterial::server_config)?;
    Ok((files, TlsConfig::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_tls::settings::{ClientAuth, StoreFile, StorePassword};
    use std::fs;

    fn key_store() -> String {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        format!("{}{}", own.signing_key.serialize_pem(), own.cert.pem())
    }

    #[test]
    fn changed_files_are_read_again_and_broken_ones_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("server.pem");
        fs::write(&location, key_store()).unwrap();
        let key_store_file =
            StoreFile { location: location.clone(), kind: None, password: StorePassword::None };
        let settings = TlsSettings {
            key_store: Some(key_store_file),
            client_auth: ClientAuth::None,
            ..TlsSettings::default()
        };
        let (mut files, _) = TlsFiles::open(settings, "ssl.*", TlsMaterial::server_config).unwrap();
        assert!(files.look().is_none(), "nothing has changed");
        let mut look_twice = || files.look().or_else(|| files.look());
        fs::write(&location, "broken").unwrap();
        assert!(look_twice().is_none());
        fs::remove_file(&location).unwrap();
        assert!(look_twice().is_none());
        fs::write(&location, key_store()).unwrap();
        assert!(look_twice().is_some());
        assert!(files.look().is_none(), "once");
    }

    #[test]
    fn a_file_that_cannot_be_used_at_the_start_is_named() {
        let location = "/nowhere/server.pem".into();
        let key_store = Some(StoreFile { location, kind: None, password: StorePassword::None });
        let settings = TlsSettings { key_store, ..TlsSettings::default() };
        let error = TlsFiles::open(settings, "ssl.*", TlsMaterial::server_config).err().unwrap().to_string();
        assert!(error.contains("/nowhere/server.pem: cannot be read"), "{error}");
    }
}
