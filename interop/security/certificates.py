"""An authority, and the stores of servers and clients in each format, made by openssl and keytool as operators make
them."""

import os
import subprocess

from harness.peers import need_program

PASSWORD = "secret"
NAMES = "DNS:localhost,IP:127.0.0.1"


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "%s: %s" % (" ".join(words), done.stderr or done.stdout)


class Authority:
    """Issues certificates into one folder. Every file is named after its certificate."""

    def __init__(self, folder: str, name: str = "ca") -> None:
        self.openssl, self.keytool = need_program("openssl"), need_program("keytool")
        self.folder, self.name = folder, name
        os.makedirs(folder, exist_ok=True)
        run(
            *(self.openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "30", "-subj", "/CN=%s" % name, "-keyout", self.path("key"), "-out", self.path("pem")),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
        )

    def path(self, kind: str) -> str:
        """The file of the authority's certificate or key."""
        return os.path.join(self.folder, "%s.%s" % (self.name, kind))

    def issue(self, name: str, subject: str = "", names: str = NAMES, days: int = 30) -> str:
        """Makes NAME.pem with key and certificate, NAME.key and NAME.crt. Returns the path without its ending."""
        base = os.path.join(self.folder, name)
        extensions = base + ".ext"
        with open(extensions, "w") as f:
            f.write("subjectAltName=%s\nbasicConstraints=CA:FALSE\n" % names)
        run(
            *(self.openssl, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", subject or "/O=Example/CN=%s" % name, "-keyout", base + ".key", "-out", base + ".csr"),
        )
        run(
            *(self.openssl, "x509", "-req", "-in", base + ".csr", "-CA", self.path("pem"), "-CAkey", self.path("key")),
            *("-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", base + ".crt"),
        )
        with open(base + ".pem", "w") as f:
            for part in (".key", ".crt"):
                with open(base + part) as one:
                    f.write(one.read())
        return base

    def stores(self, name: str) -> None:
        """NAME.p12 and NAME.jks with key and certificate, and trust stores CA.p12 and CA.jks."""
        base = os.path.join(self.folder, name)
        run(
            *(self.openssl, "pkcs12", "-export", "-in", base + ".pem", "-out", base + ".p12"),
            *("-passout", "pass:" + PASSWORD, "-name", name),
        )
        run(
            *(self.keytool, "-importkeystore", "-noprompt", "-srckeystore", base + ".p12", "-srcstoretype", "PKCS12"),
            *("-srcstorepass", PASSWORD, "-destkeystore", base + ".jks", "-deststoretype", "JKS"),
            *("-deststorepass", PASSWORD),
        )
        for kind, store_type in (("jks", "JKS"), ("p12", "PKCS12")):
            if not os.path.exists(self.path(kind)):
                run(
                    *(self.keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", self.path("pem")),
                    *("-keystore", self.path(kind), "-storetype", store_type, "-storepass", PASSWORD),
                )

    def keys(self, prefix: str, name: str, kind: str = "pem") -> dict[str, str]:
        """The keys of zoo.cfg, or the properties of a client, for the stores of one format."""
        keys = {
            prefix + "keyStore.location": os.path.join(self.folder, "%s.%s" % (name, kind)),
            prefix + "trustStore.location": self.path(kind),
        }
        if kind != "pem":
            keys.update({prefix + "keyStore.password": PASSWORD, prefix + "trustStore.password": PASSWORD})
        return keys
