//! The weaknesses of a configuration: what is open to somebody who should not get in.

use super::{AdminSettings, SecurePort, ServerConfig};
use crate::admin::four_letter::Word;
use ostler_server_core::passwords::NewPasswords;
use ostler_tls::settings::ClientAuth;
use std::{fmt, net::SocketAddr, path::Path};

/// A weakness, as a sentence that says what is open and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weakness {
    /// Clients connect without TLS.
    PlainClientPort(SocketAddr),
    /// The plain port takes TLS, too, but does not ask for it.
    UnifiedClientPort(SocketAddr),
    /// Clients need no certificate.
    NoClientCertificates,
    /// ACLs are not checked.
    NoAcls,
    /// The root of a new ensemble is open to all.
    OpenRoot,
    /// The password of a super user or of SASL users goes over a plain connection.
    PlainPasswords,
    /// Session passwords can be computed.
    DerivedSessionPasswords,
    /// Four-letter words show more than the version and the role.
    TalkativeWords(String),
    /// Other machines reach the admin server without TLS.
    PlainAdmin(SocketAddr),
    /// Other machines reach the port for metrics.
    OpenMetrics(SocketAddr),
    /// Nothing is audited.
    NoAudit,
    /// Other users of the machine may read the data.
    OpenFiles(u32),
    /// Servers talk without TLS and without logins.
    OpenPeers,
    /// Servers log in, but talk without TLS.
    PlainPeers,
    /// The ports for servers take plain connections, too.
    UnifiedPeers,
    /// Servers need no certificate.
    NoPeerCertificates,
    /// The names of servers' certificates are not checked.
    UncheckedPeerNames,
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weakness::PlainClientPort(address) => write!(
                f,
                "clients reach {address} without TLS: everybody on the way reads and changes what they say; set \
                 secureClientPort, and remove clientPort"
            ),
            Weakness::UnifiedClientPort(address) => write!(
                f,
                "clients reach {address} with TLS or without; once all have it, set secureClientPort, and remove clientPort \
                 and client.portUnification"
            ),
            Weakness::NoClientCertificates => f.write_str(
                "clients need no certificate, so everybody may connect; set ssl.clientAuth=need, or let them log in by SASL \
                 (sessionRequireClientSASLAuth=true)",
            ),
            Weakness::NoAcls => {
                f.write_str("skipACL=yes: every client may read and change everything; remove the line")
            }
            Weakness::OpenRoot => f.write_str(
                "every client may create and delete znodes at the root, unless its ACL was changed; name the client that may, \
                 by X509AuthenticationProvider.superUser=CN=admin, and set security=strict before the first start",
            ),
            Weakness::PlainPasswords => f.write_str(
                "passwords (superDigest, SASL) go over a port without TLS; use secureClientPort, and remove clientPort",
            ),
            Weakness::DerivedSessionPasswords => f.write_str(
                "a client that knows the id of a session can take the session, as in ZooKeeper; if all servers are Ostler's, \
                 set sessionPasswords=secret (docs/sessions.md)",
            ),
            Weakness::TalkativeWords(words) => write!(
                f,
                "four-letter words show sessions, addresses and settings to every client: {words}; leave \
                 4lw.commands.whitelist at srvr,ruok"
            ),
            Weakness::PlainAdmin(address) => write!(
                f,
                "other machines reach the admin server at {address} without TLS; set admin.forceHttps=true with \
                 ssl.quorum.*, or leave out admin.serverAddress"
            ),
            Weakness::OpenMetrics(address) => write!(
                f,
                "everybody who reaches {address} reads the metrics; set metricsProvider.httpHost=127.0.0.1"
            ),
            Weakness::NoAudit => {
                f.write_str("nothing records who has changed what; set audit.enable=true")
            }
            Weakness::OpenFiles(mode) => write!(
                f,
                "other users of this machine may read the data (files.mode={mode:o}); remove the line"
            ),
            Weakness::OpenPeers => f.write_str(
                "whoever reaches the ports of the server.N lines can read and change all data in the name of anybody; set \
                 sslQuorum=true (docs/secure.md), and keep a firewall in front of them until then",
            ),
            Weakness::PlainPeers => f.write_str(
                "servers log in at each other, but talk without TLS: everybody on the way reads and changes the data; set \
                 sslQuorum=true",
            ),
            Weakness::UnifiedPeers => f.write_str(
                "the ports for the other servers take plain connections, too; once all servers have sslQuorum=true, set \
                 portUnification=false",
            ),
            Weakness::NoPeerCertificates => f.write_str(
                "servers need no certificate, so everybody may come as a server; set ssl.quorum.clientAuth=need",
            ),
            Weakness::UncheckedPeerNames => f.write_str(
                "every certificate of the authority is good for every server; set ssl.quorum.hostnameVerification=true and \
                 ssl.quorum.clientHostnameVerification=true",
            ),
        }
    }
}

