"""The links of the Markdown files of the repository, as somebody finds them who reads the files themselves."""

import os
import subprocess
from urllib.parse import unquote, urlsplit

from book.markdown import Document
from harness.peers import CHECKOUT

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Where programs put other people's files, or their own.
NOT_OURS = ("target", "node_modules", ".git", "__pycache__")


def markdown_files() -> list[str]:
    """The Markdown files of the repository, by their paths in it; without git, those of the folder."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        return sorted(name for name in listed.stdout.splitlines() if os.path.exists(os.path.join(CHECKOUT, name)))
    found = []
    for folder, folders, files in os.walk(CHECKOUT):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        found += [os.path.relpath(os.path.join(folder, name), CHECKOUT) for name in files if name.endswith(".md")]
    return sorted(found)


class Repository:
    """The documents of the repository. Each is read once."""

    def __init__(self) -> None:
        self._read: dict[str, Document] = {}

    def document(self, name: str) -> Document:
        if name not in self._read:
            with open(os.path.join(CHECKOUT, name), encoding="utf-8") as f:
                self._read[name] = Document(f.read())
        return self._read[name]

    def complaint(self, name: str, target: str) -> str | None:
        """What is wrong with a link of a document; None if nothing is."""
        if "://" in target or target.startswith(("mailto:", "//")):
            return complaint_about_address(target)
        path, _, fragment = target.partition("#")
        aim = os.path.normpath(os.path.join(os.path.dirname(name), unquote(path))) if path else name
        if aim.startswith("..") or os.path.isabs(aim):
            return "points out of the repository"
        if not os.path.exists(os.path.join(CHECKOUT, aim)):
            return "there is no %s" % aim
        if not fragment:
            return None
        if not aim.endswith(".md"):
            return "%s is no Markdown, so it has no anchors" % aim
        if unquote(fragment) not in self.document(aim).anchors():
            return "%s has no heading with the anchor #%s" % (aim, fragment)
        return None


def complaint_about_address(target: str) -> str | None:
    """External links are only looked at: there may be no internet."""
    if target.startswith("mailto:"):
        return None if "@" in target else "is no address of mail"
    try:
        parts = urlsplit(target)
        host, _ = parts.hostname, parts.port
    except ValueError as why:
        return "is not well formed: %s" % why
    if not host:
        return "has no host"
    if host in LOOPBACK:
        return None if parts.scheme in ("http", "https") else "is neither http nor https"
    if parts.scheme != "https":
        return "is not https"
    if "." not in host or any(letter in target for letter in '"\\^`{|}'):
        return "is not well formed"
    return None


def check(names: list[str]) -> tuple[int, int, list[str]]:
    """How many links of these documents point into the repository, how many out of it, and the complaints."""
    repository = Repository()
    inner, outer, complaints = 0, 0, []
    for name in names:
        for link in repository.document(name).links():
            if "://" in link.target or link.target.startswith("mailto:"):
                outer += 1
            else:
                inner += 1
            if why := repository.complaint(name, link.target):
                complaints.append("%s:%d: the link %s is dead: %s" % (name, link.line, link.target, why))
    return inner, outer, complaints
