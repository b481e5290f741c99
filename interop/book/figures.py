"""The figures of docs/benchmarks.md are those of the documents that it names, row by row."""

import os

from harness.peers import CHECKOUT

PAGE = "docs/benchmarks.md"
SOURCES = ("README.md", "bench/README.md", "docs/storms.md")


def rows(name: str) -> list[tuple[int, str]]:
    with open(os.path.join(CHECKOUT, name), encoding="utf-8") as f:
        return [(number, line.rstrip()) for number, line in enumerate(f, 1) if line.startswith("|")]


def check() -> list[str]:
    known = {row for source in SOURCES for _, row in rows(source)}
    return [
        "%s:%d: this row is in none of %s: %s" % (PAGE, number, ", ".join(SOURCES), row)
        for number, row in rows(PAGE)
        if row not in known
    ]
