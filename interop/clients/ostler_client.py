"""Ostler's own client (crates/client): runs its tests against the server."""

import os
import subprocess

from harness.outcome import conclude, expect
from harness.peers import CHECKOUT, need_program
from harness.server import Server, arguments, work_folder

JAAS = """Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="secret";
};
"""


PROVIDER = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"


def check():
    args = arguments(__doc__).parse_args()
    cargo = need_program("cargo")
    folder = work_folder("client")
    jaas = os.path.join(folder, "jaas.conf")
    with open(jaas, "w") as f:
        f.write(JAAS)
    # Ostler has no SASL yet, and ignores this.
    os.environ["JAVA_TOOL_OPTIONS"] = "-Djava.security.auth.login.config=%s -Dzookeeper.authProvider.1=%s" % (
        jaas,
        PROVIDER,
    )
    with Server(args.server, folder, args.port):
        environment = dict(os.environ, OSTLER_CLIENT_SERVER="127.0.0.1:%d" % args.port)
        if args.server.startswith("java"):
            environment["OSTLER_CLIENT_SASL"] = "bob:secret"
        words = [cargo, "test", "--quiet", "--workspace", "--test", "client", "any_server"]
        p = subprocess.run(
            words, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        print(p.stdout)
        expect(p.returncode == 0 and "0 passed" not in p.stdout, "cargo test failed: " + p.stdout[-1500:])
    return "every operation of our own client"


if __name__ == "__main__":
    conclude(check)
