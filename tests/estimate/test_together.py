"""What all findings save together, where some have only a bound."""

from __future__ import annotations

import msgspec
import pytest

from syncscope import rules
from syncscope.estimate import estimate_savings, prepare
from syncscope.estimate.answers import Saving
from syncscope.estimate.edits import NOTHING, Edit, Question
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import compile_program
from syncscope.estimate.together import Answers, Tried, computed_ms, join, reach_causes
from syncscope.schema.findings import Finding, IdleCause
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import line

READ, WORK = Question.of({1: Edit(free=True)}), Question.of({2: Edit(pre=0.0)})
KNOWN = Saving(None, 1.0, 3.0, 2.0)


def tried(*firm: bool) -> Tried:
    asked = (READ, WORK)[: len(firm)]
    return Tried(asked, asked, firm)


def working(name: str = "gemm", launches: int = 4) -> TraceBuilder:
    """Steps of 2 ms that somebody else recorded: small kernels 40 µs apart, a read that the device is ready for, and
    host work of 1 ms behind it."""
    builder, marks = TraceBuilder(), [0.0]
    for number in range(4):
        at = 2000.0 * number
        for place in range(launches):
            builder.launch(f"{name}{place}", call=(at + 10 + 40 * place, 5), runs=(at + 20 + 40 * place, 20))
        builder.op("aten::item", at + 400, 420).op("aten::_local_scalar_dense", at + 401, 418)
        builder.launch("sum", call=(at + 390, 5), runs=(at + 398, 400))
        builder.copy("DtoH", call=(at + 402, 5), runs=(at + 800, 2), memory="pinned", bytes=4)
        builder.stream_sync(at + 408, 400).warning(at + 822, line(9, "loss.item()"))
        marks.append(at + 2000)
    return builder.steps(*marks)


def launching(launches: int, *, step: float, apart: float, call: float, behind: float, kernel: float) -> TraceBuilder:
    """Four steps of so many launches, whose kernels begin ``behind`` them. All lengths in µs."""
    builder, marks = TraceBuilder(), [0.0]
    for number in range(4):
        for place in range(launches):
            at = step * number + 10 + apart * place
            builder.launch(f"k{place}", call=(at, call), runs=(at + behind, kernel))
        marks.append(step * (number + 1))
    return builder.steps(*marks)


def estimated(builder: TraceBuilder) -> tuple[Prepared, dict[str, Finding], Saving, float]:
    """What is prepared, the findings by their rules, what all save together and the step, ms."""
    timeline = Timeline(builder.trace())
    prepared = prepare(timeline, rules.find(timeline)[0])
    made = estimate_savings(prepared)
    assert made.replay is not None and made.replay.step_ms is not None
    return prepared, {one.rule: one for one in made.findings}, made.together, made.replay.step_ms


def test_the_most_is_a_replay_of_all_and_what_is_likely_has_a_range_of_its_own() -> None:
    _, found, together, step_ms = estimated(working())
    idle, read = found["OVL303"].saving_high_ms_per_step, found["SYN102"].saving_high_ms_per_step
    assert found["OVL303"].likely_saving_ms_per_step is None
    assert idle is not None and read is not None and together.high is not None and together.likely_high is not None
    assert read <= together.likely_high < idle
    assert idle + 0.02 < together.high <= step_ms


def test_findings_that_all_have_a_bound_save_no_more_than_what_they_ask_for() -> None:
    """The idle time for launches is no finding's own."""
    prepared, found, together, _ = estimated(launching(8, step=2000, apart=60, call=50, behind=55, kernel=5))
    assert all(most for most, question in zip(prepared.at_most, prepared.questions, strict=True) if question)
    assert len([cause for cause in prepared.causes if cause]) > len([one for one in prepared.questions if one])
    assert together.high == max(one.saving_high_ms_per_step or 0.0 for one in found.values())
    assert (together.ms, together.likely, together.low) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("most", "limit", "left", "high"),
    [
        (9.0, 20.0, 99.0, 9.0),  # what the replay of all gives
        (9.0, 4.5, 99.0, 7.5),  # what is likely at most and what the bound leaves
        (9.0, 20.0, 6.0, 6.0),  # what the trace leaves
        (4.0, 20.0, 99.0, 4.5),  # what one of them saves alone
    ],
)
def test_with_a_bound_the_most_is_the_least_that_any_of_them_says(
    most: float, limit: float, left: float, high: float
) -> None:
    answers = Answers((KNOWN, Saving(None, 0.0, 4.5, 4.0)), KNOWN, Saving(None, 1.0, most, 6.0))
    together = join(tried(True, False), answers, (20.0, limit), 20.0, left)
    assert (together.likely, together.likely_high, together.high) == (2.0, 3.0, high)


