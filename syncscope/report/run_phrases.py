"""What several outputs say of the whole run: how long it was, how much of it was counted, and how often a finding
occurs in it.

Names are as they stand in the report: not escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.report.numbers import count, milliseconds, seconds
from syncscope.report.runs import find_phase, is_counted_only, is_main, phase_of
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Phase, Run, StepTime

FEW = 4
"""Occurrences below this are told one by one, not as a rate."""
EQUAL = 0.005
"""Rates a step that differ by less are the same number."""
SAME = 0.05
"""What comes each time differs from a whole number by less."""
NEARLY = 1.05
"""Steps to an occurrence below which it is nearly every step."""
TWO = 1.95
"""Steps to an occurrence from which it is every second step, or more seldom."""
HALF = 2.0
"""Steps to a counted one below which more than half are counted, and their share is told."""
IN_FEW, TOGETHER = 0.25, 2
"""What occurs in no more than this share of the steps, and in each of these so often, is told by these steps."""
SELDOM, ONCE = 0.5, 0.1
"""A sampled rate below the first is told in steps; one that differs from 1 by less than the second is once a step."""
MOST_DIFFERENCES = 3
"""Differences of a rank that are named."""
ALIKE = 0.1
"""Shares of the time, and waits a step, that differ by less are alike on two ranks."""

PARTLY = 1.005
"""A phase of which one step in so many was counted, or in fewer, was counted in part."""
MOST_PARTS = 3
"""Phases that were counted in part and are named."""

TIMES = {"epoch end": "an epoch", "checkpoint": "a checkpoint"}
"""What one of a kind of phase is called, where each time in it counts, and not its steps."""


def describe_run(run: Run) -> str:
    """``412 steps in 61.2 s; every wait counted (cost 0.4 %)``."""
    steps = f"{count(run.steps, 'step')} in " if run.steps else ""
    return f"{steps}{seconds(run.seconds)}; {describe_counting(run)}"


def describe_counting(run: Run) -> str:
    """How many of the waits were counted, and what that cost."""
    if run.counted is None:
        return "waits were not counted"
    cost = "" if run.counted.overhead_share is None else f" (cost {_share(run.counted.overhead_share)})"
    one_in = run.counted.one_in
    lead = f"waits counted in {_one_in(one_in)}" if one_in > 1 else "every wait counted"
    parts = [phase for phase in run.phases if _was_missed(phase) or (phase.one_in >= PARTLY and phase.one_in != one_in)]
    others = [_counted_part(phase) for phase in sorted(parts, key=lambda phase: -phase.share)]
    but = f"{', ' if one_in > 1 else ', but '}{', '.join(others[:MOST_PARTS])}" if others else ""
    more = f" and of {len(others) - MOST_PARTS} more in part" if len(others) > MOST_PARTS else ""
    return f"{lead}{cost}{but}{more}"


def _was_missed(phase: Phase) -> bool:
    """Whether none of a phase's steps was counted: counting paused in all of them."""
    return phase.steps > 0 and not phase.counted_steps


def _one_in(one_in: float) -> str:
    """``one of 3.2 steps``, ``71 % of the steps``, ``nearly every step``."""
    if one_in >= HALF:
        return f"one of {_few_digits(one_in, 2)} steps"
    return f"{describe_share(1 / one_in)} of the steps" if one_in >= NEARLY else "nearly every step"


def _counted_part(phase: Phase) -> str:
    """The part of a phase in which waits were counted."""
    if _was_missed(phase):
        return f"of {phase.name} in none of {count(phase.steps, 'step')}"
    if phase.steps:
        return f"of {phase.name} in {_one_in(phase.one_in)}"
    return f"of {phase.name} in {describe_share(1 / phase.one_in)} of the time"


def describe_caveats(run: Run) -> list[str]:
    """What must be known of a run to read its figures; a sentence each, mostly none. That other processes used the
    device is a warning of its traces."""
    caveats = []
    if not run.complete:
        caveats.append(f"Killed or still running after {seconds(run.seconds)}: this is the state written last.")
    elif run.stopped:
        caveats.append("The program was ended after its windows, as asked: this is not its whole run.")
    return caveats


