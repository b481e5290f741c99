"""Compares Ostler's shell with ZooKeeper's: the same commands on two fresh servers must print the same."""

import difflib
import os
import re
import subprocess

from harness.outcome import conclude, expect
from harness.peers import LAUNCHER, need
from harness.server import Server, arguments, command, work_folder

COMMANDS = r"""
create /t "two words"
create -s /t/n- x
create -s -e /t/e- y
create /t/json {"x":1}
get /t/json
ls /t
ls -s /t
ls -R /t
get -s /t
get -b /t
get -x /t
set -s /t new
set /t bmV3ZXI= -b
get /t
set -v 99 /t bad
set -v 2 /t good
stat /t
getAcl -s /t
setAcl -s /t world:anyone:cdrw
getAcl /t
setAcl /t world:anyone:cdrwa
getAllChildrenNumber /t
getEphemerals
getEphemerals /t/n
sync /t
whoami
addauth digest u:p
whoami
create /t/acl z auth::cdrwa
getAcl /t/acl
setAcl -R /t/acl world:anyone:cdrwa
getAcl /t/acl
create -c /t/container
create -t 100000 /t/ttl v
create -s -t 100000 /t/ttl- v
create /nope/x
create /t
create /t/bad x nonsense:x:r
create /t/e-0000000001/below
delete /t
delete -v 7 /t/json
delete /t/json
stat /t/json
get -w /t
set /t w2
ls -w /t
create /t/child
stat -w /t/child
delete /t/child
addWatch /t
set /t/acl q
removewatches /t
printwatches off
printwatches
printwatches on
setquota -n 100 /t
setquota -B 100000 /t
listquota /t
delquota -n /t
listquota /t
delquota /t
listquota /t
config
deleteall /t
ls /
history
printwatches
get /t
"""

# Java's greeting; ours says nothing of the connection in a script.
GREETING = re.compile(r"^(Connecting to|Welcome to|JLine support is) .*\n", re.M)
CONNECTED = re.compile(r"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null.*\n")
EVENT = re.compile(r"^WatchedEvent (.*)$", re.M)
# Java's shell has a thread for events, and prints one in two parts: an answer may come between them.
OF_AN_EVENT = re.compile(r"^(WATCHER::|WatchedEvent .*|)\n", re.M)
DIFFERS = re.compile(r"^(ctime|mtime) = .*|^ephemeralOwner = 0x[1-9a-f].*", re.M)


def said(words, folder, name):
    """The lines of a shell's output that are compared: answers, events, and refusals."""
    p = subprocess.run(words, input=COMMANDS.strip() + "\n", capture_output=True, text=True, timeout=120)
    for stream, text in (("out", p.stdout), ("err", p.stderr)):
        with open(os.path.join(folder, "%s.%s" % (name, stream)), "w") as f:
            f.write(text)
    return p.stdout, p.stderr


def java(version, port, folder):
    main = "org.apache.zookeeper.ZooKeeperMain"
    out, err = said(
        [LAUNCHER, version, "-c", main, "-waitforconnection", "-server", "127.0.0.1:%d" % port], folder, "java"
    )
    # Java's shell prints some refusals twice, and logs its end.
    err = [line for line in err.splitlines() if not re.search("^KeeperErrorCode = | ERROR ", line)]
    return GREETING.sub("", CONNECTED.sub("", out)), err


def ours(shell, port, folder):
    out, err = said(command(shell) + ["-server", "127.0.0.1:%d" % port], folder, "ours")
    # What we say more: where it was, and what to do about it.
    err = [re.sub(r"^line \d+: ", "", line).split("; ")[0] for line in err.splitlines()]
    # Ours says on the output what it has created.
    created = [line for line in out.splitlines() if line.startswith("Created ")]
    return re.sub(r"^Created .*\n", "", out, flags=re.M), err + created


def same(own, theirs, what):
    difference = difflib.unified_diff(theirs, own, "java", "ours", lineterm="", n=1)
    expect(own == theirs, "%s: %s" % (what, "\n".join(difference)))


def compare(theirs, own):
    def both(lines_of):
        return lines_of(*own), lines_of(*theirs)

    own_answers, answers = both(lambda out, _: DIFFERS.sub("...", OF_AN_EVENT.sub("", out)).splitlines())
    same(own_answers, answers, "answers")
    # The event of `removewatches` may come after `printwatches off`.
    own_events, events = both(
        lambda out, _: [event for event in EVENT.findall(out) if "type:PersistentWatchRemoved" not in event]
    )
    same(own_events, events, "events")
    # Java's shell writes these lines to two streams, in another order.
    own_refusals, refusals = both(lambda _, lines: sorted(lines))
    same(own_refusals, refusals, "what was created and refused")


def check():
    parser = arguments(__doc__)
    parser.add_argument(
        "--shell", default="target/release/ostler shell", metavar="CMD", help="our shell (default: %(default)s)"
    )
    args = parser.parse_args()
    need("zk39")
    folder = work_folder("ostler-shell")
    with Server(args.server, os.path.join(folder, "first"), args.port, {"enforceQuota": "true"}):
        theirs = java("3.9", args.port, folder)
    with Server(args.server, os.path.join(folder, "second"), args.port, {"enforceQuota": "true"}):
        own = ours(args.shell, args.port, folder)
    expect(len(own[0].splitlines()) > 100, "our shell says little: %r" % own[0][-300:])
    compare(theirs, own)
    return "%d commands answered as by the 3.9 shell" % len(COMMANDS.split("\n")[1:-1])


if __name__ == "__main__":
    conclude(check)
