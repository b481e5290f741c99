//! SASL: the logins of clients, and of servers at each other.

use super::error::ConfigError;
use super::settings::Settings;
use crate::principal_names::{PrincipalNames, RuleError};
use std::path::{Path, PathBuf};

const PROVIDER: &str = ".SASLAuthenticationProvider";

/// A section of a JAAS file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JaasSection {
    /// `sasl.jaasFile`, or the JVM's `java.security.auth.login.config`.
    pub file: PathBuf,
    /// The section.
    pub section: String,
}

/// Where the users of SASL are.
#[derive(Clone, PartialEq, Eq)]
pub enum SaslSettings {
    /// `sasl.usersFile`: lines `name:password` or `name:md5:HASH`.
    UsersFile(PathBuf),
    /// `sasl.jaasFile` and `sasl.serverconfig`.
    Jaas {
        /// The section with the users.
        section: JaasSection,
        /// `SASLAuthenticationProvider.superPassword`: the password of the user named `super`.
        super_password: Option<String>,
        /// How principals of Kerberos become ids.
        names: PrincipalSettings,
        /// Whether the server does not start without the section. A file that only the JVM's property names may be
        /// for others: a Java server starts without SASL then.
        is_needed: bool,
    },
}

/// How principals of Kerberos become ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrincipalSettings {
    /// `security.auth_to_local`: the rules; `DEFAULT` by default.
    pub rules: String,
    /// `kerberos.removeHostFromPrincipal`; false by default.
    pub removes_host: bool,
    /// `kerberos.removeRealmFromPrincipal`; false by default.
    pub removes_realm: bool,
}

impl PrincipalSettings {
    fn read(settings: &Settings) -> PrincipalSettings {
        PrincipalSettings {
            rules: settings.text("security.auth_to_local").unwrap_or_default(),
            removes_host: settings.bool("kerberos.removeHostFromPrincipal"),
            removes_realm: settings.bool("kerberos.removeRealmFromPrincipal"),
        }
    }

    /// The names by these settings. `default_realm` is that of krb5.conf.
    pub(crate) fn names(&self, default_realm: Option<String>) -> Result<PrincipalNames, RuleError> {
        PrincipalNames::new(&self.rules, default_realm, (self.removes_host, self.removes_realm))
    }
}

/// Refuses rules that cannot be read.
pub(super) fn check_rules(settings: &Settings) -> Result<(), ConfigError> {
    match settings.entry("security.auth_to_local") {
        None => Ok(()),
        Some(entry) => PrincipalSettings::read(settings)
            .names(None)
            .map(drop)
            .map_err(|error| entry.refused(error.to_string())),
    }
}

/// Without the password.
impl std::fmt::Debug for SaslSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SaslSettings::UsersFile(file) => f.debug_tuple("UsersFile").field(file).finish(),
            SaslSettings::Jaas { section, .. } => {
                f.debug_struct("Jaas").field("section", section).finish_non_exhaustive()
            }
        }
    }
}

impl SaslSettings {
    pub(crate) fn file(&self) -> &Path {
        match self {
            SaslSettings::UsersFile(file) => file,
            SaslSettings::Jaas { section, .. } => &section.file,
        }
    }

    /// Reads the keys. If the servers log in at each other, a JAAS file may be for them alone.
    pub(super) fn read(settings: &Settings) -> Option<SaslSettings> {
        if let Some(file) = settings.text("sasl.usersFile") {
            return Some(SaslSettings::UsersFile(file.into()));
        }
        let section = settings.text("sasl.serverconfig").unwrap_or_else(|| "Server".into());
        let section = jaas_section(settings, section)?;
        let is_for_servers = settings.bool("quorum.auth.enableSasl") && !has_provider(settings);
        let super_password = settings.text("SASLAuthenticationProvider.superPassword");
        let is_in_file =
            |name: &str| settings.entry(name).is_some_and(|entry| entry.location.line().is_some());
        let is_needed = is_in_file("sasl.jaasFile") || is_in_file("sasl.serverconfig");
        let names = PrincipalSettings::read(settings);
        (!is_for_servers).then_some(SaslSettings::Jaas { section, super_password, names, is_needed })
    }
}

