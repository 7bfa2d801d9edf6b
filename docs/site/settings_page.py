"""The page on the keys of the configuration, made from its JSON Schema."""

from __future__ import annotations

from typing import Any

from docs.site.markdown import cell, code
from syncscope.policy.settings import schema

HEAD = """\
# Keys of the configuration

This page is made from the configuration's JSON Schema (`syncscope/policy/syncscope.schema.json`).
[Configuration](docs/configuration.md) has an example and explains it.
"""
PLACES = {
    "Settings": "tool.syncscope",
    "Expect": "expect",
    "Override": "overrides",
    "Budgets": "budgets",
    "Scope": "budgets.scopes",
}
"""Where a table of the schema stands in the file."""


def render() -> str:
    """The page. Links lead from the root of the repository."""
    parts = [HEAD]
    for name, table in schema()["$defs"].items():
        rows = (_row(key, kind, key in table["required"]) for key, kind in table["properties"].items())
        parts.append(f"## {PLACES[name]}\n\n{table['description']}\n")
        parts.append("| key | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(key: str, kind: dict[str, Any], required: bool) -> str:
    need = ", required" if required else ""
    return f"| {code(key)} | {cell(_kind(kind))}{need} | {cell(kind.get('description', ''))} |"


def _kind(kind: dict[str, Any]) -> str:
    """A type of the schema in words."""
    if "$ref" in kind:
        return f"table {PLACES[kind['$ref'].rsplit('/', 1)[1]]}"
    if "anyOf" in kind:
        return " or ".join(_kind(choice) for choice in kind["anyOf"])
    if kind.get("type") == "array":
        return f"list of {_kind(kind['items'])}"
    return str(kind.get("type", "value"))
