"""Runs the commands of docs/shell.md, docs/explain.md and docs/backup.md, and the record of docs/console.md, as they
stand there, at three servers. The names of the pages stand for addresses of this machine; the check runs in a namespace
of its own. Only these things are replaced: the session, the zxid and the time by those of this run, and the folders.

python3 interop/run.py book.run [--server CMD]"""

import datetime
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import harness.session
from book.programs import Site
from harness.outcome import conclude, expect
from harness.pages import Page
from harness.peers import need_program
from harness.program import Program
from harness.server import arguments, command

NUMBERS = (1, 2, 3)
PAGE_SESSION, PAGE_ZXID, PAGE_TIME = "0x100a3f77c2d10004", "0x500000a1f", "2026-11-27T03:00:00Z"
FOLDERS = (
    ("/etc/zookeeper/zoo.cfg", "zoo-1.cfg"),
    ("/var/lib/zookeeper", "data-1"),
    ("/backup/zk1", "backup"),
    ("/restored", "restored"),
)
CLIENT = ("10.0.0.5", 41234)  # as docs/explain.md has it
CONFIG = """tickTime=500
initLimit=10
syncLimit=5
dataDir=data-{n}
clientPort=2181
clientPortAddress=127.0.0.{n}
admin.serverAddress=127.0.0.{n}
4lw.commands.whitelist=srvr,elec
server.1=host1:2888:3888
server.2=host2:2888:3888
server.3=host3:2888:3888
"""


def names(site):
    """Gives the servers the names of the pages."""
    lines = ["127.0.0.%d zk%d host%d\n" % (n, n, n) for n in NUMBERS]
    site.write("hosts", "127.0.0.1 localhost\n" + "".join(lines))
    subprocess.run(["mount", "--bind", os.path.join(site.folder, "hosts"), "/etc/hosts"], check=True)


def ensemble(site):
    for n in NUMBERS:
        os.mkdir(os.path.join(site.folder, "data-%d" % n))
        site.write("data-%d/myid" % n, "%d\n" % n)
        site.write("zoo-%d.cfg" % n, CONFIG.format(n=n))
    servers = [Program(["ostler", "server", "zoo-%d.cfg" % n], cwd=site.folder, env=site.env) for n in NUMBERS]
    for n in NUMBERS:
        site.run("until curl -fs 'http://host%d:8080/readyz?voter'; do sleep 0.1; done" % n)
    return servers


def shell(site):
    page = Page("shell.md")
    blocks = [block.text for block in page.left if block.fence == "sh"]
    expect(len(blocks) == 3, "docs/shell.md has %d blocks to run, and this check knows 3" % len(blocks))
    site.run("ostler shell zk1:2181 create /config '{\"threads\":8}'; ostler shell zk1:2181 create /app")
    site.write("commands.txt", "create /from-file\nset /config changed\n")
    for name in ("make-report", "mailer"):
        site.write(name, "#!/bin/sh\necho %s runs\n" % name)
        os.chmod(os.path.join(site.folder, name), 0o755)
    said = [site.run(block) for block in blocks]
    expect("changed" in said[0], "the shell does not read /config: %s" % said[0])
    expect(said[1].split() == ["changed", "1"], "jq reads %r, not the data and its version" % said[1])
    expect("make-report runs" in said[2] and "mailer runs" in said[2], "the programs did not run: %s" % said[2])
    return len(blocks)


def ended_session():
    """A session of the client of the page, which ends it. Returns its id."""
    harness.session.connect = lambda port, timeout: socket.create_connection(("127.0.0.1", port), timeout, CLIENT)
    session = harness.session.Session(2181)
    session.close()
    return "0x%x" % session.id


def explain(site):
    page = Page("explain.md")
    session = ended_session()
    for n in (1, 2):
        site.run("curl -fs http://host%d:8080/commands/session_ends > ends-%d.json" % (n, n))
    blocks = [block.text for block in page.left if block.fence == "sh"]
    for block in blocks:
        for line in block.splitlines():
            said = site.run(line.replace(PAGE_SESSION, session))
            expect(session in said, "the explanation does not name the session %s: %s" % (session, said))
    return len(blocks)


def of_this_run(site, text):
    """A command of docs/backup.md with what is here."""
    text = text.replace(PAGE_ZXID, site.zxid).replace(PAGE_TIME, site.time)
    if "--config" in text:  # a server whose folder is empty
        text = text.replace("/etc/zookeeper/zoo.cfg", "zoo-restored.cfg")
    for there, here in FOLDERS:
        text = text.replace(there, here)
    return text


def back_up(site, lines):
    for line in lines:
        if line.endswith("--follow"):
            following = Program(["bash", "-c", "exec " + line], cwd=site.folder, env=site.env)
            following.wait_for("^base|zxid", 30)
            following.kill()
        else:
            site.run(line)


def restore(site, lines):
    site.write("zoo-restored.cfg", CONFIG.format(n=1).replace("data-1", "data-restored"))
    os.mkdir(os.path.join(site.folder, "data-restored"))
    site.write("data-restored/myid", "1\n")
    for line in lines:
        site.run(line)
        restored = "data-restored" if "--config" in line else "restored/1"
        snapshots = os.listdir(os.path.join(site.folder, restored, "version-2"))
        expect(any(name.startswith("snapshot.") for name in snapshots), "`%s` makes no snapshot" % line)
        shutil.rmtree(os.path.join(site.folder, restored.split("/")[0]))


def backup(site):
    """Backs up, restores into folders, and puts a subtree back that was deleted."""
    site.run("ostler shell zk1:2181 create /app/config value")
    said = site.run("ostler inspect log data-1")
    site.zxid = re.findall(r"zxid (0x[0-9a-f]+)", said)[-1]
    time.sleep(1.1)  # so that a time in seconds is after that transaction, and before the next one
    site.time = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    time.sleep(1.1)
    site.run("ostler shell zk1:2181 deleteall /app")
    blocks = [block for block in Page("backup.md").left if block.fence == "sh"]
    count = len(blocks)
    for block in blocks:
        lines = of_this_run(site, block.text).splitlines()
        if block.section == "Back up":
            for line in [line for line in lines if "s3://" in line]:
                print("not run here: %s (disk.backup_s3 backs up to S3)" % line)
            back_up(site, [line for line in lines if "s3://" not in line])
        elif block.section == "Restore an ensemble":
            restore(site, lines)
        else:
            site.run("\n".join(lines))
    expect("value" in site.run("ostler shell zk1:2181 get /app/config"), "the subtree is not back")
    return count


def record(site):
    """The record of elections that docs/console.md opens."""
    blocks = [block.text for block in Page("console.md").left if block.text.startswith("ostler explain election")]
    for block in blocks:
        site.run(block)
        with open(os.path.join(site.folder, "elections.json")) as f:
            expect(json.load(f)["elections"], "the record has no election")
    return len(blocks)


def check():
    args = arguments(__doc__).parse_args()
    [need_program(name) for name in ("bash", "curl", "ip", "jq", "mount")]
    subprocess.run("ip link set lo up && ip address add %s/32 dev lo" % CLIENT[0], shell=True, check=True)
    site = Site(shutil.which(command(args.server)[0]))
    names(site)
    servers = ensemble(site)
    count = shell(site) + explain(site) + record(site) + backup(site)
    for server in servers:
        server.kill()
    return "%d blocks of docs/shell.md, docs/explain.md, docs/console.md and docs/backup.md" % count


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    conclude(check)