def describe_share(share: float) -> str:
    """``81 %``, ``<1 %``."""
    return "<1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def describe_step(step: StepTime | None) -> tuple[str, str]:
    """The mean and the 95th percentile of a step."""
    return ("–", "–") if step is None else (milliseconds(step.typical), milliseconds(step.p95))


def describe_waits(phase: Phase) -> str:
    """Waits a step: ``2.1``. Of a phase without steps ``62 in all``, or ``3 each time`` where it was entered several
    times. ``–`` where nothing was counted."""
    if phase.waits_per_step is None:
        return "–"
    number = _few_digits(_waits(phase))
    return f"{number} {_per(phase)}" if phase.waits_per_step and not phase.steps else number


def spell_waits(phase: Phase) -> str | None:
    """The same in a sentence: ``2.1 waits a step``, ``62 waits in all``; ``None`` where nothing was counted."""
    if phase.waits_per_step is None:
        return None
    number = _few_digits(_waits(phase))
    return f"{number} {'wait' if number == '1' else 'waits'} {_per(phase)}"


def _waits(phase: Phase) -> float:
    """How many waits of a phase are told, each time or in all."""
    waits = phase.waits_per_step or 0.0
    return waits if _per(phase) != "in all" else waits * phase.times


def _per(phase: Phase) -> str:
    """What a phase's waits are counted by. What is not there each time that the program enters it is told in all."""
    if phase.steps:
        return "a step"
    return "each time" if phase.times > 1 and (phase.waits_per_step or 1.0) >= 1 else "in all"


def describe_recorded(run: Run, phase: int) -> str:
    """The steps of a phase that windows recorded: ``16–38``, ``yes`` where they cannot be told, ``–`` for none."""
    if not run.phases[phase].recorded:
        return "–"
    steps = run.phases[phase].recorded_steps
    if steps is None:
        return "yes"
    return f"{steps[0]}–{steps[1]}" if steps[0] < steps[1] else str(steps[0])


def describe_difference(run: Run, first: Run) -> list[str]:
    """By what the run of a rank differs from that of the first one; empty where they look alike."""
    if run == first:
        return []
    said = []
    if run.complete != first.complete:
        said.append("ended by itself" if run.complete else f"killed or still running after {seconds(run.seconds)}")
    names = {phase.name for phase in run.phases}
    for phase in first.phases:
        mine = find_phase(run, phase.name)
        if mine is not None:
            said += _differing(mine, phase)
        elif phase.share >= ALIKE / 10:
            said.append(f"no {phase.name}")
    known = {phase.name for phase in first.phases}
    said += [f"also {phase.name}" for phase in run.phases if phase.name in names - known and phase.share >= ALIKE / 10]
    more = len(said) - MOST_DIFFERENCES
    return [*said[:MOST_DIFFERENCES], *([f"{more} more"] if more > 0 else [])]


def _differing(phase: Phase, first: Phase) -> list[str]:
    said = []
    if abs(phase.steps - first.steps) > max(1, first.steps * ALIKE / 10):
        said.append(f"{phase.name}: {count(phase.steps, 'step')}, not {first.steps}")
    if abs(phase.share - first.share) >= ALIKE:
        said.append(f"{phase.name}: {describe_share(phase.share)} of the time, not {describe_share(first.share)}")
    waits, others = phase.waits_per_step, first.waits_per_step
    if waits is not None and others is not None and abs(waits - others) > max(0.01, ALIKE * max(waits, others)):
        said.append(f"{phase.name}: {spell_waits(phase)}, not {_few_digits(_waits(first))}")
    return said


