"""A preprocessor of mdBook, which changes two things in chapters.

A link that points out of docs/ becomes the path of the file in the repository: the book has only the pages of docs/.
Rust gets no button that would send it to a site on the internet."""

import json
import os
import re
import sys

LINK = re.compile(r"\[([^\]]*)\]\((\.\.?/[^()\s]*)\)")
FENCE = re.compile(r"^\s*```")
RUST = re.compile(r"^(\s*```rust\S*)")


def chapter_text(text: str, path: str) -> str:
    """The text of a chapter; `path` is its own, below docs/."""
    lines, in_block = [], False
    for line in text.split("\n"):
        if FENCE.match(line):
            in_block = not in_block
            line = RUST.sub(r"\1,noplayground", line)
        lines.append(line if in_block else LINK.sub(lambda match: link(match, path), line))
    return "\n".join(lines)


def link(match: re.Match[str], path: str) -> str:
    aim = os.path.normpath(os.path.join("docs", os.path.dirname(path), match[2].partition("#")[0]))
    if aim.startswith("docs" + os.sep):
        return match[0]
    text = match[1].strip("`")
    return match[1] if text.rstrip("/") == aim else "%s (`%s`)" % (match[1], aim)


def change(items: list) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter["path"]:
                chapter["content"] = chapter_text(chapter["content"], chapter["path"])
            change(chapter["sub_items"])


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    change(book["sections"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
