"""pytest plugin: kazoo's harness wants to run `java ... zoo.cfg`; run the server under test with that zoo.cfg instead.

The settings that the harness hands to a JVM by -D (super user's digest, read-only mode, JAAS file) go along in three
ways. Each server takes the one it knows: JAVA_TOOL_OPTIONS (a JVM reads it by itself), SERVER_JVMFLAGS (as zkServer.sh
takes it), and as keys of zoo.cfg.
"""

import os
import shlex

SERVER = os.environ["OSTLER_KAZOO_SERVER"]
TLS = os.environ.get("OSTLER_KAZOO_TLS") == "1"
TLS_KEYS = ("secureClientPort", "ssl.", "serverCnxnFactory")


def as_config_key(name):
    """zookeeper.K is key K of zoo.cfg; of the others only read-only mode has a key."""
    if name.startswith("zookeeper."):
        return name[len("zookeeper.") :]
    return name if name == "readonlymode.enabled" else None


def rewrite(config, properties):
    with open(config) as f:
        lines = [x for x in f.read().splitlines() if TLS or not x.startswith(TLS_KEYS)]
    lines += ["admin.enableServer=false", "4lw.commands.whitelist=*"]
    for name, value in properties.items():
        if as_config_key(name) and "log" not in name:
            lines.append("%s=%s" % (as_config_key(name), value))
    with open(config, "w") as f:
        f.write("\n".join(lines) + "\n")


def pytest_configure(config):
    import kazoo.testing.common as harness

    real = harness.subprocess

    class Launcher:
        def __getattr__(self, name):
            return getattr(real, name)

        def Popen(self, args, **kw):
            if not args or args[0] != "java":
                return real.Popen(args, **kw)
            zoo_cfg = args[-1]
            flags = [a for a in args if a.startswith("-D") and "log4j" not in a]
            rewrite(zoo_cfg, dict(a[2:].partition("=")[::2] for a in flags))
            env = dict(os.environ, JAVA_TOOL_OPTIONS=" ".join(flags), SERVER_JVMFLAGS=" ".join(flags))
            with open(os.path.join(os.path.dirname(zoo_cfg), "zookeeper.log"), "ab") as log:
                return real.Popen(shlex.split(SERVER) + [zoo_cfg], env=env, stdin=real.DEVNULL, stdout=log, stderr=log)

    harness.subprocess = Launcher()
