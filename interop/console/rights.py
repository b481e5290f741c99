"""What each identity may do with a znode: by the shell, by the console's API, and by the rules of ACLs.

python3 interop/run.py console.rights [--server CMD] [--port N] [--shell CMD]

Each identity tries each action on each znode twice, as a client and as somebody at the console, on trees of their own.
All answers are compared cell by cell, and at the end the trees."""

import base64
import hashlib
import json
import re
import subprocess
import urllib.parse
from collections import Counter

from admin.http import ask
from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.server import OSTLER, Server, arguments, command, work_folder


def digest_id(login):
    user = login.split(":")[0]
    return "%s:%s" % (user, base64.b64encode(hashlib.sha1(login.encode()).digest()).decode())


LOGINS = {"nobody": None, "ann": "ann:of ann", "bob": "bob:of bob", "super": "super:secret"}
ANN, BOB = ("digest:" + digest_id(LOGINS[user]) for user in ("ann", "bob"))
# The paths below a tree's root, and their ACLs: {who: permissions}.
ZNODES = {
    "open": {"world:anyone": "cdrwa"},
    "readable": {"world:anyone": "r", ANN: "cdrwa"},
    "of-ann": {ANN: "cdrwa"},
    "shared": {ANN: "rc", BOB: "wd"},
    "append-only": {"world:anyone": "c", BOB: "r"},
    "drop-box": {"world:anyone": "w", ANN: "r"},
    "reaped": {"world:anyone": "d"},
    "governed": {ANN: "a", BOB: "r"},
    "by-address": {"ip:127.0.0.1": "rw", "ip:10.0.0.0/8": "cda"},
    # The znode above does not count.
    "of-ann/inner": {"world:anyone": "cdrwa"},
    "of-ann/of-bob": {BOB: "cdrwa"},
}
# The actions in the order in which they are tried, with what each needs in the ACL; one of several is enough.
ACTIONS = {"read": "r", "list": "r", "read ACL": "ra", "set": "w", "create": "c", "delete": "d", "set ACL": "a"}
REFUSALS = {
    "Insufficient permission": "NOAUTH",
    "Node does not exist": "NONODE",
    "Node already exists": "NODEEXISTS",
    "Node not empty": "NOTEMPTY",
    "version No is not valid": "BADVERSION",
}
NEW_ACL = {"world:anyone": "ra"}


def acl_text(acl):
    return ",".join("%s:%s" % entry for entry in acl.items())


def acl_json(acl):
    entries = [(*who.split(":", 1), perms) for who, perms in acl.items()]
    return [{"scheme": scheme, "id": name, "perms": perms} for scheme, name, perms in entries]


def allowed(who, acl, action):
    """The rule of ACLs, without a server."""
    own = {"nobody": [], "ann": [ANN], "bob": [BOB]}.get(who)
    if own is None:
        return True
    perms = "".join(acl.get(one, "") for one in [*own, "world:anyone", "ip:127.0.0.1"])
    return any(perm in perms for perm in ACTIONS[action])


def cells():
    return [(znode, action) for znode in ZNODES for action in ACTIONS]


class Shell:
    """`ostler shell`, one process for many commands."""

    def __init__(self, words, port):
        self.words, self.port = words, port

    def run(self, login, lines):
        """The answer of each line: JSON, or the name of a refusal."""
        # Neither of the two has an answer.
        first = "addauth digest '%s'" % login if login else "# nobody"
        text = "".join("%s\n" % line for line in [first, *lines])
        words = [*self.words, "--json", "127.0.0.1:%d" % self.port]
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=300, check=False)
        refused = dict(refusal(line) for line in done.stderr.splitlines())
        answers = map(json.loads, done.stdout.splitlines())
        return [refused.get(at + 2) or next(answers) for at in range(len(lines))]

    def fill(self, roots):
        lines = []
        for root in roots:
            lines.append("create -p %s" % root)
            for znode in ZNODES:
                lines += ["create %s/%s %s" % (root, znode, "'as it was'"), "create %s/%s/child c" % (root, znode)]
        # From below, so that nobody locks themselves out.
        for root in roots:
            for znode in reversed(ZNODES):
                lines.append("setAcl %s/%s %s" % (root, znode, acl_text(ZNODES[znode])))
        for line, answer in zip(lines, self.run(LOGINS["super"], lines), strict=True):
            expect(not isinstance(answer, str), "%s: %s" % (line, answer))

    def try_all(self, who, root):
        lines = []
        for znode, action in cells():
            path = "%s/%s" % (root, znode)
            lines.append(
                {
                    "read": "get %s" % path,
                    "list": "ls %s" % path,
                    "read ACL": "getAcl %s" % path,
                    "set": "set %s 'set by the test'" % path,
                    "create": "create %s/new n" % path,
                    "delete": "delete %s/child" % path,
                    "set ACL": "setAcl %s %s" % (path, acl_text(NEW_ACL)),
                }[action]
            )
        answers = self.run(LOGINS[who], lines)
        return dict(zip(cells(), map(self.outcome, cells(), answers), strict=True))

    @staticmethod
    def outcome(cell, answer):
        if isinstance(answer, str):
            return answer
        return {
            "read": lambda: answer["data"],
            "list": lambda: sorted(answer["children"]),
            "read ACL": lambda: sorted("%s:%s:%s" % (one["scheme"], one["id"], one["perms"]) for one in answer["acl"]),
        }.get(cell[1], lambda: "done")()


