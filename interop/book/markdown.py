"""What the checks of the documents need of Markdown: headings with their anchors, links, and fenced blocks."""

import re
from typing import NamedTuple

# `[text](target)` and `![text](target)`. A target has no spaces and no parentheses here.
INLINE = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]^]+\]:\s+<?([^\s>]+)>?", re.M)
AUTOMATIC = re.compile(r"<(https?://[^>\s]+)>")
FENCE = re.compile(r"^\s*(```+|~~~+)(.*)$")


class Link(NamedTuple):
    line: int
    target: str


class Block(NamedTuple):
    """A fenced block. `language` is the first word of its tag, `marks` are the others."""

    line: int
    language: str
    marks: tuple[str, ...]
    text: str


class Document:
    """A document: `prose` has its lines with those of fenced blocks emptied."""

    def __init__(self, text: str) -> None:
        self.blocks: list[Block] = []
        self.prose: list[str] = []
        fence, began, tag = "", 0, ""
        inside: list[str] = []
        for number, line in enumerate(text.splitlines(), 1):
            match = FENCE.match(line)
            if not fence and match:
                fence, began, tag, inside = match[1], number, match[2], []
            elif fence and match and match[1].startswith(fence) and not match[2].strip():
                words = re.split(r"[\s,]+", tag.strip())
                self.blocks.append(Block(began, words[0], tuple(words[1:]), "\n".join(inside) + "\n"))
                fence = ""
            elif fence:
                inside.append(line)
            self.prose.append("" if fence or match else line)

    def links(self) -> list[Link]:
        """All targets outside of code, in the order of lines."""
        found = []
        for number, line in enumerate(without_code(self.prose), 1):
            for pattern in (INLINE, REFERENCE, AUTOMATIC):
                found += [Link(number, match[1]) for match in pattern.finditer(line)]
        return found

    def anchors(self) -> set[str]:
        """The anchors that a page of the repository has: those of headings, as GitHub makes them, and ids in HTML."""
        seen: dict[str, int] = {}
        found = set(re.findall(r"\bid=\"([^\"]+)\"", "\n".join(self.prose)))
        for line in self.prose:
            if match := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
                slug = anchor(match[1])
                count = seen.get(slug, 0)
                seen[slug] = count + 1
                found.add("%s-%d" % (slug, count) if count else slug)
        return found


def anchor(heading: str) -> str:
    """The anchor of a heading: its text in lower case, without punctuation, with `-` for each space."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def without_code(lines: list[str]) -> list[str]:
    """The lines with code in backticks emptied. Such code may go on over the end of a line, within a paragraph."""
    text = re.sub(r"(?<!`)(`+)(?!`)((?:(?!\n\n).)+?)(?<!`)\1(?!`)", blanks, "\n".join(lines), flags=re.S)
    return text.split("\n")


def blanks(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