def test_without_a_bound_the_most_is_that_of_what_is_likely() -> None:
    together = join(tried(True), Answers((KNOWN,), KNOWN), (20.0,), 20.0)
    assert (together.high, together.likely_high) == (3.0, None)
    assert join(tried(), Answers((), Saving()), (), 20.0) == Saving()


def test_all_that_is_known_of_it_may_be_less_than_can_be_told() -> None:
    bound = Saving(None, 0.0, 50.0, 40.0)
    answers = Answers((KNOWN, bound), KNOWN, Saving(None, 1.0, 52.0, 42.0))
    assert join(tried(True, False), answers, (400.0, 400.0), 400.0).below_drift
    assert not join(tried(True, False), answers, (20.0, 60.0), 200.0).below_drift


def test_what_is_asked_at_best_ends_with_all_where_some_have_only_a_bound() -> None:
    assert tried(True, True).bests == tried(False, False).bests == []
    (everything,) = tried(True, False).bests
    assert everything.by_item() == READ.by_item() | WORK.by_item()
    assert (tried(True, False).whole, tried(False, False).whole) == ([0], [0, 1])


def test_no_change_leaves_less_than_the_device_computes_for() -> None:
    program = compile_program(Timeline(working().trace()), Costs(*[0.0] * 6))
    assert program is not None
    assert computed_ms(program, [NOTHING]) == pytest.approx((0.48, 0.0))
    (last, *_) = [item for item in range(len(program.items)) if program.items.dur[item] == 400_000]
    assert computed_ms(program, [Question.of({last: Edit(gone=True)})]) == pytest.approx((0.38, 0.1))


def test_no_saving_leaves_less_of_the_step_than_the_device_computes_for() -> None:
    """Launches 100 µs apart for kernels of 40 µs. How far the profiler slows the host is a guess, so they may also be
    farther apart than in the likely step, which a graph would save more of than that has."""
    _, found, together, step_ms = estimated(launching(38, step=4000, apart=100, call=20, behind=30, kernel=40))
    assert found["LCH501"].likely_saving_ms_per_step is not None
    highs = [one.saving_high_ms_per_step or 0.0 for one in found.values()]
    assert together.high is not None and max(*highs, together.high) <= step_ms - 38 * 0.040 + 1e-6


def idle(*causes: tuple[str, float, float | None, tuple[str, ...]]) -> Finding:
    """A finding about idle time. Of each cause: its name, the most and what it likely saves, and what covers it."""
    _, found, _, _ = estimated(working())
    told = tuple(
        IdleCause(
            cause=name, ms_per_step=9.0, saving_low_ms_per_step=0.0, saving_high_ms_per_step=high,
            likely_saving_ms_per_step=likely, covered_by=covered,
        )
        for name, high, likely, covered in causes
    )  # fmt: skip
    return msgspec.structs.replace(found["OVL303"], causes=told)


def test_all_together_save_no_less_than_one_cause_of_idle_time_likely_does() -> None:
    most = Saving(None, 0.0, 4.4, None)
    loading = idle(("data loading", 7.0, 5.0, ()), ("launching", 9.0, None, ()), ("wait", 9.0, 8.0, ("other",)))
    assert reach_causes(most, [loading], 50.0) == Saving(None, 0.0, 7.0, None)
    assert reach_causes(Saving(None, 1.0, 3.0, 2.0), [loading], 50.0) == Saving(None, 1.0, 7.0, 5.0)
    assert reach_causes(Saving(None, 1.0, 8.0, 6.0), [loading], 50.0) == Saving(None, 1.0, 8.0, 6.0)
    assert reach_causes(Saving(), [loading], 50.0) == Saving()
