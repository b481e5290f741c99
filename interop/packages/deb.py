"""The Debian package in a fresh Debian: it is installed, serves, tells systemd how it is, is upgraded and keeps data
and configuration, is removed and purged. It shares no file with Debian's zookeeper. systemd-analyze rates its unit.

    python3 interop/run.py packages.deb [--server 'target/release/ostler server'] [--port N]"""

import configparser
import glob
import os
import re
import shlex
import shutil
import subprocess
from contextlib import closing

from harness.outcome import conclude, expect, expect_equal
from harness.peers import CHECKOUT
from harness.server import arguments, work_folder
from harness.session import Session
from packages.roots import PACKAGING, Contained, Manager, binary, build, fresh_debian, in_root, need_root

ARGS = arguments(__doc__).parse_args()
UNIT = os.path.join(PACKAGING, "debian", "ostler.service")
# 0 is best, 10 worst. systemd's own words: below 2.0 is "OK" with a smile.
WORST_SCORE = 2.0
OTHERS = ["zookeeper", "zookeeperd", "zookeeper-bin", "libzookeeper-java"]
CONFIG = "/etc/ostler/zoo.cfg"


def built(folder: str) -> tuple[str, str]:
    """The package, and one with a higher version. A second build has the same bytes."""
    paths = []
    for version in ("1.0.0-1", "1.0.0-1", "1.0.1-1"):
        for old in glob.glob(os.path.join(CHECKOUT, "target", "packages", "*.deb")):
            os.remove(old)
        build("deb", "--fast", "--binary", binary(ARGS.server), "--package-version", version)
        (deb,) = glob.glob(os.path.join(CHECKOUT, "target", "packages", "*.deb"))
        paths.append(os.path.join(folder, os.path.basename(deb)))
        before = contents(paths[-1]) if os.path.exists(paths[-1]) else None
        shutil.move(deb, paths[-1])
        expect(before in (None, contents(paths[-1])), "two builds of the package differ")
    return paths[0], paths[2]


def contents(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def files_of(deb: str) -> set[str]:
    lines = subprocess.run(["dpkg-deb", "-c", deb], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[5] for line in lines if not line.startswith("d")}


def check_contents(deb: str, folder: str) -> None:
    ours = files_of(deb)
    for wanted in (
        "./usr/bin/ostler",
        "./usr/lib/systemd/system/ostler.service",
        "./etc/ostler/zoo.cfg",
        "./usr/share/man/man1/ostler-server.1.gz",
        "./usr/share/bash-completion/completions/ostler",
    ):
        found = wanted in ours or wanted.replace("./usr/lib/", "./lib/") in ours
        expect(found, "%s is not in the package: %s" % (wanted, sorted(ours)))
    for other in OTHERS:
        kept = os.path.join(folder, other)
        os.makedirs(kept)
        words = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", other]
        subprocess.run(words, cwd=kept, check=True, stdout=subprocess.DEVNULL)
        (path,) = glob.glob(kept + "/*.deb")
        expect_equal(sorted(ours & files_of(path)), [], "files that Debian's %s has, too" % other)
    print("%d files, none of them in Debian's %s" % (len(ours), ", ".join(OTHERS)))


def check_unit() -> float:
    words = ["systemd-analyze", "security", "--offline=yes", "--no-pager", UNIT]
    out = subprocess.run(words, capture_output=True, text=True).stdout
    print("\n".join(out.splitlines()[-6:]))
    score = re.search(r"exposure level for ostler\.service: ([\d.]+)", out)
    assert score, "systemd-analyze gave no score: %s" % out
    expect(float(score[1]) <= WORST_SCORE, "the unit is rated %s, worse than %s" % (score[1], WORST_SCORE))
    return float(score[1])


def unit_service(root: str) -> configparser.SectionProxy:
    (path,) = glob.glob(root + "/usr/lib/systemd/system/ostler.service") + (
        glob.glob(root + "/lib/systemd/system/ostler.service") if not os.path.islink(root + "/lib") else []
    )
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    return unit["Service"]


def start(root: str, manager: Manager, folder: str) -> Contained:
    """As systemd starts the unit: its user, its command line, its environment."""
    service = unit_service(root)
    line = service["ExecStart"].replace("$OSTLER_OPTIONS", "").replace("${OSTLER_CONFIG}", CONFIG)
    user = "%s:%s" % (service["User"], service["Group"])
    environment = dict(manager.environment, WATCHDOG_USEC="1500000")
    return Contained(root, user, shlex.split(line), environment, os.path.join(folder, "log"))


def owner(path: str, root: str) -> str:
    return in_root(root, "stat", "-c", "%U:%G %a", path).strip()


def check() -> str:
    need_root()
    folder = work_folder("deb")
    first, second = built(folder)
    check_contents(first, folder)
    score = check_unit()
    root = fresh_debian(folder)
    for deb in (first, second):
        subprocess.run(["cp", deb, root + "/root/"], check=True)

    in_root(root, "dpkg", "-i", "/root/" + os.path.basename(first))
    expect_equal(owner("/var/lib/ostler", root), "ostler:ostler 750", "owner and mode of the data")
    expect_equal(owner(CONFIG, root), "root:ostler 640", "owner and mode of zoo.cfg")
    expect("ostler 0.1" in in_root(root, "ostler", "--version"), "--version")
    # What an operator changes stays.
    with open(root + CONFIG) as f:
        text = f.read().replace("clientPort=2181", "clientPort=%d" % ARGS.port)
    with open(root + CONFIG, "w") as f:
        f.write(text + "# mine\n")

    manager = Manager(root)
    with start(root, manager, folder) as server:
        manager.wait_for("READY=1")
        expect_equal(server.wait_serving(ARGS.port), "standalone", "mode")
        manager.wait_for("WATCHDOG=1")
        with closing(Session(ARGS.port)) as client:
            client.create("/kept", b"by the upgrade")
        expect_equal(server.stop(), 0, "exit code of a stop: " + server.tail())
        manager.wait_for("STOPPING=1")

    in_root(root, "dpkg", "-i", "/root/" + os.path.basename(second))
    version = in_root(root, "dpkg-query", "-W", "-f", "${Version}", "ostler")
    expect_equal(version, "1.0.1-1", "version after the upgrade")
    with open(root + CONFIG) as f:
        expect("# mine" in f.read(), "the upgrade has replaced zoo.cfg")
    with start(root, manager, folder) as server:
        manager.wait_for("READY=1")
        server.wait_serving(ARGS.port)
        with closing(Session(ARGS.port)) as client:
            expect_equal(client.get("/kept")[0], b"by the upgrade", "data after the upgrade")
        expect_equal(server.stop(), 0, "exit code of a stop")

    # A mistake in the configuration has the exit code at which systemd does not start it again.
    service = unit_service(root)
    with open(root + CONFIG, "a") as f:
        f.write("tickTime=banana\n")
    with start(root, manager, folder) as server:
        code = server.process.wait(30)
    expect_equal(str(code), service["RestartPreventExitStatus"], "exit code of a mistake in zoo.cfg")

    in_root(root, "dpkg", "-r", "ostler")
    expect(os.path.exists(root + "/var/lib/ostler/version-2"), "the removal has deleted the data")
    expect(os.path.exists(root + CONFIG), "the removal has deleted zoo.cfg")
    in_root(root, "dpkg", "-P", "ostler")
    for gone in ("/var/lib/ostler", "/etc/ostler"):
        expect(not os.path.exists(root + gone), "%s is left after the purge" % gone)
    return "installed, served, upgraded with its data, removed, purged; systemd-analyze security: %.1f" % score


conclude(check)
