"""The configuration as written: what the file's JSON Schema is made from."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

SCHEMA_FILE = "syncscope.schema.json"
"""Beside this module: ``schema()``, for editors and other tools."""

Rules = Annotated[tuple[str, ...], Meta(description="Codes of rules or beginnings of codes: SYN102, SYN.")]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; an unknown key is an error."""


class Expect(_Table, frozen=True, kw_only=True):
    """Findings that are fine, and why. Without file and function it covers every finding of the rule."""

    rule: Annotated[str, Meta(description="The code of a rule or the beginning of one: SYN102, SYN.")]
    reason: Annotated[str, Meta(pattern=r"\S", description="Why they are fine.")]
    file: Annotated[str | None, Meta(description="Glob on the whole path as the report shows it.")] = None
    function: Annotated[str | None, Meta(description="Glob on the qualified function, or on the annotation.")] = None
    max_per_step: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="A finding that occurs more often a step is unexpected.")
    ] = None


class Override(_Table, frozen=True, kw_only=True):
    """Another gate for some files. Where several match, the last gate counts, and the lists of ignored rules add up."""

    path: Annotated[str, Meta(description="Glob on the whole path as the report shows it.")]
    gate: Annotated[Rules | None, Meta(description="Rules that are gated there, instead of the gate of all files.")] = (
        None
    )
    ignore: Annotated[Rules, Meta(description="Rules that are not gated there.")] = ()


Milliseconds = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class _TimedBudgets(_Table, frozen=True, kw_only=True):
    """Limits in time, checked over the recorded steps and their spread."""

    max_exposed_comm_ms: Annotated[
        Milliseconds | None, Meta(description="Milliseconds of collectives a step that no compute hides.")
    ] = None
    max_exposed_copy_ms: Annotated[
        Milliseconds | None, Meta(description="Milliseconds of copies a step that no compute hides.")
    ] = None
    max_idle_share: Annotated[Share | None, Meta(description="Share of the step in which the device is idle.")] = None
    max_stall_share: Annotated[Share | None, Meta(description="Share of the step in which the host is blocked.")] = None
    max_straggling_ms: Annotated[
        Milliseconds | None,
        Meta(description="Milliseconds a step that the other ranks wait in collectives for one that comes last."),
    ] = None


class Scope(_TimedBudgets, frozen=True, kw_only=True):
    """Limits a step in one phase, or for one process group."""

    phase: Annotated[str | None, Meta(description="Kind or name of the phase, whether or not check judges it.")] = None
    group: Annotated[
        str | None, Meta(description="Glob on the process group's name, for max_exposed_comm_ms alone.")
    ] = None


class Budgets(_TimedBudgets, frozen=True, kw_only=True):
    """Limits a step, in the phases that check judges; of what torch.compile does, limits of the run."""

    max_unexpected_syncs_per_step: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Unexpected waits a step that may pass, all together. Without it, each of them fails."),
    ] = None
    max_recompiles: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Unexpected recompiles of torch.compile over the run, after the first three steps of a phase."
        ),
    ] = None
    max_graph_breaks: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Lines that unexpectedly end a graph of torch.compile."),
    ] = None
    scopes: Annotated[
        tuple[Scope, ...], Meta(description="Limits of their own in one phase, or for one process group.")
    ] = ()


class Settings(_Table, frozen=True, kw_only=True):
    """The table tool.syncscope of pyproject.toml, or the whole of syncscope.toml."""

    gate: Annotated[
        Rules | None, Meta(description="What check fails on, instead of the rules that are gated by default.")
    ] = None
    own: Annotated[tuple[str, ...], Meta(description="Installed packages that count as the project's own code.")] = ()
    allow_partial: Annotated[
        bool, Meta(description="Let check pass although part of a trace, a whole trace or a rank was not seen.")
    ] = False
    phases: Annotated[
        Annotated[tuple[str, ...], Meta(min_length=1)] | None,
        Meta(description="Phases that check judges, by kind or name; all have to be recorded. By default training."),
    ] = None
    min_steps: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Steps of each phase that recordings have to show; with fewer, nothing counts as checked."),
    ] = None
    expect: Annotated[tuple[Expect, ...], Meta(description="Findings that are fine, and why.")] = ()
    overrides: Annotated[tuple[Override, ...], Meta(description="Other gates for some files.")] = ()
    budgets: Annotated[Budgets, Meta(description="Limits a step.")] = Budgets()


def schema() -> dict[str, Any]:
    """The JSON Schema of ``Settings``."""
    made: dict[str, Any] = _without_null(msgspec.json.schema(Settings))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "syncscope", **made}


def _without_null(part: Any) -> Any:
    """A part of a schema without ``null`` as a type or default, which TOML cannot write."""
    if isinstance(part, list):
        return [_without_null(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _without_null(value) for key, value in part.items() if key not in ("anyOf", "default")}
    for choice in part.get("anyOf", ()):
        if choice != {"type": "null"}:
            kept = {**_without_null(choice), **kept}
    return kept
