#!/usr/bin/env python3
"""Whether a tag may be published: ``.ci/tag.py v1.2.3``.

The tag is the version of the package; the changelog's newest entry is of it, has a date, and leaves nothing under
Unreleased; and the repository's address is no placeholder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACEHOLDER = "your-" + "org/"


def faults(tag: str, root: Path = ROOT) -> list[str]:
    """What stands against publishing ``tag``, one sentence each."""
    version = _search(root / "syncscope" / "__init__.py", r'^__version__ = "([^"]+)"$')
    address = _search(root / "syncscope" / "schema" / "address.py", r'^REPOSITORY = "([^"]+)"$')
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    heads = [entry.partition("\n")[0].strip() for entry in entries]
    released = [head for head in heads if not head.startswith("[Unreleased]")]
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and the package is of version {version}")
    if not released or not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", released[0]):
        found.append(f"the changelog's newest entry is not [{version}] with its date, such as 2026-01-31")
    unreleased = [entry.partition("\n")[2].strip() for entry in entries if entry.startswith("[Unreleased]")]
    if any(unreleased):
        found.append("the changelog has entries under Unreleased")
    if address.startswith(PLACEHOLDER):
        found.append(f"the repository's address is still {address}; .ci/address.py OWNER/NAME writes another")
    return found


def _search(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SystemExit(f"{path}: nothing like {pattern}")
    return match[1]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = faults(sys.argv[1])
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
