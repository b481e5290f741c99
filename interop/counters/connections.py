"""Sends one request after the other to a standalone Java server and to Ostler, and compares the line of `cons` after
each.

Compares the figures of the line except times: packets received and sent, the last operation, xid and zxid. Also
compares the packets received and sent in `srvr`. Figures that grow are compared by their growth."""

import re
import struct
import time

from counters.load import ADD_WATCH, GET_CHILDREN_ALONE, MULTI_READ, SYNC, WHO_AM_I
from harness.jute import ustring
from harness.outcome import Mismatch, conclude
from harness.protocol import (
    CHECK,
    CREATE,
    CREATE2,
    DELETE,
    EPHEMERAL,
    EXISTS,
    GET_ACL,
    GET_CHILDREN2,
    GET_DATA,
    GET_EPHEMERALS,
    MULTI,
    PING,
    PING_XID,
    SET_ACL,
    SET_DATA,
    acl_list,
    create_body,
    multi_body,
    path_version,
    set_body,
)
from harness.server import Server, arguments, four_letter_word, work_folder
from harness.session import ConnectionLost, Refused, Session

REMOVE_WATCHES, SET_WATCHES, ALL_CHILDREN_NUMBER = 18, 101, 104
COMPARED = ("queued", "lop", "to", "lcxid", "lzxid")
TIMEOUT_MS = 10000
# The number of further looks while a request is queued. Java counts it until shortly after it has sent the answer.
LOOKS_AT_JAVA = 100


def ping(session):
    session.socket.sendall(struct.pack(">iii", 8, PING_XID, PING))
    session._frame()


def bad_auth(session):
    try:
        session.add_auth("nothing", b"x")
    except (Refused, ConnectionLost):
        pass


def change_by_another(session):
    other = Session(session.port, TIMEOUT_MS)
    other.set("/a", b"by another")
    other.close()
    session.exists("/a")


def ask(op, body=b""):
    def step(session):
        session.send_all([(op, body)])
        session.receive()

    return step


OPEN = [(31, "world", "anyone")]
# {name: what it does}; each is followed by a look.
STEPS = {
    "connect": lambda session: None,
    "create": ask(CREATE, create_body("/a", b"1")),
    "create2": ask(CREATE2, create_body("/b", b"1")),
    "create, refused": ask(CREATE, create_body("/a", b"1")),
    "create, invalid": ask(CREATE, create_body("a", b"1")),
    "create, ephemeral": ask(CREATE, create_body("/e", b"1", EPHEMERAL)),
    "getData": ask(GET_DATA, ustring("/a") + b"\0"),
    "getData, no node": ask(GET_DATA, ustring("/none") + b"\0"),
    "exists": ask(EXISTS, ustring("/a") + b"\0"),
    "exists, no node": ask(EXISTS, ustring("/none") + b"\0"),
    "getChildren": ask(GET_CHILDREN_ALONE, ustring("/") + b"\0"),
    "getChildren2": ask(GET_CHILDREN2, ustring("/") + b"\0"),
    "setData": ask(SET_DATA, set_body("/a", b"2")),
    "setData, bad version": ask(SET_DATA, set_body("/a", b"2", 99)),
    "ping": ping,
    "sync": ask(SYNC, ustring("/a")),
    "getACL": ask(GET_ACL, ustring("/a")),
    "setACL": ask(SET_ACL, ustring("/a") + acl_list(OPEN) + struct.pack(">i", -1)),
    "multi": ask(MULTI, multi_body([(CHECK, path_version("/a")), (SET_DATA, set_body("/a", b"3"))])),
    "multi, refused": ask(MULTI, multi_body([(SET_DATA, set_body("/a", b"3")), (CHECK, path_version("/a", 99))])),
    "multiRead": ask(MULTI_READ, multi_body([(GET_DATA, ustring("/a") + b"\0"), (GET_DATA, ustring("/none") + b"\0")])),
    "ping again": ping,
    "auth": lambda session: session.add_auth("digest", b"ann:word"),
    "whoAmI": ask(WHO_AM_I),
    "getEphemerals": ask(GET_EPHEMERALS, ustring("/")),
    "getAllChildrenNumber": ask(ALL_CHILDREN_NUMBER, ustring("/")),
    "addWatch": ask(ADD_WATCH, ustring("/a") + struct.pack(">i", 0)),
    "an event": change_by_another,
    "setWatches": ask(SET_WATCHES, struct.pack(">q", 0) + struct.pack(">iii", 0, 0, 0)),
    "removeWatches": ask(REMOVE_WATCHES, ustring("/a") + struct.pack(">i", 3)),
    "removeWatches, none": ask(REMOVE_WATCHES, ustring("/a") + struct.pack(">i", 3)),
    "delete": ask(DELETE, path_version("/b")),
    "delete, no node": ask(DELETE, path_version("/b")),
    "many at once": lambda session: (
        [session.send_all([(EXISTS, ustring("/a") + b"\0")] * 10)] + [session.receive() for _ in range(10)]
    ),
}
# Those after which there is no connection to look at: the server's figures alone.
LAST_STEPS = {"close": lambda session: session.close(), "auth, refused": bad_auth}

