"""Curator 5.9: its recipes in one program (curator/Recipes.java), and a lock that outlives the kill of its holder."""

import os
import subprocess
import time

from harness.outcome import conclude, expect, expect_equal
from harness.peers import INTEROP, need, need_program
from harness.program import Program
from harness.server import Server, arguments, work_folder

SESSION_S = 4


def compile_program(name, folder, jars):
    """Compiles curator/NAME.java into a folder."""
    source = os.path.join(INTEROP, "clients", "curator", name + ".java")
    cmd = [need_program("javac"), "-nowarn", "-proc:none", "-d", folder, "-cp", jars + "/*", source]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(p.returncode == 0, "javac failed: " + p.stdout[-1500:])


def words_of(name, folder, jars, *words):
    """The command that runs a compiled program."""
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-Dlevel=OFF", "-Dlog4j2.configurationFile=%s/log4j2.xml" % jars]
    return ["java", *options, "-cp", "%s:%s/*" % (folder, jars), name, *words]


def recipes(folder, jars, *words):
    return Program(words_of("Recipes", folder, jars, *words))


def check():
    args = arguments(__doc__).parse_args()
    jars, folder = need("zk39"), work_folder("curator")
    compile_program("Recipes", folder, jars)
    port = str(args.port)
    with Server(args.server, folder, args.port):
        everything = recipes(folder, jars, port)
        everything.wait_for(r"^all recipes work$", timeout=180)
        print(everything.output, end="")
        expect_equal(everything.finish(), 0, "exit code of the recipes")

        holder = recipes(folder, jars, port, "hold", "/killed")
        holder.wait_for(r"^holding$")
        next_one = recipes(folder, jars, port, "hold", "/killed")
        time.sleep(SESSION_S / 2)
        expect("holding" not in next_one.output, "two programs hold one lock")
        holder.kill()
        next_one.wait_for(r"^holding$", timeout=3 * SESSION_S)
        next_one.kill()
    return "Curator's leader election, locks, counters, barrier, cache and session loss"


if __name__ == "__main__":
    conclude(check)
