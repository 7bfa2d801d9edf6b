"""At which lines the time of phases goes, and how uneven their steps are. Names are as they stand in the report: not
escaped."""

from __future__ import annotations

from syncscope.report.first_steps import find_first_steps
from syncscope.report.numbers import milliseconds, seconds
from syncscope.report.run_phrases import describe_share
from syncscope.schema.expressions import begins_loader, loops_over_loader, makes_step, shorten
from syncscope.schema.findings import Site
from syncscope.schema.numbers import percent
from syncscope.schema.run import Phase, PhaseLine, Run

LEAST_PHASE, LEAST_OF_PHASE, MOST_LINES = 0.1, 0.25, 2
"""A phase without a window has its lines named where it has this share of the run, and they this share of it; so many
at most."""
FEWEST_LOOKS = 5
"""Looks at a phase from which on they tell where its time goes."""

MOST_SIGNS = 40
"""The most characters of an expression that are shown."""

MODULE = "<module>"
"""What Python calls the code of a file outside of all functions."""

ANEW = ", where a loader begins anew: keep one iterator, or its workers (persistent_workers=True)"

UNEVEN, UNEVEN_MEAN = 3.0, 1.3
"""Steps are uneven where their 95th percentile is so many times their median, and their mean so many times. Those
of the run are unlike the recorded one where they take so many times as long, or it does."""


def describe_lines(run: Run) -> list[str]:
    """Where the time of phases goes that no window recorded, or whose first steps take long, or whose steps are too
    uneven for one to show it: ``epoch end: 83 % of the time in fit (train.py:79)``. Of those with a tenth of the run,
    and only lines that have a quarter of their phase."""
    said = []
    for number, phase in sorted(enumerate(run.phases), key=lambda pair: -pair[1].share):
        if phase.share < LEAST_PHASE:
            continue
        odd = [fact for fact in (_describe_first_steps(run, number), _describe_uneven(phase)) if fact]
        lines = [] if phase.recorded and not odd else name_lines(phase)
        named = [f"{percent(one.share, 1.0)} {_describe_line(one, phase)}" for one in lines]
        facts = [*odd, *([", ".join(named)] if named else [])]
        if facts:
            said.append(f"{phase.name}, {describe_share(phase.share)} of the run: {'; '.join(facts)}")
    return said


def name_lines(phase: Phase) -> list[PhaseLine]:
    """The lines with most of a phase's time, as far as enough looks tell."""
    known = [one for one in phase.lines if one.share >= LEAST_OF_PHASE][:MOST_LINES]
    return known if phase.looks >= FEWEST_LOOKS else []


def _describe_line(line: PhaseLine, phase: Phase) -> str:
    """``at train.py:79 (model.fit(x))``, and what to do where that line begins a loader anew."""
    place, site = f"{line.site.file}:{line.site.line}", line.site
    if not site.expression:
        return f"at {place}" if site.function == MODULE else f"in {site.function} ({place})"
    anew = ANEW if begins_loader_anew(site, phase) else ""
    return f"at {place} ({shorten(site.expression, MOST_SIGNS)}){anew}"


def begins_loader_anew(site: Site, phase: Phase) -> bool:
    """Whether a loader begins anew at a line at which a phase was found."""
    between = phase.kind == "epoch end" and loops_over_loader(site.expression)
    return between or begins_loader(site.expression)


def tell_steps_of_run(phase: Phase | None, step_ms: float, told: Site | None = None) -> str | None:
    """What a step takes over the run, where the one of ``step_ms`` that is told is far shorter or longer, and at which
    line most of it, if shorter: ``over the run a step takes 45.1 ms, 37 % of it at train.py:120``; else ``None``. Where
    steps are even, half of them must differ as much, too: a mean of few may be that of the first ones. The line that is
    ``told`` as that of the first change needs no name."""
    if phase is None or phase.step_ms is None:
        return None
    typical, median = phase.step_ms.typical, phase.step_ms.median
    if UNEVEN_MEAN * max(typical, median) <= step_ms:
        return f"over the run a step takes {milliseconds(typical)}"
    if (typical if _describe_uneven(phase) else min(typical, median)) < UNEVEN_MEAN * step_ms:
        return None
    longer = f"over the run a step takes {milliseconds(phase.step_ms.typical)}"
    line = next(iter(name_lines(phase)), None)
    if line is None or makes_step(line.site.expression):  # which takes most of any step, and says nothing of a long one
        return longer
    if told is not None and (told.file, told.line) == (line.site.file, line.site.line):
        return f"{longer}, {percent(line.share, 1.0)} of it at the line of the first change"
    return f"{longer}, {percent(line.share, 1.0)} of it {_describe_line(line, phase)}"


def _describe_first_steps(run: Run, number: int) -> str | None:
    """How long the first steps of a phase take, where that is much of the run."""
    taken = find_first_steps(run, number)
    if taken is None:
        return None
    return f"its first steps take {seconds(taken)} ({describe_share(taken / run.seconds)} of the run)"


def _describe_uneven(phase: Phase) -> str | None:
    """How far apart the steps of a phase are, where a few take a good part of its time. Where the host may run ahead of
    the device, its steps say nothing of that."""
    step = phase.step_ms
    if step is None or step.mean is None or (phase.waits_per_step or 0.0) < 1.0:
        return None
    if step.p95 < UNEVEN * step.median or step.mean < UNEVEN_MEAN * step.median:
        return None
    return (
        f"uneven steps of {milliseconds(step.median)} in the median, {milliseconds(step.mean)} on average and "
        f"{milliseconds(step.p95)} at the 95th percentile"
    )
