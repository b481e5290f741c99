"""Builds the book by mdBook, and follows each link of its pages."""

import html.parser
import os
import re
import shutil
import subprocess
from urllib.parse import unquote

from harness.outcome import Mismatch, expect
from harness.peers import CHECKOUT, need

BOOK = os.path.join(CHECKOUT, "target", "book")
MDBOOK = "node_modules/cargo-mdbook/bin/mdbook-linux"
# All chapters one behind the other, for printers: its anchors are those of the chapters.
PRINTED = "print.html"


class PageLinks(html.parser.HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []  # from the internet
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is not None and name in ("id", "name"):
                self.ids.add(value)
            if value is not None and name in ("href", "src"):
                self.targets.append(value)
                if tag != "a" and re.match(r"(https?:)?//", value):
                    self.loaded.append(value)


def build() -> list[str]:
    """Makes the book anew. Returns the paths of its pages, below its folder."""
    program = os.path.join(need("mdbook"), MDBOOK)
    shutil.rmtree(BOOK, ignore_errors=True)
    words = [program, "build", CHECKOUT]
    done = subprocess.run(words, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, flush=True)
    expect(done.returncode == 0, "mdBook ended with %d: %s" % (done.returncode, done.stdout[-800:]))
    noise = [line for line in done.stdout.splitlines() if re.search(r"\b(warn|warning|error)\b", line, re.I)]
    expect(not noise, "mdBook warns: %s" % " | ".join(noise))
    pages = []
    for folder, _, files in os.walk(BOOK):
        pages += [os.path.relpath(os.path.join(folder, name), BOOK) for name in files if name.endswith(".html")]
    if not pages:
        raise Mismatch("mdBook has made no page in %s" % BOOK)
    return sorted(pages)


def complaints(pages: list[str]) -> tuple[int, list[str]]:
    """How many links the pages have to each other, and those that are dead."""
    read = {name: PageLinks(os.path.join(BOOK, name)) for name in pages}
    count, dead = 0, []
    for name, page in read.items():
        dead += ["target/book/%s loads %s from the internet" % (name, address) for address in page.loaded]
        for target in page.targets:
            if re.match(r"[a-z]+:|//", target) or target in ("", "#"):
                continue
            path, _, fragment = target.partition("#")
            path = path.partition("?")[0]
            aim = os.path.normpath(os.path.join(os.path.dirname(name), unquote(path))) if path else name
            count += 1
            if not os.path.exists(os.path.join(BOOK, aim)):
                dead.append("target/book/%s: the link %s is dead: there is no %s in the book" % (name, target, aim))
            elif fragment and name != PRINTED and aim in read and unquote(fragment) not in read[aim].ids:
                dead.append("target/book/%s: the link %s is dead: the page has no such anchor" % (name, target))
    return count, dead
