"""The JSON Schema in the package is that of the structures, and what we write keeps to it.

``python -m tests.report.test_schema`` writes it again.
"""

from __future__ import annotations

import inspect
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from fixtures.labels import report_of
from syncscope import report
from syncscope.schema.report import SCHEMA_VERSION, Report
from tests.report import sample
from tests.report.hostile import HOSTILE, spoiled

FILE = files(report).joinpath("report.schema.json")


def made() -> dict[str, Any]:
    """Keys may be added to a report of the same version, so none is forbidden."""
    (root,), parts = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    parts["Report"]["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    parts["Report"]["required"].insert(0, "schema_version")
    del parts["Finding"]["properties"]["number"]  # inside the program only
    title = f"JSON report of syncscope, version {SCHEMA_VERSION}"
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **root, "$defs": parts}
    return dict(json.loads(json.dumps(whole)))  # tuples become lists


def in_one_form(schema: Any) -> Any:
    """Alternatives in the order of their text, which differs between versions of msgspec, and docstrings without
    their indentation, as Python 3.13 keeps them."""
    if isinstance(schema, list):
        return [in_one_form(part) for part in schema]
    if isinstance(schema, str):
        return inspect.cleandoc(schema)
    if not isinstance(schema, dict):
        return schema
    parts = {key: in_one_form(part) for key, part in schema.items()}
    return {**parts, "anyOf": sorted(parts["anyOf"], key=json.dumps)} if "anyOf" in parts else parts


def validate(text: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(FILE.read_text(encoding="utf-8")))
    validator.validate(json.loads(text))


def test_the_file_is_the_schema_of_the_structures() -> None:
    assert in_one_form(json.loads(FILE.read_text(encoding="utf-8"))) == in_one_form(made())


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(made())


@pytest.mark.parametrize("case", ["item_logging", "library_sync", "generate", "ddp_straggler"])
def test_reports_on_real_traces_keep_to_it(case: str) -> None:
    validate(report_of(case, "windows").to_json())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_reports_keep_to_it(text: str) -> None:
    validate(spoiled(sample.report(), text).to_json())


@pytest.mark.parametrize(
    "change", [{"schema_version": 2}, {"findings": [{}]}, {"traces": None}, {"tool": "syncscope"}], ids=str
)
def test_other_documents_do_not(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(json.dumps(json.loads(sample.report().to_json()) | change))


if __name__ == "__main__":
    Path(str(FILE)).write_text(json.dumps(made(), indent=2) + "\n", encoding="utf-8")
