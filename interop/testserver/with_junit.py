"""`ostler testserver` from Java: the extension junit/OstlerExtension.java, and tests of Curator that use it."""

import glob
import os
import subprocess

from harness.outcome import conclude, expect_equal
from harness.peers import INTEROP, need, need_program
from harness.server import arguments, work_folder
from testserver.program import ended, ostler, passed

SOURCES = os.path.join(INTEROP, "testserver", "junit")
CONSOLE = "org.junit.platform.console.ConsoleLauncher"


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **more)


def check():
    args = arguments(__doc__).parse_args()
    curator, junit = need("zk39"), need("junit")
    classes, servers = work_folder("testserver-classes"), work_folder("testserver-junit")
    jars = "%s/*:%s/*" % (junit, curator)
    sources = sorted(glob.glob(os.path.join(SOURCES, "*.java")))
    compiled = run([need_program("javac"), "-nowarn", "-proc:none", "-d", classes, "-cp", jars, *sources])
    expect_equal(compiled.returncode, 0, "javac: " + compiled.stdout[-1500:])

    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlevel=OFF"]
    logging = "-Dlog4j2.configurationFile=%s/log4j2.xml" % curator
    shown = ["--select-class", "CuratorTest", "--disable-banner", "--details=tree", "--disable-ansi-colors"]
    done = run(
        ["java", *options, logging, "-cp", "%s:%s" % (classes, jars), CONSOLE, *shown],
        env=dict(os.environ, OSTLER=ostler(args.server), TMPDIR=servers),
    )
    print(done.stdout, flush=True)
    expect_equal(done.returncode, 0, ended(done.returncode, done.stdout))
    number = passed(r"(\d+) tests successful", done.stdout, least=4)
    expect_equal(os.listdir(servers), [], "folders that are left")
    return "%d tests of Curator with the extension of JUnit" % number


if __name__ == "__main__":
    conclude(check)
