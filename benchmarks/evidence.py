"""Put a table that was measured into docs/evidence.md, between the marks of its name."""

from __future__ import annotations

from pathlib import Path

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence.md"


def put(what: str, made: str) -> None:
    """Write the page with what was made between the marks of ``what``. Raises ``ValueError`` where it has none."""
    EVIDENCE.write_text(written(EVIDENCE.read_text(encoding="utf-8"), what, made), encoding="utf-8")


def written(page: str, what: str, made: str) -> str:
    """A page with what was made between the marks of ``what``. Raises ``ValueError`` where it has none."""
    marks = f"<!-- begin of the {what} -->", f"<!-- end of the {what} -->"
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page has no marks for the {what}")
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"
