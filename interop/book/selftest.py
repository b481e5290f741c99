"""The checks of the book find what is planted: dead links, dead anchors, blocks that nothing runs."""

from book import blocks, chapters
from book.links import Repository
from book.markdown import Block, Document, anchor
from harness.outcome import expect_equal

PAGE = "docs/trust.md"
TEXT = """# The first `code` heading, and more
See [a](one.md), ![b](two.svg) and `[c](three.md)`, [d
d](four.md#five) <https://six.example/>.

```sh,no_run
[e](seven.md)
```

## Twice
## Twice

[f]: eight.md
"""
DEAD = {
    "no-such-page.md": True,
    "glossary.md": False,
    "glossary.md#no-such-heading": True,
    "glossary.md#elections": False,
    "#no-such-heading": True,
    "../README.md": False,
    "../../outside.md": True,
    "http://example.com/": True,
    "https://example.com/": False,
    "https:///nowhere": True,
    "http://127.0.0.1:8080/console/": False,
}
NOTHING = {
    ("sh", ()): True,
    ("sh", ("no_run",)): False,
    ("rust", ("no_run",)): True,
    ("rust", ("ignore",)): False,
    ("", ()): True,
    ("text", ()): False,
}


def check() -> None:
    document = Document(TEXT)
    targets = [link.target for link in document.links()]
    expect_equal(targets, ["one.md", "two.svg", "four.md#five", "https://six.example/", "eight.md"], "the links")
    expect_equal([(b.language, b.marks) for b in document.blocks], [("sh", ("no_run",))], "the blocks")
    wanted = {"the-first-code-heading-and-more", "twice", "twice-1"}
    expect_equal(document.anchors(), wanted, "the anchors of headings")
    expect_equal(anchor("A [link](x.md): _c_ & d"), "a-link-_c_--d", "the anchor of a heading with a link")
    repository = Repository()
    for target, dead in DEAD.items():
        expect_equal(repository.complaint(PAGE, target) is not None, dead, "whether %s is dead" % target)
    fates = blocks.Fates()
    for (language, marks), refused in NOTHING.items():
        block = Block(1, language, marks, "ostler shell\n")
        expect_equal(bool(fates.of(PAGE, block).complaint), refused, "whether a block of %r is refused" % language)
    said = chapters.chapter_text("[a](../SECURITY.md) [b](trust.md)\n```rust\n[c](../x)\n```", "storms.md")
    expect_equal(said, "a (`SECURITY.md`) [b](trust.md)\n```rust,noplayground\n[c](../x)\n```", "a chapter")
