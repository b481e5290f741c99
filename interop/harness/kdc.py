"""A KDC of MIT Kerberos on this machine, with everything in one folder: realm, principals, keytabs."""

import os
import subprocess
import time

from .address import connect
from .peers import need

REALM = "OSTLER.TEST"
PASSWORD = "master"


class Kdc:
    """Principals are named without the realm; each has a keytab of its own."""

    def __init__(self, folder, port, principals, realm=REALM):
        need("gssapi")  # else Ostler is built without Kerberos
        need("kerberos")
        self.folder, self.port, self.realm, self.process = folder, port, realm, None
        os.makedirs(folder)
        self.conf = self._write(
            "krb5.conf",
            "[libdefaults]\n default_realm = %s\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            "[realms]\n %s = {\n  kdc = 127.0.0.1:%d\n }\n[domain_realm]\n localhost = %s\n"
            % (realm, realm, port, realm),
        )
        profile = self._write(
            "kdc.conf",
            "[kdcdefaults]\n kdc_listen = 127.0.0.1:%d\n kdc_tcp_listen = 127.0.0.1:%d\n"
            "[realms]\n %s = {\n  database_name = %s/db\n  key_stash_file = %s/stash\n  acl_file = %s/acl\n }\n"
            % (port, port, realm, folder, folder, folder),
        )
        self.env = {
            **os.environ,
            "KRB5_CONFIG": self.conf,
            "KRB5_KDC_PROFILE": profile,
            "KRB5CCNAME": "FILE:%s/tickets" % folder,
            "KRB5RCACHENAME": "dfl:",
            "PATH": os.environ.get("PATH", "") + ":/usr/sbin",
        }
        self._run("kdb5_util", "create", "-s", "-r", realm, "-P", PASSWORD)
        lines = []
        for principal in principals:
            lines.append("addprinc -randkey %s" % principal)
            lines.append("ktadd -norandkey -k %s %s" % (self.keytab(principal), principal))
        self._run("kadmin.local", "-r", realm, text="\n".join(lines) + "\nquit\n")

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def _run(self, *words, text=None):
        subprocess.run(words, env=self.env, input=text, text=True, check=True, capture_output=True)

    def keytab(self, principal):
        return os.path.join(self.folder, principal.replace("/", "_") + ".keytab")

    def change_keys(self, principal):
        """Gives a principal new keys, and its keytab only those."""
        new = self.keytab(principal) + ".new"
        self._run("kadmin.local", "-r", self.realm, text="ktadd -k %s %s\nquit\n" % (new, principal))
        os.rename(new, self.keytab(principal))

    def kinit(self, principal):
        self._run("kinit", "-k", "-t", self.keytab(principal), principal)

    def kdestroy(self):
        self._run("kdestroy", "-q")

    def __enter__(self):
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(["krb5kdc", "-n", "-r", self.realm], env=self.env, stdout=log, stderr=log)
        ends = time.monotonic() + 20
        while True:
            try:
                connect(self.port, 1).close()
                return self
            except OSError:
                assert time.monotonic() < ends, "the KDC does not listen"
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