fn jaas_section(settings: &Settings, section: String) -> Option<JaasSection> {
    Some(JaasSection { file: settings.text("sasl.jaasFile")?.into(), section })
}

/// Logins of servers at each other (`quorum.auth.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumSasl {
    /// The users that other servers may log in as.
    pub server: JaasSection,
    /// The user as whom this server logs in.
    pub learner: JaasSection,
    /// Whether other servers have to log in.
    pub server_requires: bool,
    /// Whether this server logs in.
    pub learner_requires: bool,
    /// `quorum.auth.kerberos.servicePrincipal`: the principal of a server that this one calls. `_HOST` stands for its host.
    pub service: String,
}

impl QuorumSasl {
    /// Reads the keys; `None` without `quorum.auth.enableSasl`.
    pub(super) fn read(settings: &Settings) -> Result<Option<QuorumSasl>, ConfigError> {
        let is_set = |name: &str| settings.bool(name);
        for (key, needs) in [
            ("quorum.auth.serverRequireSasl", "quorum.auth.learnerRequireSasl"),
            ("quorum.auth.learnerRequireSasl", "quorum.auth.enableSasl"),
        ] {
            if let Some(entry) = settings.entry(key).filter(|_| is_set(key) && !is_set(needs)) {
                return Err(
                    entry.refused(format!("needs {needs}=true at all servers, and that is set first"))
                );
            }
        }
        let Some(entry) =
            settings.entry("quorum.auth.enableSasl").filter(|_| is_set("quorum.auth.enableSasl"))
        else {
            return Ok(None);
        };
        let section = |key: &str| {
            jaas_section(settings, settings.text(key).unwrap_or_default()).ok_or_else(|| {
                entry.refused(
                    "needs a JAAS file with the users; add a line such as sasl.jaasFile=/etc/zookeeper/jaas.conf",
                )
            })
        };
        Ok(Some(QuorumSasl {
            server: section("quorum.auth.server.saslLoginContext")?,
            learner: section("quorum.auth.learner.saslLoginContext")?,
            server_requires: is_set("quorum.auth.serverRequireSasl"),
            learner_requires: is_set("quorum.auth.learnerRequireSasl"),
            service: settings.text("quorum.auth.kerberos.servicePrincipal").unwrap_or_default(),
        }))
    }
}

/// Refuses providers that are not here.
pub(super) fn check_providers(settings: &Settings) -> Result<(), ConfigError> {
    const KNOWN: [&str; 5] = ["SASL", "X509", "Digest", "IP", "Ensemble"];
    let is_known = |class: &str| {
        let name = class.strip_prefix("org.apache.zookeeper.server.auth.");
        let scheme = name.and_then(|name| name.strip_suffix("AuthenticationProvider"));
        scheme.is_some_and(|scheme| KNOWN.contains(&scheme))
    };
    match settings.family("authProvider.*").find(|entry| !is_known(&entry.value)) {
        None => Ok(()),
        Some(entry) => Err(entry.refused(
            "Java classes cannot be loaded here, and ACLs of the provider's scheme would protect nothing; known are the \
             providers of ZooKeeper for ip, digest, x509, sasl and ensemble",
        )),
    }
}

/// Whether a line `authProvider.N` names the provider of the scheme `sasl`.
pub(super) fn has_provider(settings: &Settings) -> bool {
    names_provider(settings, PROVIDER)
}

fn names_provider(settings: &Settings, class: &str) -> bool {
    settings.family("authProvider.*").any(|entry| entry.value.ends_with(class))
}

/// The names of `ensembleAuthName`, if a line `authProvider.N` names the provider of the scheme `ensemble`.
pub(super) fn ensemble_names(settings: &Settings) -> Option<Vec<String>> {
    let names = settings.text("ensembleAuthName").unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    names_provider(settings, ".EnsembleAuthenticationProvider").then(|| names.collect())
}

/// `superUser` and `superUser.N`.
pub(super) fn super_users(settings: &Settings) -> Vec<String> {
    let more = settings.family("superUser.*").map(|entry| entry.value.clone());
    let all = settings.text("superUser").into_iter().chain(more);
    all.filter(|user| !user.is_empty()).collect()
}
