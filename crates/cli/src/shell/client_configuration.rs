//! The configuration file of a Java client, as zkCli.sh takes it by `-client-configuration`.

use super::{connection::SaslUser, error::ShellError, kerberos::KerberosUser};
use ostler_sasl::jaas::{JaasFile, KerberosLogin, Login};
use ostler_tls::settings::{Protocol, StoreFile, TlsSettings};
use std::{collections::HashMap, fs, path::Path};

/// The environment variables in which the scripts of ZooKeeper find the properties of a client.
const FLAG_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JVMFLAGS", "CLIENT_JVMFLAGS"];
/// The property that names a JAAS file.
const JAAS_FILE: &str = "java.security.auth.login.config";

/// The properties of a client, without `zookeeper.` before their names.
pub(super) struct ClientConfiguration(HashMap<String, String>);

impl ClientConfiguration {
    /// Reads a properties file on top of the flags in the environment.
    pub(super) fn read(path: &Path) -> Result<ClientConfiguration, ShellError> {
        let bytes = fs::read(path).map_err(|cause| ShellError::File { path: path.to_owned(), cause })?;
        let in_file = java_properties::read(&*bytes).map_err(|error| {
            ShellError::Refused(format!("{} is no file of Java properties: {error}", path.display()))
        })?;
        let variables = FLAG_VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
        let flags: Vec<String> = variables.collect();
        let in_flags = flags.iter().flat_map(|flags| flags.split_whitespace()).filter_map(|flag| {
            let (name, value) = flag.strip_prefix("-D")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        let short = |name: &str| name.strip_prefix("zookeeper.").unwrap_or(name).to_owned();
        let all = in_flags.chain(in_file).map(|(name, value)| (short(&name), value.trim().to_owned()));
        Ok(ClientConfiguration(all.filter(|(_, value)| !value.is_empty()).collect()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn is(&self, name: &str, otherwise: bool) -> bool {
        self.text(name).map_or(otherwise, |text| text.eq_ignore_ascii_case("true"))
    }

    fn store(&self, which: &str) -> Option<StoreFile> {
        StoreFile::of_keys(|name| self.text(&format!("ssl.{which}.{name}")).map(str::to_owned))
    }

    /// TLS; `None` without `zookeeper.client.secure=true`.
    pub(super) fn tls(&self) -> Result<Option<TlsSettings>, ShellError> {
        if !self.is("client.secure", false) {
            return Ok(None);
        }
        let mut settings = TlsSettings {
            key_store: self.store("keyStore"),
            trust_store: self.store("trustStore"),
            hostname_verification: self.is("ssl.hostnameVerification", true),
            ..TlsSettings::default()
        };
        if settings.trust_store.is_none() {
            return Err(ShellError::Refused(
                "zookeeper.client.secure=true needs zookeeper.ssl.trustStore.location, the authorities to trust".into(),
            ));
        }
        if let Some(versions) = self.text("ssl.enabledProtocols").or_else(|| self.text("ssl.protocol")) {
            settings.protocols.retain(|protocol| {
                let name = match protocol {
                    Protocol::Tls12 => "TLSv1.2",
                    Protocol::Tls13 => "TLSv1.3",
                };
                versions.split(',').any(|version| version.trim() == name || version.trim() == "TLS")
            });
        }
        Ok(Some(settings))
    }

    /// The login of the JAAS file, if one is named.
    pub(super) fn sasl(&self) -> Result<Option<SaslUser>, ShellError> {
        let Some(file) = self.text(JAAS_FILE).filter(|_| self.is("sasl.client", true)) else {
            return Ok(None);
        };
        let file = Path::new(file.strip_prefix("file:").unwrap_or(file));
        let text =
            fs::read_to_string(file).map_err(|cause| ShellError::File { path: file.to_owned(), cause })?;
        let refused = |problem: String| ShellError::Refused(format!("{}: {problem}", file.display()));
        let property = |name: &str| (name == "user.home").then(|| std::env::var("HOME").ok()).flatten();
        let read = JaasFile::parse(&text, &property).map_err(|error| refused(error.to_string()))?;
        let name = self.text("sasl.clientconfig").unwrap_or("Client");
        let Some(section) = read.section(name) else { return Ok(None) };
        match Login::of(section).map_err(|error| refused(error.to_string()))? {
            Login::Digest { own: Some(own), .. } => {
                Ok(Some(SaslUser::Digest { user: own.user, password: own.password }))
            }
            Login::Digest { own: None, .. } => {
                Err(refused(format!("the section {name} needs username and password")))
            }
            Login::Kerberos(login) => Ok(Some(SaslUser::Kerberos(self.kerberos(&login)))),
        }
    }

    fn kerberos(&self, login: &KerberosLogin) -> KerberosUser {
        let keytab = match (&login.keytab, &login.principal) {
            (Some(keytab), Some(principal)) if !login.use_ticket_cache => {
                Some((keytab.strip_prefix("FILE:").unwrap_or(keytab).into(), principal.clone()))
            }
            _ => None,
        };
        KerberosUser {
            keytab,
            service: self.text("sasl.client.username").unwrap_or("zookeeper").to_owned(),
            server_principal: self.text("server.principal").map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_tls::settings::StorePassword;

    fn read(text: &str) -> ClientConfiguration {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("client.properties");
        fs::write(&file, text).unwrap();
        ClientConfiguration::read(&file).unwrap()
    }

    #[test]
    fn a_file_of_zkcli_switches_tls_on() {
        let text = "zookeeper.client.secure=true\nzookeeper.ssl.keyStore.location=/c.jks\n\
                    zookeeper.ssl.keyStore.password=pw\nzookeeper.ssl.trustStore.location=/t.pem\n\
                    zookeeper.ssl.protocol=TLSv1.2\nzookeeper.clientCnxnSocket=x\n";
        let tls = read(text).tls().unwrap().unwrap();
        let key_store = tls.key_store.unwrap();
        assert_eq!(
            (&*key_store.location, key_store.password),
            (Path::new("/c.jks"), StorePassword::Text("pw".into()))
        );
        assert_eq!(tls.protocols, [Protocol::Tls12]);
        assert_eq!(read("zookeeper.ssl.trustStore.location=/t.pem").tls().unwrap(), None);
        assert!(read("zookeeper.client.secure=true").tls().is_err());
    }

    #[test]
    fn a_jaas_file_names_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let jaas = dir.path().join("jaas.conf");
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
        fs::write(&jaas, format!("Client {{ {module} username=\"bob\" password=\"pw\"; }};")).unwrap();
        let named = read(&format!("{JAAS_FILE}={}", jaas.display()));
        let Some(SaslUser::Digest { user, password }) = named.sasl().unwrap() else { panic!("no user") };
        assert_eq!((&*user, &*password), ("bob", "pw"));
        let other = read(&format!("{JAAS_FILE}={}\nzookeeper.sasl.clientconfig=Other", jaas.display()));
        assert!(other.sasl().unwrap().is_none());
        let module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=\"/k\"";
        fs::write(&jaas, format!("Client {{ {module} principal=\"c@R\"; }};")).unwrap();
        let login = format!("{:?}", named.sasl().unwrap());
        assert!(login.contains("/k") && login.contains("c@R") && login.contains("zookeeper"), "{login}");
    }
}
