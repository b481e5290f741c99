"""Runs docs/testserver.md: the blocks of curl as they stand, one after the other. The blocks of Python and Java have to
stand in the examples, which testserver.with_pytest and testserver.with_junit run. Each call of the list is known to the
program, and answers have the members that the page shows."""

import json
import os
import re
import textwrap
import urllib.error
import urllib.request

from harness.outcome import conclude, expect, expect_equal
from harness.pages import blocks
from harness.peers import CHECKOUT, INTEROP, need, need_program
from harness.program import Program
from harness.server import arguments, work_folder
from harness.session import Session
from testserver.program import ostler

PAGE = os.path.join(CHECKOUT, "docs", "testserver.md")
EXAMPLES = {"python": ("pytest", ".py"), "java": ("junit", ".java")}
CALL = re.compile(r"^\| `(GET|POST|DELETE) (\S+)` \|", re.M)
# A refused call ends the shell, which the page does not have to say.
PRELUDE = 'set -e; curl() { command curl --fail-with-body "$@"; }'
UNKNOWN = "there is nothing at"


def read(path):
    with open(path) as f:
        return f.read()


def examples(language):
    """The text of all examples, and the same without indentation, block by block."""
    folder, ending = EXAMPLES[language]
    path = os.path.join(INTEROP, "testserver", folder)
    return "\n".join(read(os.path.join(path, name)) for name in os.listdir(path) if name.endswith(ending))


def stands_in(block, text):
    """Whether the lines stand in a text in this order, at any indentation."""
    lines = block.text.rstrip().split("\n")
    steps = (0, 4, 8, 12)
    return any(textwrap.indent("\n".join(lines), " " * step) in text for step in steps)


def members(value):
    """The names of the members of JSON, however deep."""
    if isinstance(value, dict):
        return {name: members(of) for name, of in value.items()}
    return [members(value[0])] if isinstance(value, list) and value else type(value).__name__


def check_calls(control):
    """Each call of the list is known. None of them finds its ensemble."""
    calls = CALL.findall(read(PAGE))
    expect(len(calls) >= 15, "the page has only %d calls" % len(calls))
    for method, path in calls:
        if (method, path) in (("POST", "/ensembles"), ("DELETE", "/ensembles"), ("GET", "/ensembles")):
            continue
        path = path.replace("ID", "999").replace("SERVER", "1").replace("SESSION", "0x1")
        try:
            urllib.request.urlopen(urllib.request.Request(control + path, method=method), timeout=10)
            expect(False, "%s %s found ensemble 999" % (method, path))
        except urllib.error.HTTPError as refused:
            error = json.load(refused)["error"]
        expect("no ensemble 999" in error and UNKNOWN not in error, "%s %s: %s" % (method, path, error))


def check_answers(page, folder):
    """The answers that the page shows have the members of real ones."""
    shown = [json.loads(block.text) for block in page if block.fence == "json"]
    started, state, error = shown
    expect_equal(members(started), members(json.loads(read(folder + "/testserver.json"))), "the first line")
    expect_equal(members(state), members(json.loads(read(folder + "/ensemble.json"))), "the state of an ensemble")
    expect_equal(members(error), {"error": "str"}, "an error")


def run_blocks(page, folder, program):
    path = "%s:%s" % (os.path.dirname(program), os.environ["PATH"])
    shell = Program(["bash"], cwd=folder, env=dict(os.environ, PATH=path, TMPDIR=folder))
    shell.send(PRELUDE)
    sessions, control = [], None
    for number, block in enumerate(page):
        if "sessions" in block.text:
            ports = re.findall(r":(\d+)", json.loads(read(folder + "/ensemble.json"))["connect"])
            sessions = [Session(int(ports[0])), Session(int(ports[1]))]
        if "kill $testserver" in block.text:
            check_calls(control)
        shell.ask(block.text + "echo; echo done-%d" % number, "^done-%d$" % number, timeout=30)
        print(block.text, flush=True)
        control = control or json.loads(read(folder + "/testserver.json"))["control"]
    expect(len(sessions) == 2, "the page expires no session")
    shell.ask("wait $testserver; echo code-$?", "^code-0$")
    print(shell.output)
    expect(UNKNOWN not in shell.output, "the page has a call that does not exist")
    expect_equal([name for name in os.listdir(folder) if name.startswith("ostler-")], [], "folders that are left")


def check():
    args = arguments(__doc__).parse_args()
    need("junit")  # it has brought curl and jq
    need_program("curl")
    need_program("jq")
    page, folder = blocks(read(PAGE)), work_folder("testserver-page")
    run_blocks([block for block in page if block.fence == "sh"], folder, ostler(args.server))
    check_answers(page, folder)
    for language in EXAMPLES:
        text = examples(language)
        for block in page:
            if block.fence == language:
                expect(stands_in(block, text), "no example has this block of the page: " + block.text)
    kinds = {block.fence for block in page}
    expect_equal(kinds, {"json", "sh", "python", "java"}, "the kinds of blocks")
    return "%d blocks of docs/testserver.md" % len(page)


if __name__ == "__main__":
    conclude(check)