# {(step, figure): why ours differs}; each has to be needed.
EXCUSED = {
    ("session taken up", "lop"): "Java shows the text null for what it has not set yet, and NA in all other cases"
}


class Lines:
    """The session's lines of `cons`, from one look to the next."""

    def __init__(self, session, looks):
        self.session, self.looks, self.before = session, looks, {"recved": 0, "sent": 0}

    def look(self):
        """{figure: text}, how many came and went since the look before, and how many lines name the session."""
        now, lines = self._read()
        for _ in range(self.looks):
            if now.get("queued") in (None, "0"):
                break
            now, lines = self._read()
        if not lines:
            return {"lines": 0}
        more = {key: int(now[key]) - before for key, before in self.before.items()}
        self.before = {key: int(now[key]) for key in self.before}
        return {**{key: now.get(key) for key in COMPARED}, **more, "lines": lines}

    def _read(self):
        """The figures of the session's newest connection, and how many lines name the session."""
        text = four_letter_word(self.session.port, "cons")
        lines = [line for line in text.splitlines() if "sid=0x%x," % (self.session.id & (1 << 64) - 1) in line]
        if not lines:
            return {}, 0
        # Of a session that was taken up the newest connection counts.
        own = ":%d[" % self.session.socket.getsockname()[1]
        line = next((line for line in lines if own in line), lines[0])
        pairs = (pair.partition("=") for pair in re.search(r"\((.*)\)", line).group(1).split(","))
        return {key: value for key, equals, value in pairs if equals}, len(lines)


class Counted:
    """Figures of the whole server, from one look to the next; what the looks themselves add is taken off."""

    def __init__(self, port):
        self.port = port
        self.before = self._read()
        after = self._read()
        self.look = {key: after[key] - self.before[key] for key in after}  # of this word alone
        self.before = after

    def _read(self):
        text = four_letter_word(self.port, "srvr")
        return {key: int(re.search(key + r": (\d+)", text).group(1)) for key in ("Received", "Sent")}

    def since(self):
        more = self._more()
        if more["Sent"] < more["Received"]:
            # Java counts an answer after it has sent it.
            time.sleep(0.05)
            later = self._more()
            more = {key: more[key] + later[key] for key in more}
        return more

    def _more(self):
        now = self._read()
        more = {key: now[key] - self.before[key] - self.look[key] for key in now}
        self.before = now
        return more


def figures(make, port):
    """{step: {figure: text}}."""
    table = {}
    with Server(make, work_folder("connections"), port, {"maxSessionTimeout": 60000}) as server:
        counted = Counted(server.port)
        table["a word"] = dict(counted.look)
        looks = LOOKS_AT_JAVA if make.startswith("java") else 0
        lines = Lines(Session(server.port, TIMEOUT_MS), looks)
        lines.session.port = server.port
        for step, act in STEPS.items():
            act(lines.session)
            table[step] = {**counted.since(), **lines.look()}
            counted.since()
        moved = Lines(Session(server.port, TIMEOUT_MS, lines.session.id, lines.session.password), looks)
        moved.session.port = server.port
        table["session taken up"] = {**counted.since(), **moved.look()}
        moved.session.get("/a")
        four_letter_word(server.port, "crst")
        moved.before = {"recved": 0, "sent": 0}
        table["crst"] = moved.look()
        for step, act in LAST_STEPS.items():
            own = Session(server.port, TIMEOUT_MS)
            counted.since()
            act(own)
            table[step] = counted.since()
        four_letter_word(server.port, "srst")
        text = four_letter_word(server.port, "srvr")
        table["srst"] = dict(re.findall(r"(Received|Sent): (\d+)", text))
    return table


def check():
    parser = arguments(__doc__)
    parser.add_argument("--peer", default="java3.9", help="whose figures are the measure (default: %(default)s)")
    args = parser.parse_args()
    java, ours = figures(args.peer, args.port), figures(args.server, args.port + 1)
    faults, excused = [], set()
    for step, due in java.items():
        got = ours[step]
        for key in due:
            if due[key] == got.get(key):
                continue
            why = EXCUSED.get((step, key))
            print(
                "%-8s %-24s %-8s Java %-12s here %s%s"
                % ("excused" if why else "FAULT", step, key, due[key], got.get(key), " [%s]" % why if why else ""),
                flush=True,
            )
            if why:
                excused.add((step, key))
            else:
                faults.append("%s: %s" % (step, key))
    needless = ["%s: %s" % key for key in EXCUSED if key not in excused]
    if faults or needless:
        raise Mismatch(
            "%d figures of %d steps differ without an excuse, %d excuses are not needed: %s"
            % (len(faults), len(java), len(needless), ", ".join(faults + ["excuse " + name for name in needless]))
        )
    return "%d steps, the same figures after each, %d excused" % (len(java), len(excused))


if __name__ == "__main__":
    conclude(check)
