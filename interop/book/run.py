"""The book of docs/: mdBook builds it without a warning, every link in the repository's Markdown files and in the book
is alive, and each block of code is run, compiled, or marked as not run.

python3 interop/run.py book.run [--server CMD] [--rust FILE]"""

import os
import subprocess
import sys

from book import blocks, built, figures, links, selftest
from harness.outcome import SKIPPED, Skip, conclude, expect
from harness.peers import CHECKOUT, need, need_program
from harness.server import arguments
from recipes.programs import rust

SUMMARY = "docs/SUMMARY.md"


def check():
    args = arguments(__doc__, rust={"metavar": "FILE", "help": "the example get_started, if it is built"}).parse_args()
    need("mdbook")
    selftest.check()
    names = links.markdown_files()
    pages = [name for name in names if name.startswith("docs/")]
    inner, outer, complaints = links.check(names)
    print("links of %d files: %d into the repository, %d out of it" % (len(names), inner, outer), flush=True)
    counts, of_blocks = blocks.check([*pages, "README.md"])
    for kind in sorted(counts):
        print("blocks: %3d %s" % (counts[kind], kind), flush=True)
    made = built.build()
    in_book, dead = built.complaints(made)
    print("the book: %d pages, %d links between them" % (len(made), in_book), flush=True)
    complaints += of_blocks + dead + without_chapter(pages) + figures.check()
    for text in complaints:
        print(text, flush=True)
    expect(not complaints, "%d complaints: %s" % (len(complaints), " | ".join(complaints[:5])))
    run_programs(args)
    handled = sum(count for kind, count in counts.items() if "run by" in kind or "compiled by" in kind)
    return "%d links, %d pages, %d blocks of code run or compiled" % (inner + in_book, len(made), handled)


def without_chapter(pages):
    """Each page of docs/ is a chapter."""
    summary = links.Repository().document(SUMMARY)
    chapters = {os.path.normpath(os.path.join("docs", link.target)) for link in summary.links()}
    left = [name for name in pages if name not in chapters and name != SUMMARY]
    return ["%s is no chapter: name it in %s" % (name, SUMMARY) for name in left]


def run_programs(args):
    """Runs the programs and commands of the pages where their addresses are free."""
    words = [need_program("unshare"), "--net", "--mount", "--map-root-user"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("links and blocks are right, but this machine has no namespaces for the programs of the pages")
    (program,) = rust("get_started", args.rust)
    for module, more in (("programs", ["--rust", os.path.abspath(program)]), ("commands", [])):
        part = [*words, sys.executable, "-m", "book." + module, "--server", args.server, *more]
        done = subprocess.run(
            part, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        print(done.stdout.rstrip(), flush=True)
        last = done.stdout.strip().splitlines()[-1:] or ["no output"]
        if done.returncode == SKIPPED:
            raise Skip(last[0].removeprefix("skipped: "))
        expect(done.returncode == 0, "book.%s: %s" % (module, last[0]))


if __name__ == "__main__":
    conclude(check)
