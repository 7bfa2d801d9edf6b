"""The JSON report of ``syncscope hta``."""

from __future__ import annotations

import msgspec

from syncscope.schema.hta import HTA
from syncscope.schema.report import SCHEMA_VERSION, Tool


class HTATrace(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    rank: int | None
    hta: HTA


class HTAReport(msgspec.Struct, frozen=True, kw_only=True):
    """HTA on several traces, each on its own."""

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    traces: tuple[HTATrace, ...]

    def to_json(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()
