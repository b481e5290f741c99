"""Runs the programs of the get-started pages, and those of README.md and docs/recipes/fencing.md, as they stand there.

The check runs in a network namespace of its own, so that the server has the address of the pages.

python3 interop/run.py book.run [--server CMD] [--rust FILE]"""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import xml.etree.ElementTree

from harness.outcome import conclude, expect, expect_equal
from harness.pages import Page, blocks
from harness.peers import CHECKOUT, need, need_program
from harness.program import Program
from harness.server import arguments, command, work_folder

SERVE = "ostler server"
ADDRESS = "127.0.0.1:2181"
EXAMPLE = "crates/recipes/examples/get_started.rs"
MAVEN = "{http://maven.apache.org/POM/4.0.0}"


class Site:
    """A folder with what a page's commands find, and the server that the page starts."""

    def __init__(self, ostler):
        self.folder = work_folder("book")
        programs = os.path.join(self.folder, "programs")
        os.mkdir(programs)
        os.symlink(ostler, os.path.join(programs, "ostler"))
        venv = os.path.join(need("venv"), "bin")
        path = os.pathsep.join([programs, venv, os.environ["PATH"]])
        self.env = {**os.environ, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write(text)

    def run(self, text):
        """Runs a block. Returns what it prints to standard output."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said = done.stdout + done.stderr[-1500:]
        expect(done.returncode == 0, "this ended with %d:\n%s%s" % (done.returncode, text, said))
        return done.stdout

    def serve(self, page):
        """Starts the server by the page's own command."""
        started = page.take("Start a server")
        expect_equal(started.strip(), SERVE, "the page's command of the server")
        server = Program(["bash", "-c", "exec " + started], cwd=self.folder, env=self.env)
        server.wait_for("^listening on " + re.escape(ADDRESS))
        return server


def output_fits(page, said):
    """The page shows what the program prints."""
    expect_equal(said, page.take("The program", "text"), "the output of the program of the page")
    left = [block.fence for block in page.left if block.fence not in ("", "sh,no_run")]
    expect(not left, "blocks of the page that nothing runs: %s" % left)


def python(site):
    page = Page("get-started/python.md")
    server = site.serve(page)
    site.run(page.take("Install the client"))
    site.write("get_started.py", page.take("The program", "python"))
    output_fits(page, site.run(page.take("The program")))
    with open(os.path.join(CHECKOUT, "README.md")) as f:
        (program,) = [block for block in blocks(f.read()) if block.fence == "python"]
    site.write("readme.py", program.text)
    expect("I hold the lock" in site.run("python3 readme.py"), "the program of README.md does not get the lock")
    server.kill()


def java(site):
    need_program("java")
    page = Page("get-started/java.md")
    jars = need("zk39")
    server = site.serve(page)
    pom = xml.etree.ElementTree.fromstring(page.take("Get Curator", "xml"))
    for dependency in pom.iter(MAVEN + "dependency"):
        name, version = (dependency.findtext(MAVEN + part) for part in ("artifactId", "version"))
        jar = "%s-%s.jar" % (name, version)
        expect(os.path.exists(os.path.join(jars, jar)), "the page names %s, which is not what this check has" % jar)
    os.symlink(jars, os.path.join(site.folder, "lib"))
    site.write("GetStarted.java", page.take("The program", "java"))
    output_fits(page, site.run(page.take("The program")))
    server.kill()


def rust(site, program):
    page = Page("get-started/rust.md")
    server = site.serve(page)
    manifest = tomllib.loads(page.take("Depend on the client and the recipes", "toml"))
    for name, dependency in manifest["dependencies"].items():
        path = dependency.get("path", "").removeprefix("../ostler/")
        if path:
            with open(os.path.join(CHECKOUT, path, "Cargo.toml"), "rb") as f:
                expect_equal(tomllib.load(f)["package"]["name"], name, "the crate in " + path)
    with open(os.path.join(CHECKOUT, EXAMPLE)) as f:
        example = f.read()
    expect(
        example.endswith("\n\n" + page.take("The program", "rust,no_run")),
        "%s is another program than that of docs/get-started/rust.md" % EXAMPLE,
    )
    output_fits(page, site.run(program))
    server.kill()


def sql():
    """The statement refuses a smaller token than the largest that it has seen."""
    (statement,) = [block.text for block in Page("recipes/fencing.md").left if block.fence == "sql"]
    store = sqlite3.connect(":memory:")
    store.execute("CREATE TABLE ledger (id INTEGER, amount INTEGER, token INTEGER)")
    store.execute("INSERT INTO ledger VALUES (7, 0, 0)")
    taken = [store.execute(statement, {"token": token}).rowcount for token in (8, 10, 8, 10)]
    expect_equal(taken, [1, 1, 0, 1], "the rows that writes with the tokens 8, 10, 8, 10 have changed")


def check():
    args = arguments(__doc__, rust={"metavar": "FILE", "help": "the built example get_started"}).parse_args()
    subprocess.run([need_program("ip"), "link", "set", "lo", "up"], check=True)
    ostler = shutil.which(command(args.server)[0])
    python(Site(ostler))
    java(Site(ostler))
    rust(Site(ostler), args.rust)
    sql()
    return "the programs of the pages run, in Python, Java, Rust and SQL"


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    conclude(check)
