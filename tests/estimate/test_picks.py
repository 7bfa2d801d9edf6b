"""Elements that are picked only to be read."""

from __future__ import annotations

import pytest

from syncscope import rules
from syncscope.estimate import estimate_savings, prepare
from syncscope.estimate.picks import count_picks
from syncscope.estimate.waiting import BEFORE
from syncscope.schema.findings import Finding
from syncscope.schema.recording import Bare
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.estimate.test_questions import STEPS
from tests.rules.scenes import line

READS = 10


@pytest.mark.parametrize(
    ("expression", "picks"),
    [
        ("int(lengths[i])", 1),
        ("range(memory_len[i])", 1),
        ("losses[-1].item()", 1),
        ("float(scores[row, column])", 2),
        ("scores[row][column].tolist()", 2),
        ("losses['total'].item()", 0),
        ("loss.item()", 0),
        ("lengths[:3].tolist()", 0),
        ("int((pred[mask] == labels[mask]).sum())", 0),
        ("lengths[i]", 0),
        ("int(text[i], base=2)", 0),
        ("int(", 0),
        (None, 0),
    ],
)
def test_each_index_of_what_is_read_is_a_pick(expression: str | None, picks: int) -> None:
    assert count_picks(expression) == picks


def found(expression: str) -> Finding:
    """Steps of 1 ms in which the host reads ten values, 20 µs after the one before."""
    builder, marks = TraceBuilder(), [0.0]
    for number in range(STEPS):
        at = 1000.0 * number
        builder.launch("gemm", call=(at + 10, 5), runs=(at + 17, 20))
        for read in range(READS):
            here = at + 60 + 40 * read
            builder.copy("DtoH", call=(here, 5), runs=(here + 6, 1), bytes=8)
            builder.stream_sync(here + 5, 15).warning(here + 21, line(3, expression))
        marks.append(at + 1000)
    bare = Bare(steps_ns=(1_000_000,) * 8, drain_ns=1000)
    timeline = Timeline(builder.recording(*marks, drained=marks[-1] + 5, bare=bare).trace())
    estimate = estimate_savings(prepare(timeline, rules.find(timeline)[0]))
    return next(one for one in estimate.findings if one.rule == "SYN102")


def test_a_read_of_an_element_may_save_its_pick_too() -> None:
    element, value = found("int(lengths[i])"), found("int(length)")
    assert element.saving_ms_per_step == value.saving_ms_per_step
    assert element.saving_low_ms_per_step == value.saving_low_ms_per_step
    assert element.saving_high_ms_per_step is not None and value.saving_high_ms_per_step is not None
    more = element.saving_high_ms_per_step - value.saving_high_ms_per_step
    assert more == pytest.approx(READS * BEFORE * 1e-6, rel=0.1)
