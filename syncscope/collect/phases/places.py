"""Where a phase is in the user's code, and what it is called."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from syncscope.collect.paths import Paths
from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest
from syncscope.collect.phases.phase import Phase
from syncscope.schema.counting import RecordedPhase


def show_place(phase: Phase, nest: Nest, loop: Loop | None) -> None:
    """Note the line of ``loop``, or the user's line from which a library runs it."""
    place = nest.user[nest.loops.index(loop)] if loop is not None else nest.here
    if place is None and loop is not None:
        place = loop.code, loop.line
    if place is not None:
        phase.user_code, phase.user_line = place
    if loop is not None and phase.user_code is loop.code:
        phase.user_line = loop.line


def name_phases(phases: Sequence[Phase]) -> None:
    """Name each by its kind, else by its function too, else with a number."""
    live = [phase for phase in phases if phase.folded_into is None]
    kinds = Counter(phase.kind for phase in live)
    names: Counter[str] = Counter()
    for phase in live:
        name: str = phase.kind
        if kinds[phase.kind] > 1 and (function := function_of(phase)) is not None:
            name = f"{phase.kind} in {function}"
        names[name] += 1
        phase.name = name if names[name] == 1 else f"{name} {names[name]}"


def function_of(phase: Phase) -> str | None:
    """The function that runs the phase's loop; of a script's own lines, the script."""
    code = phase.user_code
    if code is None:
        return None
    return os.path.basename(code.co_filename) if code.co_name.startswith("<") else code.co_name


def record(phases: Sequence[Phase], paths: Paths) -> tuple[RecordedPhase, ...]:
    """What the recording says of each phase."""
    return tuple(
        RecordedPhase(
            name=phase.name,
            kind=phase.kind,
            file=paths.normalise(phase.user_code.co_filename) if phase.user_code is not None else None,
            line=phase.user_line,
            function=getattr(phase.user_code, "co_qualname", phase.user_code.co_name) if phase.user_code else None,
            source=phase.source,
            steps=phase.steps,
            times=phase.times,
            time_ns=phase.time_ns,
            median_ns=phase.lengths.median(),
            p95_ns=phase.lengths.p95(),
            in_every_step_of=phase.in_every_step_of.number if phase.in_every_step_of is not None else None,
        )
        for phase in phases
    )
