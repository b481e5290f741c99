"""The blocks of a page in Markdown, for checks that run a document as it stands."""

import os
import textwrap
from typing import NamedTuple

from .peers import CHECKOUT


class Block(NamedTuple):
    """A fenced block. `fence` is the word behind the opening fence: `sh`, `properties`, or nothing."""

    section: str
    fence: str
    text: str


def blocks(text: str) -> list[Block]:
    """The blocks of a page, in their order. A section is what follows a heading of the second or third level."""
    found: list[Block] = []
    section, fence = "", ""
    lines: list[str] | None = None
    for line in text.splitlines():
        if line.strip().startswith("```"):
            if lines is None:
                lines, fence = [], line.strip()[3:]
            else:
                found.append(Block(section, fence, textwrap.dedent("\n".join(lines)) + "\n"))
                lines = None
        elif lines is not None:
            lines.append(line)
        elif line.startswith(("## ", "### ")):
            section = line.split(" ", 1)[1]
    return found


class Page:
    """The blocks of a document, each of which is taken once. Sections `elsewhere` are left to other checks."""

    def __init__(self, name: str, elsewhere: tuple[str, ...] = ()) -> None:
        with open(os.path.join(CHECKOUT, "docs", name)) as f:
            self.left = [block for block in blocks(f.read()) if block.section not in elsewhere]

    def take(self, section: str, fence: str = "sh") -> str:
        """The next block of a section."""
        for block in self.left:
            if (block.section, block.fence) == (section, fence):
                self.left.remove(block)
                return block.text
        raise AssertionError("the section `%s` of the page has no further block" % section)
