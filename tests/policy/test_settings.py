"""The configuration's JSON Schema: shipped, true to what is read, and true to what the documentation shows."""

import json
import re
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from syncscope.policy.settings import SCHEMA_FILE, Settings, schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


def shipped() -> Any:
    return json.loads(resources.files("syncscope.policy").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"))


def shown_tables() -> list[Any]:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    return [tomllib.loads(block)["tool"]["syncscope"] for block in blocks]


def test_the_shipped_schema_is_that_of_the_settings() -> None:
    """Written by: Path("syncscope/policy", SCHEMA_FILE).write_text(json.dumps(schema(), indent=2) + "\\n")."""
    assert shipped() == schema()


def test_it_is_a_valid_schema_and_describes_every_key() -> None:
    found = shipped()
    jsonschema.Draft202012Validator.check_schema(found)
    for name, table in found["$defs"].items():
        undescribed = {key for key, value in table["properties"].items() if not value.get("description")}
        assert not undescribed, name


def test_the_page_on_configuration_shows_what_the_schema_allows() -> None:
    tables = shown_tables()
    assert {"gate", "own", "expect", "budgets", "overrides"} <= {key for table in tables for key in table}
    for table in tables:
        jsonschema.validate(table, shipped(), cls=jsonschema.Draft202012Validator)
        msgspec.convert(table, Settings)


@pytest.mark.parametrize(
    "table",
    [
        {"gates": []},
        {"gate": "SYN101"},
        {"gate": None},
        {"expect": [{"rule": "SYN102"}]},
        {"expect": [{"rule": "SYN102", "reason": "  "}]},
        {"expect": [{"rule": "SYN102", "reason": "x", "max_per_step": 0}]},
        {"expect": [{"rule": "SYN102", "reason": "x", "file": None}]},
        {"overrides": [{"ignore": ["SYN105"]}]},
        {"budgets": {"max_stall_share": 1.5}},
        {"budgets": {"max_exposed_copy_ms": -1}},
        {"budgets": {"max_waits": 1}},
    ],
)
def test_what_the_settings_refuse_the_schema_refuses_too(table: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(table, shipped(), cls=jsonschema.Draft202012Validator)
    if "null" not in json.dumps(table):  # TOML cannot write it
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(table, Settings)
