"""What happens to the code of the documents: each block with a language has somebody that runs or compiles it, or the
mark `no_run`."""

import glob
import os
import re
from typing import NamedTuple

from book.links import Repository
from book.markdown import Block
from harness.peers import CHECKOUT

# Words of a tag that say that a block is not run. `no_run` of Rust is compiled.
NOT_RUN, IGNORED = "no_run", "ignore"
PLAIN = ("", "text")
# A block that begins like this has commands, so it needs a language.
COMMAND = re.compile(r"\s*(\$ |ostler [a-z]|cargo |python3 |curl |kubectl |docker |systemctl )")
HERE = "interop/book/programs.py"
COMMANDS = "interop/book/commands.py"
TESTSERVER = "interop/testserver/page.py"
# Which program runs the blocks of a page, from the page itself: it has to name the page.
RUN_BY = {
    ("docs/operations.md", "sh"): "interop/admin/handbook.py",
    ("docs/operations.md", "properties"): "interop/admin/handbook.py",
    ("docs/secure.md", "sh"): "interop/security/page.py",
    ("docs/secure.md", "properties"): "interop/security/page.py",
    ("docs/inspect.md", "sh"): "crates/cli/tests/inspect.rs",
    ("docs/get-started/rust.md", "sh"): HERE,
    ("docs/get-started/rust.md", "toml"): HERE,
    ("docs/get-started/python.md", "sh"): HERE,
    ("docs/get-started/python.md", "python"): HERE,
    ("docs/get-started/java.md", "sh"): HERE,
    ("docs/get-started/java.md", "xml"): HERE,
    ("docs/get-started/java.md", "java"): HERE,
    ("docs/recipes/fencing.md", "sql"): HERE,
    ("README.md", "python"): HERE,
    ("docs/shell.md", "sh"): COMMANDS,
    ("docs/explain.md", "sh"): COMMANDS,
    ("docs/console.md", "sh"): COMMANDS,
    ("docs/backup.md", "sh"): COMMANDS,
    ("docs/examples.md", "sh"): "interop/examples/page.py",
    ("docs/testserver.md", "sh"): TESTSERVER,
    ("docs/testserver.md", "json"): TESTSERVER,
    ("docs/testserver.md", "python"): TESTSERVER,
    ("docs/testserver.md", "java"): TESTSERVER,
}
# Blocks without the mark that nothing runs: their page, language and first words, with the reason.
EXCUSED = (
    ("README.md", "sh", "", "builds Ostler and downloads a Java ZooKeeper"),
    ("docs/console.md", "sh", "ssh ", "needs another machine with a browser"),
)


class Fate(NamedTuple):
    """What happens to a block: a kind that is counted, or a complaint."""

    kind: str
    complaint: str = ""


class Fates:
    def __init__(self) -> None:
        self.included = included_documents()
        self._sources: dict[str, str] = {}

    def of(self, name: str, block: Block) -> Fate:
        if block.language in PLAIN:
            if not block.language and COMMAND.match(block.text):
                return Fate("", "this block has commands and no language: call it `sh`, or `text` if it is output")
            return Fate("plain text")
        if block.language == "rust":
            return self.of_rust(name, block)
        if NOT_RUN in block.marks:
            return Fate("%s, marked %s" % (block.language, NOT_RUN))
        for page, language, words, reason in EXCUSED:
            if (page, language) == (name, block.language) and block.text.startswith(words):
                return Fate("%s, not run: %s" % (language, reason))
        if runner := RUN_BY.get((name, block.language)):
            if name.removeprefix("docs/") not in self.source(runner):
                return Fate("", "%s does not name %s" % (runner, name))
            return Fate("%s, run by %s" % (block.language, runner))
        return Fate(
            "", "nothing runs this block; mark it `%s,%s`, or see interop/book/blocks.py" % (block.language, NOT_RUN)
        )

    def of_rust(self, name: str, block: Block) -> Fate:
        if IGNORED in block.marks:
            return Fate("rust, marked %s" % IGNORED)
        if name not in self.included:
            return Fate("", "no crate compiles this block: include the page by #[doc = include_str!(...)]")
        return Fate("rust, compiled by cargo test --doc")

    def source(self, name: str) -> str:
        if name not in self._sources:
            with open(os.path.join(CHECKOUT, name), encoding="utf-8") as f:
                self._sources[name] = f.read()
        return self._sources[name]


def included_documents() -> set[str]:
    """The documents whose Rust is compiled with the documentation of a crate."""
    found = set()
    for path in glob.glob(os.path.join(CHECKOUT, "crates", "*", "src", "**", "*.rs"), recursive=True):
        with open(path, encoding="utf-8") as f:
            for target in re.findall(r"doc\s*=\s*include_str!\(\s*\"([^\"]+\.md)\"", f.read()):
                found.add(os.path.relpath(os.path.join(os.path.dirname(path), target), CHECKOUT))
    return found


def check(names: list[str]) -> tuple[dict[str, int], list[str]]:
    """How many blocks of each kind these documents have, and the complaints."""
    repository, fates = Repository(), Fates()
    counts: dict[str, int] = {}
    complaints = []
    for name in names:
        for block in repository.document(name).blocks:
            fate = fates.of(name, block)
            if fate.complaint:
                complaints.append("%s:%d: %s" % (name, block.line, fate.complaint))
            else:
                counts[fate.kind] = counts.get(fate.kind, 0) + 1
    return counts, complaints
