"""The names of trace files say which process and which phase they hold."""

from __future__ import annotations

from typing import get_args

import pytest

from syncscope.collect.naming import file_name, is_our_name
from syncscope.collect.phases.phase import Phase
from syncscope.schema.counting import PhaseKind

NAMES = [
    ((None, None, 71, None, True), "trace.json.gz"),
    ((0, 1, 71, None, True), "trace.json.gz"),
    ((0, 1, 71, None, False), "trace.rank0.json.gz"),
    ((3, 8, 71, None, False), "trace.rank3.json.gz"),
    ((3, 8, 71, "evaluate", True), "trace.rank3.evaluate.json.gz"),
    ((None, None, 71, None, False), "trace.process-71.json.gz"),
    ((None, None, 71, "epoch_end", False), "trace.process-71.epoch_end.json.gz"),
    ((None, None, 71, "evaluate2", True), "trace.evaluate2.json.gz"),
]


@pytest.mark.parametrize(("process", "name"), NAMES)
def test_a_name_is_that_of_one_process_and_phase(
    process: tuple[int | None, int | None, int, str | None, bool], name: str
) -> None:
    assert file_name(*process) == name
    assert is_our_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "trace.old.json.gz",
        "traces.json.gz",
        "trace.json",
        "trace.rank0.mine.json.gz",
        "trace.rank.json.gz",
        "trace2.json.gz",
        "trace.evaluate-before.json.gz",
        "trace.training.json.gz",
    ],
)
def test_other_names_are_not_ours(name: str) -> None:
    assert not is_our_name(name)


def test_the_slug_of_every_phase_makes_a_name_of_ours() -> None:
    phases: list[Phase] = []
    for kind in (*get_args(PhaseKind), *get_args(PhaseKind)):
        phases.append(Phase(len(phases), kind))
        phases[-1].join(phases)
    names = {file_name(None, None, 71, phase.slug, True) for phase in phases}
    assert len(names) == len(phases) and all(is_our_name(name) for name in names)
