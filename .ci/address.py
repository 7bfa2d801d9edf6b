#!/usr/bin/env python3
"""Write where the repository is: ``.ci/address.py OWNER/NAME``. With ``--check``, look whether all files say the same.

``syncscope/schema/address.py`` is the place that says it; the other files below repeat it, since nothing can fill them
in where they are read: PyPI's metadata, a workflow to copy, documentation.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = "syncscope/schema/address.py"
NAMED = ("pyproject.toml", "docs/gate.yml", "docs/ci.md")
"""The files that repeat it."""
SEARCHED = ("*.py", "*.md", "*.toml", "*.yml", "*.yaml", "*.html", "*.js", "*.css", "*.cfg", "*.txt", "*.json")
SKIPPED = {".git", ".venv", "build", "dist", "node_modules", "site", "vendor", "recordings", "traces"}
PLACEHOLDER = "your-" + "org/"
"""So that this file does not name it."""


def known() -> str:
    """The address that ``PLACE`` has."""
    match = re.search(r'^REPOSITORY = "([^"]+)"$', (ROOT / PLACE).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SystemExit(f"{PLACE}: says no REPOSITORY")
    return match[1]


def check() -> list[str]:
    """What does not fit: a file that lacks the address, or another that names the placeholder."""
    address = known()
    wrong = [f"{name}: does not name {address}" for name in NAMED if address not in _text(ROOT / name)]
    for path in _files():
        name = path.relative_to(ROOT).as_posix()
        if name not in (PLACE, *NAMED) and any(part in _text(path) for part in (address, PLACEHOLDER)):
            wrong.append(f"{name}: names the address, and is not listed in .ci/address.py")
    return wrong


def write(address: str) -> None:
    """Put ``address`` in the place of the one that is known."""
    before = known()
    for name in (PLACE, *NAMED):
        path = ROOT / name
        text = re.sub(rf"(?<![\w.-]){re.escape(before)}(?![\w-])", address, _text(path))
        path.write_text(text, encoding="utf-8", newline="\n")


def _files() -> list[Path]:
    found = (path for pattern in SEARCHED for path in ROOT.rglob(pattern))
    return [path for path in found if not SKIPPED & set(path.relative_to(ROOT).parts[:-1]) and path.is_file()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?", metavar="OWNER/NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check == (options.address is not None):
        parser.error("takes OWNER/NAME or --check")
    if options.address is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+", options.address):
            parser.error(f"{options.address}: is no OWNER/NAME")
        write(options.address)
    wrong = check()
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
