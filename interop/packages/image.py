"""The container image without an engine: it is built twice with the same digest, read by skopeo and umoci, and its root
file system runs by chroot, read-only where an image's is, with the variables of the official image and of Bitnami's.

    python3 interop/run.py packages.image [--server 'target/release/ostler server'] [--port N]

Three servers form an ensemble, are stopped, keep their data. Logins are asked for. What cannot be obeyed is refused.
The ensemble grows to five servers, shrinks to three and grows again by `ostler resize`, as the Helm chart does it."""

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack, closing

from harness.outcome import conclude, expect, expect_equal
from harness.server import arguments, four_letter_word, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired
from packages.roots import PACKAGING, Contained, binary, need_root, packaging_environment

ARGS = arguments(__doc__).parse_args()
USER = "1000:1000"
SUPER = "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="  # the password is "admin"
# Runs the rest of the line in a root file system that is read-only but for the folders of data.
READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && mount --bind "$1" "$0/data" && shift && exec "$@"'
)


def build(out: str) -> str:
    """Returns the digest."""
    words = [os.path.join(PACKAGING, "image", "build"), "--binary", binary(ARGS.server), "--out", out, "--tag", "test"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=packaging_environment())
    return done.stdout.strip()


def unpack(layout: str, folder: str) -> str:
    """The root file system, as umoci reads the layout."""
    bundle = os.path.join(folder, "bundle")
    subprocess.run(["umoci", "unpack", "--image", layout + ":test", bundle], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(bundle, "rootfs")


def check_image(layout: str, root: str) -> None:
    shown = subprocess.run(["skopeo", "inspect", "--config", "oci:%s:test" % layout], check=True, capture_output=True)
    config = json.loads(shown.stdout)["config"]
    expect_equal(config["User"], USER, "user of the image")
    expect_equal(config["Entrypoint"], ["/usr/bin/ostler", "entrypoint"], "entry of the image")
    for folder in ("bin", "usr/bin", "sbin", "usr/sbin"):
        names = os.listdir(os.path.join(root, folder)) if os.path.isdir(os.path.join(root, folder)) else []
        expect(set(names) <= {"ostler"}, "programs in the image's /%s: %s" % (folder, names))
    with open(os.path.join(root, "etc/ssl/certs/ca-certificates.crt")) as f:
        expect(f.read().count("BEGIN CERTIFICATE") > 50, "authorities in the image")
    set_ids = subprocess.run(["find", root, "-perm", "/6000", "-type", "f"], capture_output=True, text=True).stdout
    expect_equal(set_ids, "", "files with set-user-id")


class Containers:
    """Containers of one image, each with a folder of its own at /data."""

    def __init__(self, root: str, folder: str) -> None:
        self.root, self.folder = root, folder

    def data(self, name: str) -> str:
        path = os.path.join(self.folder, "data-" + name)
        if not os.path.exists(path):
            os.makedirs(path)
            os.chown(path, 1000, 1000)
        return path

    def run(self, name: str, words: list[str], **variables: str) -> Contained:
        environment = {"PATH": "/usr/bin", "ZOO_CONF_DIR": "/data/conf", "ZOO_DATA_LOG_DIR": "/data", **variables}
        return Unshared(self, name, words, environment)

    def code_of(self, name: str, words: list[str], **variables: str) -> tuple[int, str]:
        """Runs a container to its end."""
        with self.run(name, words, **variables) as container:
            code = container.process.wait(60)
        return code, container.tail()


class Unshared(Contained):
    """A container whose root file system cannot be written."""

    def __init__(self, of: Containers, name: str, words: list[str], environment: dict[str, str]) -> None:
        self.log = os.path.join(of.folder, name + ".log")
        line = ["unshare", "--mount", "sh", "-c", READ_ONLY, of.root, of.data(name)]
        line += ["chroot", "--userspec=" + USER, of.root, "/usr/bin/ostler", "entrypoint", *words]
        environment = dict(environment, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                line, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )


def server_value(number: int) -> str:
    """What stands behind server.N=: the digit before the last of each port is N less one."""
    base, pod = ARGS.port, number - 1
    return "127.0.0.1:%d:%d;127.0.0.1:%d" % (base + 100 + pod, base + 200 + pod, base + 300 + pod)


def template() -> str:
    """server_value with % for N less one."""
    base = ARGS.port
    return "127.0.0.1:%d%%:%d%%;127.0.0.1:%d%%" % tuple((base + 100 * k) // 10 for k in (1, 2, 3))


def client_port(number: int) -> int:
    return ARGS.port + 300 + number - 1


def variables(number: int, size: int = 3) -> dict[str, str]:
    servers = " ".join("server.%d=%s" % (n, server_value(n)) for n in range(1, size + 1))
    return {
        "ZOO_MY_ID": str(number),
        "ZOO_SERVERS": servers,
        "ZOO_TICK_TIME": "500",
        "ZOO_INIT_LIMIT": "20",
        "ZOO_STANDALONE_ENABLED": "false",
        "ZOO_ADMINSERVER_ENABLED": "false",
        "ZOO_4LW_COMMANDS_WHITELIST": "srvr, mntr, ruok",
    }


def official(containers: Containers) -> None:
    """An ensemble by the official image's variables: it serves, stops, and has its data afterwards."""
    for turn in ("first", "second"):
        with ExitStack() as stack:
            running = [
                stack.enter_context(containers.run("o%d" % n, ["zkServer.sh", "start-foreground"], **variables(n)))
                for n in (1, 2, 3)
            ]
            modes = sorted(one.wait_serving(client_port(n)) for n, one in zip((1, 2, 3), running))
            expect_equal(modes, ["follower", "follower", "leader"], "modes")
            with closing(Session(client_port(2))) as client:
                if turn == "first":
                    client.create("/kept", b"over a restart")
                expect_equal(client.get("/kept")[0], b"over a restart", "data at the %s start" % turn)
            codes = [one.stop() for one in running]
            expect_equal(codes, [0, 0, 0], "exit codes of stops: " + running[0].tail())
    with open(os.path.join(containers.data("o1"), "myid")) as f:
        expect_equal(f.read(), "1\n", "myid")


def logins(containers: Containers) -> None:
    """Bitnami's logins: a client without one is refused, one with it is served."""
    port = client_port(1)
    with_users = {
        "ZOO_PORT_NUMBER": str(port),
        "ZOO_ENABLE_AUTH": "yes",
        "ZOO_SERVER_USERS": "ann,bob",
        "ZOO_SERVER_PASSWORDS": "one;two",
        "ZOO_ENABLE_ADMIN_SERVER": "no",
    }
    with containers.run("b1", [], **with_users) as server:
        server.wait_serving(port)
        try:
            with closing(Session(port)) as client:
                client.children("/")
            raise AssertionError("a client without a login is served")
        except (ConnectionLost, Refused, SessionExpired):
            pass
        password = os.path.join(containers.folder, "password")
        with open(password, "w") as f:
            f.write("one\n")
        words = [binary(ARGS.server), "shell", "--sasl-user", "ann", "--sasl-password-file", password]
        words += ["127.0.0.1:%d" % port, "whoami"]
        found = subprocess.run(words, capture_output=True, text=True, timeout=60)
        expect("ann" in found.stdout, "a client with a login: %s %s" % (found.stdout, found.stderr))
        expect_equal(server.stop(), 0, "exit code")


def refusals(containers: Containers) -> None:
    for name, given, reason in [
        ("r1", {"ALLOW_ANONYMOUS_LOGIN": "no"}, "ALLOW_ANONYMOUS_LOGIN=no asks for logins"),
        ("r2", {"ZOO_TICK_TIME": "banana"}, "tickTime=banana is not allowed"),
        ("r3", {"ZOO_SERVERS": "nonsense"}, "is no server"),
        ("r4", {"ZOO_SERVER_PASSWORDS_FILE": "/run/gone"}, "ZOO_SERVER_PASSWORDS_FILE=/run/gone cannot be read"),
        ("r5", {"ZOO_CONF_DIR": "/conf"}, "cannot write /conf/zoo.cfg"),
    ]:
        code, said = containers.code_of(name, [], **given)
        expect(code == 2 and reason in said, "%s: exit code %d, %s" % (given, code, said))
    code, said = containers.code_of("r6", ["bash"])
    expect(code == 2 and "cannot start bash" in said, "bash: exit code %d, %s" % (code, said))


def members(port: int) -> list[int]:
    with closing(Session(port)) as client:
        text = (client.get("/zookeeper/config")[0] or b"").decode()
    return sorted(int(line.split("=")[0][7:]) for line in text.splitlines() if line.startswith("server."))


def resize(to: int, *more: str) -> None:
    servers = ",".join("127.0.0.1:%d" % client_port(n) for n in (1, 2, 3))
    words = [binary(ARGS.server), "resize", servers, "--to", str(to), "--server", template(), "--patience", "60", *more]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, OSTLER_SUPER_PASSWORD="admin"))
    print("resize to %d %s: %s" % (to, " ".join(more), done.stdout.replace("\n", "; ")))
    expect_equal(done.returncode, 0, "resize to %d: %s%s" % (to, done.stdout, done.stderr))


