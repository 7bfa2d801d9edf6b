"""Tables for pandas, Arrow and SQL: every column is there and documented. ``python -m tests.trace.test_export`` writes
what docs/tables.md shows again."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

from syncscope.trace import model
from syncscope.trace.extras import MissingExtra
from syncscope.trace.model import TABLES
from tests.builders import TraceBuilder

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "tables.md"


def trace() -> model.Trace:
    built = TraceBuilder().step(0, 100).op("aten::item", 10, 60)
    return built.copy("DtoH", call=(12, 3), runs=(20, 5), memory="pinned", bytes=4).stream_sync(16, 50).trace()


def test_every_table_is_documented() -> None:
    rows = trace().rows
    assert list(rows) == list(TABLES)
    for name, table in TABLES.items():
        types = dict.fromkeys(rows[name].numbers, "int64") | dict.fromkeys(rows[name].texts, "category")
        assert types == table.types
        assert list(getattr(trace(), name).columns) == list(table.columns)


def test_frames_say_what_their_columns_hold() -> None:
    one = trace()
    frames = one.to_pandas()
    assert list(frames) == list(TABLES)
    for name, frame in frames.items():
        assert list(frame.columns) == list(frame.attrs["columns"])
        assert frame.equals(getattr(one, name))
    frames["device"]["bytes"] = 0
    assert one.device["bytes"].tolist() == [4]


def test_arrow_has_the_same_values_and_says_what_they_are() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    one = trace()
    for name, table in one.to_arrow().items():
        assert table.to_pydict() == {column: list(values) for column, values in getattr(one, name).items()}
        descriptions = {field.name: field.metadata[b"description"].decode() for field in table.schema}
        assert descriptions == {column: documented.meaning for column, documented in TABLES[name].columns.items()}


def test_without_pyarrow_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"^pyarrow is not installed: pip install 'syncscope\[arrow\]'$"):
        trace().to_arrow()


# ---------------------------------------------------------------------------------------------------- the page


def made(page: str) -> str:
    """The page with what its code prints and with the columns as they are."""
    head, _, _ = page.partition("## Columns")
    names: dict[str, object] = {}
    parts = re.split(r"(```(?:python|text)\n.*?```)", head, flags=re.DOTALL)
    printed = ""
    for number, part in enumerate(parts):
        if part.startswith("```python"):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.chdir(ROOT):
                exec(part.removeprefix("```python\n").removesuffix("```"), names)
            printed = out.getvalue()
        elif part.startswith("```text"):
            parts[number] = f"```text\n{printed.rstrip()}\n```"
    return "".join(parts) + columns()


def columns() -> str:
    lists = []
    for name, table in TABLES.items():
        listed = "\n".join(f"| `{name}` | {column.type} | {column.meaning} |" for name, column in table.columns.items())
        about = f"{table.about[0].upper()}{table.about[1:]}."
        lists.append(f"### `{name}`\n\n{about}\n\n| column | type | |\n|---|---|---|\n{listed}\n")
    intro = (
        "## Columns\n\nEvery table is sorted by `ts`, the longest first among equals, then by thread or stream and by "
        "what a row holds: the order\nof the file's events does not matter.\n\n"
    )
    return intro + "\n".join(lists)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs contextlib.chdir")
def test_the_page_shows_what_its_code_prints_and_every_column() -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    text = PAGE.read_text(encoding="utf-8")
    assert made(text) == text


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