def refusal(line):
    """The number of the line, and the name of the refusal."""
    match = re.match(r"line (\d+): (.*)", line)
    if not match:
        raise Mismatch("the shell says %r" % line)
    names = [name for begin, name in REFUSALS.items() if match[2].startswith(begin)]
    return int(match[1]), names[0] if names else match[2]


class Console:
    """The console's API."""

    def __init__(self, port):
        self.port = port

    def ask(self, login, what, body=None, **query):
        headers = {"Authorization": "digest %s" % login} if login else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
            if not login:
                headers["X-Ostler-Token"] = self.ask(None, "me")[1]["token"]
        url = "/api/v1/%s%s" % (what, "?" + urllib.parse.urlencode(query) if query else "")
        sent = None if body is None else json.dumps(body).encode()
        answer = ask(self.port, url, "GET" if body is None else "POST", headers, sent)
        return answer.status, answer.json()

    def try_all(self, who, root):
        return {cell: self.outcome(LOGINS[who], "%s/%s" % (root, cell[0]), cell[1]) for cell in cells()}

    def outcome(self, login, path, action):
        status, answer = self.act(login, path, action)
        if status != 200:
            return answer["code"]
        return {
            "read": lambda: base64.b64decode(answer["data"]).decode(),
            "list": lambda: sorted(item["name"] for item in answer["items"]),
            "read ACL": lambda: sorted("%s:%s:%s" % (one["scheme"], one["id"], one["perms"]) for one in answer["acl"]),
        }.get(action, lambda: "done")()

    def act(self, login, path, action):
        def change(name, **body):
            return self.ask(login, "tree/" + name, body)

        return {
            "read": lambda: self.ask(login, "tree/data", path=path),
            "list": lambda: self.ask(login, "tree/children", path=path),
            "read ACL": lambda: self.ask(login, "tree/node", path=path),
            "set": lambda: change("set", path=path, data=encoded("set by the test"), version=-1),
            "create": lambda: change("create", path=path + "/new", data=encoded("n"), mode="persistent"),
            "delete": lambda: change("delete", path=path + "/child", version=-1),
            "set ACL": lambda: change("set-acl", path=path, acl=acl_json(NEW_ACL), version=-1),
        }[action]()

    def tree(self, root):
        """All that the tree has, as the super user sees it."""
        found = {}
        for znode in ZNODES:
            for name in ("", "/child", "/new"):
                status, node = self.ask(LOGINS["super"], "tree/node", path="%s/%s%s" % (root, znode, name))
                if status != 200:
                    found[znode + name] = node["code"]
                    continue
                data = self.ask(LOGINS["super"], "tree/data", path=node["path"])[1]["data"]
                versions = [node["stat"][key] for key in ("version", "cversion", "aversion", "num_children")]
                found[znode + name] = (data, node["acl"], versions)
        return found


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def compare(who, by_shell, by_console):
    """Fails with all cells that differ."""
    wrong = []
    for cell in cells():
        znode, action = cell
        rule = "allowed" if allowed(who, ZNODES[znode], action) else "NOAUTH"
        outcomes = {"shell": by_shell[cell], "console": by_console[cell]}
        fits = all((outcome == "NOAUTH") == (rule == "NOAUTH") for outcome in outcomes.values())
        if not fits or outcomes["shell"] != outcomes["console"]:
            wrong.append("%s: %s of %s: by the rule %s, %s" % (who, action, znode, rule, outcomes))
    expect(not wrong, "\n".join(wrong))


def print_table(who, outcomes):
    print("%-16s%s" % (who, "".join("%-10s" % action for action in ACTIONS)))
    for znode in ZNODES:
        answers = [outcomes[znode, action] for action in ACTIONS]
        print("  %-14s%s" % (znode, "".join("%-10s" % (a if a == "NOAUTH" else "yes") for a in answers)))


def main():
    more = {"shell": {"default": OSTLER.split()[0] + " shell", "metavar": "CMD"}}
    args = arguments(__doc__, **more).parse_args()
    admin = args.port + 1
    settings = {
        "admin.enableServer": "true",
        "admin.serverPort": admin,
        "admin.readOnly": "false",
        "DigestAuthenticationProvider.superDigest": digest_id(LOGINS["super"]),
    }
    shell, console = Shell(command(args.shell), args.port), Console(admin)
    with Server(args.server, work_folder("rights"), args.port, settings):
        shell.fill(["/by-%s/%s" % (tool, who) for tool in ("shell", "console") for who in LOGINS])
        counts = Counter()
        for who in LOGINS:
            by_shell = shell.try_all(who, "/by-shell/" + who)
            by_console = console.try_all(who, "/by-console/" + who)
            print_table(who, by_shell)
            compare(who, by_shell, by_console)
            expect_equal(console.tree("/by-console/" + who), console.tree("/by-shell/" + who), "the tree of " + who)
            counts.update((action, outcome == "NOAUTH") for (_, action), outcome in by_shell.items())
    for action in ACTIONS:
        expect(counts[action, True] and counts[action, False], "%s is never allowed, or never refused" % action)
    refused = sum(counts[action, True] for action in ACTIONS)
    return "%d cells are the same by shell, console and rule, %d of them refusals" % (counts.total(), refused)


if __name__ == "__main__":
    conclude(main)
