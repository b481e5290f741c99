"""An ensemble of one server (standaloneEnabled=false) gets an observer, grows to three voters, and shrinks to one
again, as Kubernetes operators do it.

    python3 interop/ensemble/from_one.py [--server CMD] [--port N]

After each change every server that is left must show it, and take a write.
"""

import os
import struct
import time

from ensemble.cluster import PORTS_PER_SERVER, Member
from harness.jute import ustring
from harness.outcome import Mismatch, conclude
from harness.server import arguments, work_folder
from harness.session import ConnectionLost, Refused, Session, SessionExpired

RECONFIG, NO_QUORUM_YET, IN_PROGRESS = 16, -13, -14
KEYS = {"reconfigEnabled": "true", "skipACL": "yes", "standaloneEnabled": "false", "initLimit": 20, "syncLimit": 10}
PATIENCE_S = 30


class Changing(Member):
    """A member that rewrites its own zoo.cfg after the first start."""

    def _write_config(self):
        path = os.path.join(self.folder, "zoo.cfg")
        return path if os.path.exists(path) else super()._write_config()


class FromOne:
    def __init__(self, make, folder, base):
        self.make, self.folder, self.base = make, folder, base
        self.members = {}

    def spec(self, number, role):
        at = self.base + PORTS_PER_SERVER * number
        return "127.0.0.1:%d:%d:%s;127.0.0.1:%d" % (at + 1, at + 2, role, at)

    def start(self, number, roles):
        keys = {**KEYS, **{"server.%d" % n: self.spec(n, role) for n, role in roles.items()}}
        home = os.path.join(self.folder, "server-%d" % number)
        port = self.base + PORTS_PER_SERVER * number
        self.members[number] = Changing(self.make, home, port, number, keys).start()

    def change(self, joining=None, leaving=None):
        body = ustring(joining) + ustring(leaving) + ustring(None) + struct.pack(">q", -1)
        until = time.monotonic() + PATIENCE_S
        last: Exception | None = None
        while time.monotonic() < until:
            try:
                session = Session(self.members[1].port)
                session.call(RECONFIG, body, "reconfig joining %s leaving %s" % (joining, leaving))
                session.close()
                return
            except Refused as answer:
                last = answer
                if answer.code not in (NO_QUORUM_YET, IN_PROGRESS):
                    raise Mismatch(str(answer)) from None
            except (ConnectionLost, SessionExpired, OSError) as error:
                last = error
            time.sleep(0.2)
        raise Mismatch("no answer to reconfig joining %s leaving %s: %s" % (joining, leaving, last))

    def wait(self, roles):
        """Waits until each of these servers shows exactly these servers, and takes a write."""
        wanted = ["server.%d=%s" % (n, self.spec(n, role)) for n, role in sorted(roles.items())]
        until = time.monotonic() + PATIENCE_S
        failure: Exception | None = None
        seen: list[str] = []
        while time.monotonic() < until:
            try:
                seen, failure = [], None
                for number in roles:
                    session = Session(self.members[number].port)
                    seen.append(session.get("/zookeeper/config")[0].decode())
                    if not session.exists("/written"):
                        session.create("/written", b"")
                    session.set("/written", b"%d" % number)
                    session.close()
                if all(sorted(text.splitlines()[:-1]) == wanted for text in seen):
                    print("voters and observers: %s" % roles, flush=True)
                    return
            except (ConnectionLost, SessionExpired, Refused, OSError) as error:
                failure = error
            time.sleep(0.1)
        raise Mismatch("servers %s do not show it or take no write: %s" % (roles, failure or seen))


def check():
    args = arguments(__doc__).parse_args()
    ensemble = FromOne(args.server, work_folder("from-one"), args.port)
    roles = {1: "participant"}
    ensemble.start(1, roles)
    ensemble.wait(roles)
    roles[4] = "observer"
    ensemble.change(joining="server.4=%s" % ensemble.spec(4, "observer"))
    ensemble.start(4, roles)
    ensemble.wait(roles)
    for number in (2, 3):
        # A server follows as an observer before it gets its vote.
        ensemble.start(number, {**roles, number: "participant"})
        ensemble.change(joining="server.%d=%s" % (number, ensemble.spec(number, "participant")))
        roles[number] = "participant"
        ensemble.wait(roles)
    for number in (3, 2, 4):
        del roles[number]
        ensemble.change(leaving=str(number))
        ensemble.members[number].stop()
        ensemble.wait(roles)
    ensemble.members[1].stop()
    ensemble.members[1].start()
    ensemble.wait(roles)
    ensemble.members[1].stop()
    return "from one to three voters and an observer, and back to one, which starts again alone"


if __name__ == "__main__":
    conclude(check)
