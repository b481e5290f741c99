"""Links in a server's data folder, and copies of it made of hard links: the server must not change their targets.

    python3 interop/abuse/links.py [--server java3.9]

The names of the files that the server is about to make are links to a foreign file. A copy of the folder is made
with `cp -al`, as some backup programs do, and then the server writes many snapshots and removes old files. Every
file that the server has made must be for its own user alone.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import time

from harness.outcome import conclude, expect
from harness.server import Server, arguments, work_folder
from harness.session import Session

SECRET = b"somebody's\n" * 1000
NAMES = ("spare-snapshot", "spare-log", "log-synced", "acceptedEpoch.tmp", "currentEpoch.tmp", "unfinished.snapshot.1")
SETTINGS = {"snapCount": 20, "preAllocSize": 64, "autopurge.purgeInterval": 1}


def digests(folder):
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = hashlib.sha1(f.read()).hexdigest()
    return found


def write(port, count):
    session = Session(port, 30000)
    if not session.exists("/written"):
        session.create("/written", b"")
    for number in range(count):
        session.set("/written", b"%d" % number * 100)
    time.sleep(0.5)  # for the snapshots that have begun
    session.close()


def check():
    args = arguments(__doc__).parse_args()
    folder = work_folder("links")
    os.umask(0o022)
    victim = os.path.join(folder, "victim")
    with open(victim, "wb") as f:
        f.write(SECRET)
    server = Server(args.server, folder, args.port, SETTINGS)
    shutil.rmtree(server.data)
    faults = []
    with server:
        write(args.port, 120)
        server.stop()
    version = os.path.join(server.data, "version-2")
    open_to_others = sorted(
        {
            "%s %o" % (name.split(".")[0], stat.S_IMODE(os.stat(os.path.join(version, name)).st_mode))
            for name in os.listdir(version)
            if stat.S_IMODE(os.stat(os.path.join(version, name)).st_mode) & 0o077
        }
    )
    if open_to_others:
        faults.append("others may read: %s" % ", ".join(open_to_others))
    for name in NAMES:
        path = os.path.join(version, name)
        if os.path.lexists(path):
            os.remove(path)
        os.symlink(victim, path)
    copy = os.path.join(folder, "copy")
    subprocess.run(["cp", "-al", server.data, copy], check=True)
    before = digests(copy)
    try:
        with server.start():
            for _ in range(4):
                write(args.port, 120)
            server.stop()
    except Exception as error:
        faults.append("the server did not go on: %s" % str(error)[:200])
    with open(victim, "rb") as f:
        if f.read() != SECRET:
            faults.append("a file behind a link was written over")
    after = digests(copy)
    # The log that goes on is the same file in both, and grows.
    changed = sorted(name for name in before if after.get(name) != before[name] and os.path.basename(name) not in NAMES)
    newest = max(
        (name for name in changed if "log." in name), default=None, key=lambda name: int(name.rsplit(".", 1)[1], 16)
    )
    changed = [name for name in changed if name != newest and "ostler.lock" not in name]
    if changed:
        faults.append("of the copy were changed: %s" % ", ".join(changed))
    print("\n".join(faults) or "nothing of anybody else's was touched", flush=True)
    expect(not faults, "; ".join(faults))
    return "%d links and a copy of %d files stay as they are" % (len(NAMES), len(before))


if __name__ == "__main__":
    conclude(check)