def describe_frequency(finding: Finding, traces: Sequence[TraceInfo], *, brief: bool = False) -> str | None:
    """How often a finding occurs in the run: ``every step``, ``every 10 steps (41 in 412)``, ``once, in step 0``, ``in
    evaluate: 3 a step``; ``brief`` without how that was sampled. ``None`` where its run was not counted."""
    if finding.occurrences is None and finding.run_per_step is None:
        return None
    phase, run = phase_of(finding, traces), traces[finding.trace].run
    text = _often(finding, phase, run, brief)
    if finding.phase is None or is_main(finding, traces):
        return text
    if phase is not None and text.endswith(TIMES.get(phase.kind, "\0")):
        return text
    return f"in {finding.phase}: {text}"


def describe_source(finding: Finding) -> list[str]:
    """That a finding comes from the count alone, where it does."""
    return ["no window recorded it"] if finding.site_source == "count" else []


def _often(finding: Finding, phase: Phase | None, run: Run | None, brief: bool) -> str:
    number, rate = finding.occurrences, finding.run_per_step
    low, high, having = finding.run_per_step_low, finding.run_per_step_high, finding.run_steps_with
    one_in = phase.one_in if phase is not None else 1.0
    told = rate is not None and low is not None and low < rate  # of the time in which counting paused, too
    hedge = "" if one_in <= 1 else "about " if told else "at least "
    if phase is not None and phase.kind in TIMES and number is not None:
        epochs = _epochs(run)
        times = phase.times if phase.kind != "epoch end" or epochs is None else epochs
        return hedge + _each_time(number, times, TIMES[phase.kind], sure=times == phase.times)
    if rate is None or (phase is not None and not phase.steps):
        return hedge + ("once" if number == 1 else f"{number} times")
    if phase is not None and number is not None and _was_missed(phase):
        return _in_all(number, low, high, phase.steps, brief)
    in_few = _in_few_steps(finding, phase)
    if one_in > 1 and in_few is not None:
        return hedge + in_few
    if one_in > 1 and phase is not None and having is not None and 0 < having < FEW and low == 0:
        return f"in {having} of {count(phase.counted_steps, 'counted step')}"  # too few for a rate
    if one_in > 1:
        return _sampled_briefly(rate, low, high) if brief else _sampled(rate, low, high, one_in)
    steps = phase.steps if phase is not None else None
    if number is None or steps is None:
        return _rate(rate)
    return _counted(number, rate, steps, finding.run_steps, _epochs(run), in_few)


def _in_all(number: int, low: float | None, high: float | None, steps: int, brief: bool) -> str:
    """``about 9,520 times (7,300–11,700 in all)``, of what parts of steps tell where none was counted whole: these
    parts are no steps, so it has no rate. ``low`` and ``high`` are a step, of so many ``steps``."""
    if low is None or high is None:
        return f"at least {number:,} times"
    least, most = round(low * steps), round(high * steps)
    between = "" if brief or most - least <= EQUAL * most else f" ({least:,}–{most:,} in all)"
    return f"about {number:,} times{between}"


def _in_few_steps(finding: Finding, phase: Phase | None) -> str | None:
    """``610 times, in 2 of 154 counted steps``, of what occurs several times in each of a few steps: a mean rate would
    say that it does in all of them. ``None`` of anything else."""
    number, having = finding.occurrences, finding.run_steps_with
    counted = phase.counted_steps if phase is not None else 0
    if phase is None or number is None or not having or having > IN_FEW * counted:
        return None
    if number * counted < TOGETHER * having * phase.steps:
        return None
    which = "" if counted == phase.steps else "counted "
    return f"{number:,} times, in {having} of {counted:,} {which}steps"


def _epochs(run: Run | None) -> int | None:
    """How many epochs ended in the run, at most: what follows the steps of one may be in several parts, as between two
    tests, and a test may cut the steps in two."""
    phases = run.phases if run is not None else ()
    ends = [phase.times for phase in phases if phase.kind == "epoch end"]
    begins = [phase.times for phase in phases if phase.kind == "train"]
    return min(ends[0], sum(begins) or ends[0]) if ends else None


