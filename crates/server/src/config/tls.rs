//! The settings of TLS, from the keys `ssl.*` and `ssl.quorum.*`.

use super::error::{ConfigError, NoteLevel};
use super::settings::Settings;
use ostler_tls::settings::{ClientAuth, Protocol, StoreFile, TlsSettings};

/// One of the two sets of keys.
#[derive(Clone, Copy)]
pub(super) struct KeySet {
    /// The beginning of its keys.
    prefix: &'static str,
    /// The key that needs the set.
    used_by: &'static str,
}

impl KeySet {
    pub(super) const CLIENTS: KeySet = KeySet { prefix: "ssl.", used_by: "secureClientPort" };
    pub(super) const QUORUM: KeySet = KeySet { prefix: "ssl.quorum.", used_by: "sslQuorum" };

    fn key(self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A text that is not empty.
    fn text(self, settings: &Settings, name: &str) -> Option<String> {
        settings.text(&self.key(name)).filter(|text| !text.is_empty())
    }

    /// An error about a key of the set; about the key that needs the set if it is not there.
    fn refused(self, settings: &Settings, file: &str, name: &str, why: String) -> ConfigError {
        let key = self.key(name);
        match settings.entry(&key).or_else(|| settings.entry(self.used_by)) {
            Some(entry) => entry.refused(why),
            None => ConfigError::Contradiction { file: file.into(), why: format!("{key}: {why}") },
        }
    }

    /// Warns of keys that nothing uses.
    pub(super) fn note_unused(self, settings: &mut Settings) {
        let is_of_set =
            |key: &str| self.prefix != KeySet::CLIENTS.prefix || !key.starts_with(KeySet::QUORUM.prefix);
        let lines = settings.lines_under(self.prefix).filter(|entry| is_of_set(&entry.key));
        let Some(entry) = lines.min_by_key(|entry| entry.location.line()).cloned() else { return };
        let used_by = match self.used_by {
            "secureClientPort" => "secureClientPort or client.portUnification",
            _ => "sslQuorum, portUnification, admin.forceHttps or https:// in admin.peers",
        };
        let text = format!("{} and the like have no effect without {used_by}", entry.key);
        settings.note(NoteLevel::Warning, &entry.location, text);
    }

    /// Reads the set. It must be whole: a port without a key, or one that trusts nobody, serves nobody.
    pub(super) fn read(self, file: &str, settings: &Settings) -> Result<TlsSettings, ConfigError> {
        let client_auth = match self.text(settings, "clientAuth").as_deref() {
            Some("none") => ClientAuth::None,
            Some("want") => ClientAuth::Want,
            _ => ClientAuth::Need,
        };
        let tls = self.read_with(file, settings, client_auth)?;
        // Servers call each other, and check whom they reach.
        if tls.trust_store.is_none() && self.prefix == KeySet::QUORUM.prefix {
            return Err(self.needs_trust(settings, file));
        }
        Ok(tls)
    }

    fn needs_trust(self, settings: &Settings, file: &str) -> ConfigError {
        let example = self.key("trustStore.location=/etc/zookeeper/ca.pem");
        let why =
            format!("certificates are checked, so TLS needs a trust store; add a line such as {example}");
        self.refused(settings, file, "trustStore.location", why)
    }

    /// Reads the set for a port that asks its clients for certificates in this way.
    pub(super) fn read_with(
        self,
        file: &str,
        settings: &Settings,
        client_auth: ClientAuth,
    ) -> Result<TlsSettings, ConfigError> {
        let key_store = self.store(settings, "keyStore");
        let trust_store = self.store(settings, "trustStore");
        if key_store.is_none() {
            let example = self.key("keyStore.location=/etc/zookeeper/server.pem");
            let why = format!("TLS needs a key store; add a line such as {example}");
            return Err(self.refused(settings, file, "keyStore.location", why));
        }
        if trust_store.is_none() && client_auth != ClientAuth::None {
            return Err(self.needs_trust(settings, file));
        }
        self.with_stores(file, settings, (key_store, trust_store), client_auth)
    }

    /// Reads the set for connections to other servers. A certificate of this server's own is not needed.
    pub(super) fn read_to_call(self, file: &str, settings: &Settings) -> Result<TlsSettings, ConfigError> {
        let Some(trust_store) = self.store(settings, "trustStore") else {
            return Err(self.needs_trust(settings, file));
        };
        let stores = (self.store(settings, "keyStore"), Some(trust_store));
        self.with_stores(file, settings, stores, ClientAuth::None)
    }

    fn with_stores(
        self,
        file: &str,
        settings: &Settings,
        (key_store, trust_store): (Option<StoreFile>, Option<StoreFile>),
        client_auth: ClientAuth,
    ) -> Result<TlsSettings, ConfigError> {
        let crl_location = self.text(settings, "crl.location").map(Into::into);
        if settings.bool(&self.key("crl")) && crl_location.is_none() {
            let why = format!(
                "Ostler fetches no revocation lists; add {}, a file with them, or remove this line",
                self.key("crl.location")
            );
            return Err(self.refused(settings, file, "crl", why));
        }
        Ok(TlsSettings {
            key_store,
            trust_store,
            crl_location,
            protocols: self.protocols(file, settings)?,
            cipher_suites: list(&self.text(settings, "ciphersuites").unwrap_or_default()),
            client_auth,
            hostname_verification: settings.bool(&self.key("hostnameVerification")),
        })
    }

    fn store(self, settings: &Settings, which: &str) -> Option<StoreFile> {
        StoreFile::of_keys(|name| self.text(settings, &format!("{which}.{name}")))
    }

    fn protocols(self, file: &str, settings: &Settings) -> Result<Vec<Protocol>, ConfigError> {
        let (name, written) = match self.text(settings, "enabledProtocols") {
            Some(written) => ("enabledProtocols", written),
            None => ("protocol", self.text(settings, "protocol").unwrap_or_else(|| "TLS".into())),
        };
        let mut protocols = Vec::new();
        for version in list(&written) {
            match &*version {
                "TLSv1.3" => protocols.push(Protocol::Tls13),
                "TLSv1.2" => protocols.push(Protocol::Tls12),
                "TLS" => protocols.extend([Protocol::Tls12, Protocol::Tls13]),
                _ => {
                    let why = format!("{version} is not spoken here; use TLSv1.2, TLSv1.3 or both");
                    return Err(self.refused(settings, file, name, why));
                }
            }
        }
        protocols.sort_unstable();
        protocols.dedup();
        Ok(protocols)
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(String::from).collect()
}
