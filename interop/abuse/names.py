"""Host names that resolve late: a server's own name, and another server's name, get an address seconds after the start.

    python3 interop/abuse/names.py [--server CMD] [--port N]

Needs root: the servers run in a mount namespace whose /etc/hosts this script writes. Each start is made with
electionPortBindRetry=0. Then another server's address changes while all run: the others must find it at the new one.
"""

import os
import shutil
import subprocess
import time
from typing import Any

from ensemble.cluster import Member
from harness.address import found_at
from harness.outcome import Skip, conclude, expect
from harness.server import arguments, four_letter_word, work_folder

LATE_S = 3.0
PATIENCE_S = 40
JAVA_FLAG = "-Dzookeeper.electionPortBindRetry=0"


def in_place_of_hosts(hosts, member):
    """A server command that sees this file in place of /etc/hosts."""
    script = 'mount --bind %s /etc/hosts && exec "$@"' % hosts
    member.words = ["unshare", "-m", "sh", "-c", script, "sh"] + member.words


def write(path, names):
    # In place: a mount shows the file that it was made of.
    with open(path, "w") as f:
        f.write("127.0.0.1 localhost\n" + "".join("%s %s\n" % (at, name) for name, at in names.items()))


def serving(members, within):
    until = time.monotonic() + within
    while time.monotonic() < until:
        for member in members:
            code = member.process.poll()
            expect(code is None, "server %d ended with %s: %s" % (member.number, code, member.log_tail(400)))
        modes = []
        for member in members:
            try:
                text = four_letter_word(member.port, "srvr")
                modes.append(next((line[6:] for line in text.splitlines() if line.startswith("Mode: ")), None))
            except OSError:
                modes.append(None)
        if all(modes):
            return modes
        time.sleep(0.1)
    return None


def check():
    args = arguments(__doc__).parse_args()
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"]).returncode:
        raise Skip("needs root and mount namespaces")
    os.environ["JVMFLAGS"] = JAVA_FLAG
    folder = work_folder("names")
    hosts = os.path.join(folder, "hosts")
    places = {"late-%d.test" % n: "127.0.2.%d" % n for n in (1, 2, 3)}
    keys: dict[str, Any] = {"initLimit": 20, "syncLimit": 10, "electionPortBindRetry": 0}
    for n in (1, 2, 3):
        keys["server.%d" % n] = "late-%d.test:%d:%d" % (n, args.port + 10, args.port + 11)
    members = [Member(args.server, os.path.join(folder, "server-%d" % n), args.port + n, n, keys) for n in (1, 2, 3)]
    for member in members:
        in_place_of_hosts(hosts, member)
        if not args.server.startswith("java"):  # which ends for want of this one
            member.settings["clientPortAddress"] = "late-%d.test" % member.number
            found_at(member.port, places["late-%d.test" % member.number])
    write(hosts, {})
    try:
        for member in members:
            member.start()
        time.sleep(LATE_S)
        write(hosts, places)
        began = time.monotonic()
        modes = serving(members, PATIENCE_S)
        took = time.monotonic() - began
        expect(modes, "no quorum %.0f s after the names came: %s" % (took, members[0].log_tail(400)))
        print("%s %.1f s after the names came" % (modes, took), flush=True)
        moved = members[2]
        moved.stop()
        places["late-3.test"] = "127.0.2.33"
        write(hosts, places)
        if "clientPortAddress" in moved.settings:
            found_at(moved.port, places["late-3.test"])
        moved.start()
        modes = serving(members, PATIENCE_S)
        expect(modes, "server 3 is not found at its new address: %s" % moved.log_tail(400))
        print("%s after server 3 has moved" % modes, flush=True)
    finally:
        for member in members:
            member.kill()
    return "serving %.1f s after the names came, and after an address changed" % took


if __name__ == "__main__":
    conclude(check)
