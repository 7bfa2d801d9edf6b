"""The names of trace files say which process and which phase they hold."""

from __future__ import annotations

import pytest

from syncscope.collect.naming import file_name, is_our_name, slug_of

NAMES = [
    ((None, None, 71, None, True), "trace.json.gz"),
    ((0, 1, 71, None, True), "trace.json.gz"),
    ((0, 1, 71, None, False), "trace.rank0.json.gz"),
    ((3, 8, 71, None, False), "trace.rank3.json.gz"),
    ((3, 8, 71, "evaluate", True), "trace.rank3.evaluate.json.gz"),
    ((None, None, 71, None, False), "trace.process-71.json.gz"),
    ((None, None, 71, "epoch-end", False), "trace.process-71.epoch-end.json.gz"),
    ((None, None, 71, "evaluate-in-sanity_check", True), "trace.evaluate-in-sanity_check.json.gz"),
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
    ],
)
def test_other_names_are_not_ours(name: str) -> None:
    assert not is_our_name(name)


def test_a_phase_becomes_a_part_of_a_file_name() -> None:
    assert [slug_of(name) for name in ("train", "epoch end", "evaluate in Trainer.check")] == [
        "train", "epoch-end", "evaluate-in-Trainer-check",
    ]  # fmt: skip
