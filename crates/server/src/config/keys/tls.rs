use super::super::values::ANY_INT;
use super::super::values::Kind::{Boolean, LooseBoolean, OneOf, Path, Text};
use super::Fate::{Absent, Obeyed, Refused, Replaced};
use super::{Key, Section, file, property};

pub(super) const SECTION: Section = Section { title: "Encryption (TLS)", keys: KEYS };

const NO_CLASS: &str = "Java classes cannot be loaded here; name a key store and a trust store instead";
const NO_OCSP: &str = "Ostler asks no OCSP server; name a file of revocation lists with crl.location instead, which is read again \
                       when it changes";
const ALWAYS_RELOADS: &str = "The files are always read again when they change";

/// The keys that there are once for clients and once for the other servers.
macro_rules! both_sets {
    ($($prefix:literal: $($more:expr),*;)*) => {
        &[$(
            property(concat!($prefix, "keyStore.location"), Path, "", Obeyed("The file with the own key and its certificates: PEM, PKCS12 or JKS")),
            property(concat!($prefix, "keyStore.password"), Text, "", Obeyed("The password of the key store and of the key in it")),
            property(concat!($prefix, "keyStore.passwordPath"), Path, "", Obeyed("A file with that password; it wins over keyStore.password")),
            property(concat!($prefix, "keyStore.type"), Text, "", Obeyed("JKS, PEM or PKCS12; without it the ending of the file's name decides: .jks, .pem, .p12")),
            property(concat!($prefix, "trustStore.location"), Path, "", Obeyed("The file with the authorities whose certificates are accepted. Without it a server that asks for certificates does not start; Java takes the JVM's list")),
            property(concat!($prefix, "trustStore.password"), Text, "", Obeyed("The password of the trust store")),
            property(concat!($prefix, "trustStore.passwordPath"), Path, "", Obeyed("A file with that password; it wins over trustStore.password")),
            property(concat!($prefix, "trustStore.type"), Text, "", Obeyed("As keyStore.type")),
            property(concat!($prefix, "crl.location"), Path, "", Obeyed("Ostler's own: a file with lists of revoked certificates, PEM or DER. Each authority of a certificate needs its list in it")),
            property(concat!($prefix, "protocol"), Text, "", Obeyed("The only version of TLS, TLSv1.2 or TLSv1.3; both without it")),
            property(concat!($prefix, "enabledProtocols"), Text, "", Obeyed("A comma list of versions; it wins over protocol")),
            property(concat!($prefix, "ciphersuites"), Text, "", Obeyed("A comma list of cipher suites, by the names of IANA; those that rustls does not have are left out")),
            property(concat!($prefix, "clientAuth"), OneOf(&["none", "want", "need", ""]), "need", Obeyed("Whether those who connect need a certificate. want: a certificate that is shown must be good")),
            property(concat!($prefix, "crl"), LooseBoolean, "false", Obeyed("true: needs crl.location, because Ostler fetches no lists")),
            property(concat!($prefix, "ocsp"), LooseBoolean, "false", Refused(NO_OCSP)),
            property(concat!($prefix, "context.supplier.class"), Text, "", Refused(NO_CLASS)),
            $($more,)*
        )*]
    };
}

const KEYS: &[Key] = both_sets! {
    "ssl.":
        property("ssl.hostnameVerification", LooseBoolean, "true", Replaced("Belongs to clients: the server checks no names of clients")),
        property("ssl.clientHostnameVerification", LooseBoolean, "false", Absent("The names in clients' certificates are not compared with their addresses")),
        property("ssl.allowReverseDnsLookup", LooseBoolean, "false", Replaced("No address is ever looked up backwards")),
        property("ssl.handshakeDetectionTimeoutMillis", ANY_INT, "5000", Replaced("A handshake of a client has nio.sessionlessCnxnTimeout")),
        property("ssl.sslProvider", Text, "JDK", Replaced("TLS is that of rustls")),
        property("ssl.authProvider", OneOf(&["x509", ""]), "x509", Obeyed("The scheme that certificates of clients prove"));
    "ssl.quorum.":
        property("ssl.quorum.hostnameVerification", LooseBoolean, "true", Obeyed("Whether the certificate of another server must be for the host of its server.N line")),
        property("ssl.quorum.clientHostnameVerification", LooseBoolean, "true", Obeyed("Whether that counts for servers that connect to this one, too")),
        property("ssl.quorum.allowReverseDnsLookup", LooseBoolean, "true", Replaced("No address is ever looked up backwards: certificates are compared with the server.N lines")),
        property("ssl.quorum.handshakeDetectionTimeoutMillis", ANY_INT, "5000", Obeyed("Milliseconds in which a server that connects has to begin")),
        file("sslQuorum", Boolean, "false", Obeyed("The servers of the ensemble talk by TLS")),
        file("portUnification", Boolean, "false", Obeyed("The ports for the other servers take plain connections, too: for the time of a change to TLS")),
        file("sslQuorumReloadCertFiles", Boolean, "false", Replaced(ALWAYS_RELOADS)),
        property("client.portUnification", LooseBoolean, "false", Obeyed("clientPort takes TLS, too")),
        property("client.certReload", LooseBoolean, "false", Replaced(ALWAYS_RELOADS)),
        property("fips-mode", LooseBoolean, "true", Replaced("The checks that it switches off in Java are always on here"));
};