def scaling(containers: Containers) -> None:
    """What the chart does: servers beyond the first three join without a vote, and leave before they are stopped."""

    def start(number: int) -> Contained:
        environment = {
            **variables(number),
            "ZOO_MY_ID": "",
            "OSTLER_ID_FROM_NAME": "ostler-%d" % (number - 1),
            "OSTLER_OWN_SERVER": server_value(number),
            "ZOO_RECONFIG_ENABLED": "yes",
            "ZOO_CFG_EXTRA": "DigestAuthenticationProvider.superDigest=" + SUPER,
        }
        return containers.run("s%d" % number, ["server"], **environment)

    with ExitStack() as stack:
        running = {n: stack.enter_context(start(n)) for n in (1, 2, 3)}
        for n in running:
            running[n].wait_serving(client_port(n))
        with closing(Session(client_port(1))) as client:
            client.create("/count", b"")
        for round_ in (1, 2):
            for n in (4, 5):
                running[n] = stack.enter_context(start(n))
                running[n].wait_serving(client_port(n))
                # It follows, and has no vote: the ensemble does not list it.
                expect_equal(members(client_port(n)), [1, 2, 3], "members when server %d has come" % n)
            resize(5)
            expect_equal(members(client_port(4)), [1, 2, 3, 4, 5], "members after growth %d" % round_)
            until = time.monotonic() + 30
            while "follower" not in four_letter_word(client_port(5), "srvr") and time.monotonic() < until:
                time.sleep(0.1)
            # A rolling restart keeps them voters: the file of the ensemble counts more than the environment.
            expect_equal(running[5].stop(), 0, "exit code")
            running[5] = stack.enter_context(start(5))
            mode = running[5].wait_serving(client_port(5))
            expect(mode in ("follower", "leader"), "server 5 after a restart: %s" % mode)
            resize(3, "--remove-only")
            for n in (4, 5):
                running[n].stop()
            expect_equal(members(client_port(2)), [1, 2, 3], "members after they were removed")
            with closing(Session(client_port(1))) as client:
                client.set("/count", b"%d" % round_)
        for n in (1, 2, 3):
            expect_equal(running[n].stop(signal.SIGTERM), 0, "exit code of server %d" % n)


def check() -> str:
    need_root()
    folder = work_folder("image")
    os.chmod(folder, 0o755)
    layout = os.path.join(folder, "layout")
    digest = build(layout)
    expect_equal(build(os.path.join(folder, "again")), digest, "digest of the second build")
    root = unpack(layout, folder)
    os.chmod(os.path.dirname(root), 0o755)
    check_image(layout, root)
    containers = Containers(root, folder)
    refusals(containers)
    official(containers)
    logins(containers)
    scaling(containers)
    blobs = os.path.join(layout, "blobs", "sha256")
    size = sum(os.path.getsize(os.path.join(blobs, name)) for name in os.listdir(blobs))
    return "%s, %.1f MiB; ensembles of 3 and 5, logins, refusals" % (digest[:19], size / 2**20)


conclude(check)