impl ServerConfig {
    /// Every weakness of these settings, the gravest first. Ports that only this machine reaches count, too.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        let mut found = self.weaknesses_of_peers();
        let enforces_sasl = self.auth.enforce_auth_schemes.iter().any(|scheme| scheme == "sasl");
        let secure = self.clients.secure.as_deref();
        if let Some(address) = self.clients.client_address {
            found.push(match secure {
                Some(SecurePort { unification: true, .. }) => Weakness::UnifiedClientPort(address),
                _ => Weakness::PlainClientPort(address),
            });
            if self.auth.super_digest.is_some() || self.auth.sasl.is_some() {
                found.push(Weakness::PlainPasswords);
            }
        }
        if secure.is_some_and(|secure| secure.tls.client_auth != ClientAuth::Need) && !enforces_sasl {
            found.push(Weakness::NoClientCertificates);
        }
        if self.auth.skip_acl {
            found.push(Weakness::NoAcls);
        }
        if !self.strict || self.auth.x509_super_user.is_none() {
            found.push(Weakness::OpenRoot);
        }
        if self.folders.files_mode & 0o077 != 0 {
            found.push(Weakness::OpenFiles(self.folders.files_mode));
        }
        let is_modest = |word: &&Word| matches!(word, Word::Srvr | Word::Ruok | Word::Isro);
        let talkative: Vec<&str> = self
            .four_letter_whitelist
            .words()
            .iter()
            .filter(|word| !is_modest(word))
            .map(|word| word.name())
            .collect();
        if !talkative.is_empty() {
            found.push(Weakness::TalkativeWords(talkative.join(",")));
        }
        let is_plain = |admin: &&AdminSettings| {
            !admin.is_local() && admin.https.as_ref().is_none_or(|https| https.unification)
        };
        if let Some(admin) = self.admin.as_ref().filter(is_plain) {
            found.push(Weakness::PlainAdmin(admin.address));
        }
        if let Some(metrics) = self.metrics.as_ref().filter(|metrics| !metrics.address.ip().is_loopback()) {
            found.push(Weakness::OpenMetrics(metrics.address));
        }
        if self.audit.is_none() {
            found.push(Weakness::NoAudit);
        }
        if self.sessions.session_passwords.new == NewPasswords::Derived {
            found.push(Weakness::DerivedSessionPasswords);
        }
        found
    }

    fn weaknesses_of_peers(&self) -> Vec<Weakness> {
        let Some(ensemble) = &self.ensemble else { return Vec::new() };
        let logs_in = ensemble.sasl.as_ref().is_some_and(|sasl| sasl.server_requires);
        let Some(tls) = ensemble.tls.as_ref().filter(|tls| tls.ssl_quorum) else {
            return vec![if logs_in { Weakness::PlainPeers } else { Weakness::OpenPeers }];
        };
        let mut found = Vec::new();
        if tls.port_unification {
            found.push(if logs_in { Weakness::UnifiedPeers } else { Weakness::OpenPeers });
        }
        if tls.tls.client_auth != ClientAuth::Need && !logs_in {
            found.push(Weakness::NoPeerCertificates);
        }
        if !tls.checks_callers() {
            found.push(Weakness::UncheckedPeerNames);
        }
        found
    }

    /// Three lines that say what is open to whom.
    pub fn open_doors(&self) -> [String; 3] {
        let trusted = |tls: &ostler_tls::settings::TlsSettings| {
            let file = tls.trust_store.as_ref().map(|store| &*store.location);
            file.map_or("any authority".into(), |file: &Path| file.display().to_string())
        };
        let clients = match self.clients.secure.as_deref() {
            Some(secure @ SecurePort { address: Some(address), .. }) => {
                format!("clients: at {address}, by TLS with a certificate of {}", trusted(&secure.tls))
            }
            _ => "clients: at no port with TLS".into(),
        };
        let servers = match self.ensemble.as_ref().and_then(|ensemble| ensemble.tls.as_ref()) {
            Some(tls) => format!(
                "servers: at the ports of this server's server.N line, by TLS with a certificate of {} for the host of \
                 their line",
                trusted(&tls.tls)
            ),
            None => "servers: none, this one is standalone".into(),
        };
        let words: Vec<&str> = self.four_letter_whitelist.words().iter().map(|word| word.name()).collect();
        [clients, servers, format!("operators: the words {} at the clients' port", words.join(", "))]
    }
}
