use super::super::values::ANY_INT;
use super::super::values::Kind::{Boolean, LooseBoolean, OneOf, Path, Text, YesNo};
use super::Fate::{Obeyed, Replaced};
use super::{Key, Section, file, property};

pub(super) const SECTION: Section = Section { title: "Access", keys: KEYS };

const KEYS: &[Key] = &[
    property(
        "security",
        OneOf(&["", "strict"]),
        "",
        Obeyed(
            "Ostler's own. strict: the server starts only if clients and servers need certificates at every port, the names of \
             servers are checked, and nothing else is open that `ostler check` warns of. The audit log is on by default then, \
             and the four-letter words are srvr and ruok. In a new ensemble only X509AuthenticationProvider.superUser may write at \
             the root",
        ),
    ),
    property(
        "skipACL",
        YesNo { otherwise: false },
        "no",
        Obeyed("yes: ACLs are not checked and everybody may do everything"),
    ),
    property(
        "DigestAuthenticationProvider.enabled",
        LooseBoolean,
        "true",
        Obeyed("The scheme digest can be used"),
    ),
    property(
        "DigestAuthenticationProvider.superDigest",
        Text,
        "",
        Obeyed("The digest super:… whose owner may do everything"),
    ),
    // An id made with another algorithm would silently match no ACL.
    property(
        "DigestAuthenticationProvider.digestAlg",
        OneOf(&[
            "SHA1", "SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512", "SHA3-224", "SHA3-256", "SHA3-384",
            "SHA3-512",
        ]),
        "SHA1",
        Obeyed(
            "The hash of the scheme digest: the same at all servers, and at clients that make ids themselves",
        ),
    ),
    property(
        "sessionPasswords",
        OneOf(&["derived", "secret", "leaving"]),
        "derived",
        Obeyed(
            "Ostler's own, see [sessions](sessions.md). derived: a client that knows a session's id can take the session, \
             as in ZooKeeper. secret: new sessions have passwords that no Java server knows. leaving: the way back",
        ),
    ),
    property(
        "sessionSecrets",
        Text,
        "",
        Obeyed(
            "Ostler's own: a file with a secret of at least 32 hexadecimal digits in each line, the same at all \
             servers. The first makes session passwords, each is accepted",
        ),
    ),
    property(
        "enforce.auth.enabled",
        LooseBoolean,
        "false",
        Obeyed("Connections without one of enforce.auth.schemes are refused"),
    ),
    property("enforce.auth.schemes", Text, "", Obeyed("A comma list of schemes, see enforce.auth.enabled")),
    property(
        "sessionRequireClientSASLAuth",
        LooseBoolean,
        "false",
        Obeyed("As enforce.auth.enabled with the one scheme sasl"),
    ),
    property(
        "allowSaslFailedClients",
        LooseBoolean,
        "false",
        Obeyed("A client whose SASL exchange fails may stay"),
    ),
    property(
        "authProvider.*",
        Text,
        "",
        Obeyed(
            "The SASLAuthenticationProvider makes the scheme sasl known to ACLs. The other providers of ZooKeeper are there \
             without a line; Java classes cannot be loaded",
        ),
    ),
    property(
        "X509AuthenticationProvider.superUser",
        Text,
        "",
        Obeyed(
            "The subject of the client certificate whose owner may do everything, such as CN=admin,O=example",
        ),
    ),
    property("superUser", Text, "", Obeyed("A user of SASL that may do everything")),
    property("superUser.*", Text, "", Obeyed("As superUser, for more users")),
    property(
        "letAnySaslUserDoX",
        Text,
        "",
        Obeyed("ACL entries of the scheme sasl with this id are for every user of SASL"),
    ),
    property(
        "sasl.usersFile",
        Path,
        "",
        Obeyed(
            "Ostler's own: the users of SASL (DIGEST-MD5), in lines name:password or name:md5:HASH, where HASH is the MD5 of \
             name:zk-sasl-md5:password. The file is read again when it changes",
        ),
    ),
    property(
        "SASLAuthenticationProvider.superPassword",
        Text,
        "",
        Obeyed("The password of the user of SASL named super, in place of the one in the JAAS file"),
    ),
    property(
        "sasl.jaasFile",
        Path,
        "",
        Obeyed(
            "Ostler's own name of the JVM's property java.security.auth.login.config, which counts as -D, too: a JAAS file \
             with the users. It is read again when it changes",
        ),
    ),
    property(
        "sasl.serverconfig",
        Text,
        "Server",
        Obeyed("The section of the JAAS file with the users for clients"),
    ),
    property(
        "ensembleAuthName",
        Text,
        "",
        Obeyed(
            "A comma list of names of this ensemble. With a line authProvider.N=org.apache.zookeeper.server.auth.\
             EnsembleAuthenticationProvider a client that names another one (scheme ensemble) is closed",
        ),
    ),
    property(
        "IPAuthenticationProvider.usexforwardedfor",
        LooseBoolean,
        "false",
        Replaced("Counts for HTTP requests only; the scheme ip uses the address of the connection"),
    ),
    property(
        "kerberos.canonicalizeHostNames",
        LooseBoolean,
        "false",
        Replaced(
            "Servers and clients ask for the service of the host that is configured; krb5.conf decides on other names",
        ),
    ),
    property(
        "kerberos.removeHostFromPrincipal",
        LooseBoolean,
        "false",
        Obeyed("The id of a user of Kerberos has no host"),
    ),
    property(
        "kerberos.removeRealmFromPrincipal",
        LooseBoolean,
        "false",
        Obeyed("The id of a user of Kerberos has no realm"),
    ),
    property(
        "kerberos.minReLoginTimeMs",
        ANY_INT,
        "60000",
        Replaced("MIT's library gets new tickets when half of their time is over"),
    ),
    property(
        "kinit",
        Text,
        "",
        Replaced("Tickets come from the keytab; a ticket cache is renewed by its owner"),
    ),
    property(
        "requireKerberosConfig",
        LooseBoolean,
        "false",
        Replaced("A section with Kerberos always needs the default realm of krb5.conf"),
    ),
    property(
        "security.auth_to_local",
        Text,
        "DEFAULT",
        Obeyed(
            "Rules that make the id of a user of Kerberos from its principal: DEFAULT takes the first part of principals of \
             the default realm, RULE others, as in ZooKeeper and Hadoop",
        ),
    ),
    property("server.principal", Text, "", Replaced("Of clients only")),
    property("server.realm", Text, "", Replaced("Of clients only")),
    file(
        "quorum.auth.enableSasl",
        Boolean,
        "false",
        Obeyed("The servers can log in at each other: the first step of a change"),
    ),
    file(
        "quorum.auth.learnerRequireSasl",
        Boolean,
        "false",
        Obeyed("This server logs in at the servers that it calls: the second step"),
    ),
    file(
        "quorum.auth.serverRequireSasl",
        Boolean,
        "false",
        Obeyed("Servers that call this one have to log in: the third step"),
    ),
    file(
        "quorum.auth.learner.saslLoginContext",
        Text,
        "QuorumLearner",
        Obeyed("The section of the JAAS file with the user as whom this server logs in"),
    ),
    file(
        "quorum.auth.server.saslLoginContext",
        Text,
        "QuorumServer",
        Obeyed("The section of the JAAS file with the users of the other servers"),
    ),
    file(
        "quorum.auth.kerberos.servicePrincipal",
        Text,
        "zkquorum/localhost",
        Obeyed(
            "With Kerberos, the principal of the servers that this one calls, such as zkquorum/_HOST: _HOST stands for the host \
             of the server.N line",
        ),
    ),
];
