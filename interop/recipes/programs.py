"""Builds the programs of a check: Curator's from a .java file of this folder, and Ostler's from
crates/recipes/examples."""

import json
import os
import subprocess

from harness.outcome import expect
from harness.peers import CHECKOUT, INTEROP, need_program


def java(name, folder, jars, *flags):
    """The command of a class of this folder, compiled into `folder`."""
    source = os.path.join(INTEROP, "recipes", name + ".java")
    cmd = [need_program("javac"), "-nowarn", "-proc:none", "-d", folder, "-cp", jars + "/*", source]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(p.returncode == 0, "javac failed: " + p.stdout[-1500:])
    return [
        "java",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dlevel=OFF",
        *flags,
        "-Dlog4j2.configurationFile=%s/log4j2.xml" % jars,
        "-cp",
        "%s:%s/*" % (folder, jars),
        name,
    ]


def rust(name, built=None):
    """The command of an example, which is built unless it is given."""
    if built:
        return [built]
    # As `cargo test --workspace` builds it: after that nothing is left to do.
    cmd = [need_program("cargo"), "build", "--quiet", "--message-format=json", "--workspace", "--example", name]
    p = subprocess.run(cmd, cwd=CHECKOUT, capture_output=True, text=True)
    expect(p.returncode == 0, "cargo build failed: " + p.stderr[-1500:])
    lines = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]
    made = [line["executable"] for line in lines if line.get("executable") and line["target"]["name"] == name]
    expect(made, "cargo names no program of the example " + name)
    return [made[-1]]