def _each_time(number: int, times: int, one: str, *, sure: bool) -> str:
    """``once an epoch``, ``2 an epoch``; ``3 times in 16 epochs``, ``74 times in 5 epochs``: not each time as often.
    Where it is not ``sure`` how many there were, only what is as often in each of them tells it."""
    a_time = number / max(times, 1)
    if times > 1 and number >= times and abs(a_time - round(a_time)) <= min(EQUAL * a_time, SAME):
        return f"once {one}" if round(a_time) == 1 else f"{_few_digits(a_time)} {one}"
    if times > 1 and sure:
        return f"{'once' if number == 1 else f'{number:,} times'} in {times:,} {one.split()[-1]}s"
    return "once" if number == 1 else f"{number:,} times"


def _counted(
    number: int, rate: float, steps: int, where: tuple[int, int] | None, epochs: int | None, in_few: str | None
) -> str:
    """How often, where every step was counted."""
    if number == 1:
        return "once" if where is None else f"once, in step {where[0]}"
    if where is not None and steps > 1 and 2 * (where[1] - where[0] + 1) <= steps:
        inside = f"in step {where[0]}" if where[0] == where[1] else f"in steps {where[0]}–{where[1]}"
        return f"{number} times, {inside}"
    if in_few is not None:
        return in_few
    if rate > 1 - EQUAL:
        return _rate(rate)
    if (number < FEW and number != epochs) or NEARLY <= 1 / rate < TWO:
        return f"{number} times in {count(steps, 'step')}"
    if number == epochs:
        return f"once an epoch ({number} in {count(steps, 'step')})"
    return f"{_rate(rate)} ({number} in {steps})"


def _sampled(rate: float, low: float | None, high: float | None, one_in: float) -> str:
    """How often, where only some steps were counted; with its interval."""
    counted = f"counted in {_one_in(one_in)}"
    if low is None or high is None or high - low <= EQUAL * high:
        return f"{_rate(rate)} ({counted})"
    if rate * NEARLY < 1 and low > 0 and high <= 1:
        return f"about {_rate(rate)} ({_few_digits(1 / high, 2)}–{_few_digits(1 / low, 2)}; {counted})"
    return f"about {_few_digits(rate, 2)} a step ({_few_digits(low, 2)}–{_few_digits(high, 2)}; {counted})"


def _sampled_briefly(rate: float, low: float | None, high: float | None) -> str:
    """How often, where only some steps were counted: without the interval, and in steps where it is seldom."""
    if low is None or high is None or high - low <= EQUAL * high or rate <= 0:
        return _rate(rate)
    if rate < SELDOM:
        return f"about {_rate(rate)}"
    return "about once a step" if abs(rate - 1) < ONCE else f"about {_few_digits(rate, 2)} a step"


def _rate(rate: float) -> str:
    """``every step``, ``2 a step``, ``0.6 a step``, ``every 10 steps``."""
    if abs(rate - 1) < EQUAL:
        return "every step"
    if rate > 1:
        return f"{_few_digits(rate)} a step"
    if rate <= 0:
        return "never seen"
    every = 1 / rate
    if every < NEARLY:
        return "nearly every step"
    return f"{_few_digits(rate, 2)} a step" if every < TWO else f"every {every:.0f} steps"


def _share(share: float) -> str:
    """``0.4 %``."""
    return f"{_few_digits(100 * share, 2)} %"


def _few_digits(value: float, digits: int = 3) -> str:
    """``2``, ``0.125``, ``1234``: never with an exponent that a reader must decode."""
    if value >= 10**digits:
        return f"{value:.0f}"
    shown = f"{float(f'{value:.{digits}g}'):.8f}".rstrip("0").rstrip(".")
    return shown or "0"


def describe_missed_phase(report: Report, wanted: str) -> str | None:
    """That no window was recorded of the phase that alone was wanted, and which phases there were; ``None`` where one
    was. ``wanted`` is a phase's name, its kind or its function. Not escaped."""
    if not all(map(is_counted_only, report.traces)):
        return None
    known = {phase.name: None for info in report.traces if info.run for phase in info.run.phases}
    there = f"; the phases were {', '.join(known)}" if known else ""
    return f"--phase {wanted}: no window of it was recorded{there}"
