"""Where a phase is in the user's code, and what it is called."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from types import CodeType

from syncscope.collect.paths import Paths
from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest
from syncscope.collect.phases.phase import Phase
from syncscope.patterns import compile_later
from syncscope.schema.counting import PhaseKind, RecordedPhase

_NAME = compile_later(r"(?P<kind>.*?)(?P<place> (?:in|by) .*)?", re.DOTALL)
"""The name of a phase: its kind, and what tells it from others of the kind."""


def show_place(phase: Phase, nest: Nest, loop: Loop | None) -> None:
    """Note the line of ``loop``, or the user's line from which a library runs it."""
    called = ""
    place = nest.here
    if loop is not None:
        user = nest.user[nest.loops.index(loop)]
        if user is None:
            place = loop.code, loop.line
        else:
            place, called = user[:2], user[2]
    if place is not None:
        phase.user_code, phase.user_line = place
    if loop is not None and phase.user_code is loop.code:
        phase.user_line, called = loop.line, ""
    phase.called = called


def name_phases(phases: Sequence[Phase]) -> None:
    """Name each by its kind, else by its function too, else by what that calls, else by the library's function that
    runs its loop, else with a number."""
    live = [phase for phase in phases if phase.folded_into is None]
    optimised = any(phase.optimised for phase in live)
    kinds = {phase: shown_kind(phase, optimised) for phase in live}
    names: dict[Phase, str] = {**kinds}
    for name_more in (_with_function, _with_call):
        often = Counter(names.values())
        names = {phase: name_more(phase, name) if often[name] > 1 else name for phase, name in names.items()}
    often = Counter(names.values())
    names = {phase: _of_loop(phase, kinds[phase]) or name if often[name] > 1 else name for phase, name in names.items()}
    taken: set[str] = set()
    for phase in sorted(phases, key=lambda phase: phase.folded_into is not None):  # parts of others come last
        phase.name = _free(names.get(phase, phase.kind), taken)
        taken.add(phase.name)


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number behind the kind where another has it: ``evaluate 2 in main``."""
    number, free, parts = 1, name, _NAME.fullmatch(name)
    kind, place = (parts["kind"], parts["place"] or "") if parts else (name, "")
    while free in taken:
        number += 1
        free = f"{kind} {number}{place}"
    return free


def _with_function(phase: Phase, name: str) -> str:
    function = function_of(phase)
    if function == name and phase.user_code is not None:  # "evaluate in evaluate" tells nobody which of two it is
        function = os.path.basename(phase.user_code.co_filename)
    return name if function is None else f"{name} in {function}"


def _with_call(phase: Phase, name: str) -> str:
    return f"{name} by {phase.called}" if phase.called else name


def _of_loop(phase: Phase, kind: str) -> str | None:
    if phase.loop is None or not phase.called:
        return None
    name, file = _name_of(phase.loop.code), os.path.basename(phase.loop.code.co_filename)
    return f"{kind} in {file}" if name is None else f"{kind} in {name} of {file}"


def shown_kind(phase: Phase, optimised: bool) -> PhaseKind:
    """The kind of a phase as the recording has it. Calls of a module in training are no training where the program is
    ``optimised`` elsewhere: it tries its model out, or evaluates without ``eval()``."""
    return "other" if phase.kind == "train" and optimised and not phase.optimised else phase.kind


def function_of(phase: Phase) -> str | None:
    """The function that runs the phase's loop; of a script's own lines, the script."""
    code = phase.user_code
    if code is None:
        return None
    return _name_of(code) or os.path.basename(code.co_filename)


def _name_of(code: CodeType) -> str | None:
    """The function that is or has ``code``, as an expression in it; ``None`` where there is none, as far as Python
    tells."""
    names = getattr(code, "co_qualname", code.co_name).split(".")
    return next((name for name in reversed(names) if not name.startswith("<")), None)


def record(phases: Sequence[Phase], paths: Paths) -> tuple[RecordedPhase, ...]:
    """What the recording says of each phase."""
    optimised = any(phase.optimised for phase in phases)
    return tuple(
        RecordedPhase(
            name=phase.name,
            kind=shown_kind(phase, optimised),
            file=paths.normalise(phase.user_code.co_filename) if phase.user_code is not None else None,
            line=phase.user_line,
            function=getattr(phase.user_code, "co_qualname", phase.user_code.co_name) if phase.user_code else None,
            source=phase.source,
            steps=phase.steps,
            times=phase.times,
            time_ns=phase.time_ns,
            median_ns=phase.lengths.median(),
            p95_ns=phase.lengths.p95(),
            mean_ns=phase.lengths.mean(),
            in_every_step_of=phase.in_every_step_of.number if phase.in_every_step_of is not None else None,
        )
        for phase in phases
    )
