"""What we say of others' traces is what their JSON holds by plain counting: waits, pageable copies, device time."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from syncscope.rules import RUN_RULES
from syncscope.schema.report import Report
from syncscope.trace import TraceError
from tests.foreign import EXTRA, Plain, index

pytestmark = pytest.mark.skipif(EXTRA is None, reason="SYNCSCOPE_EXTRA_TRACES is not set")

WAITS = ("SYN101", "SYN102", "SYN103", "SYN105", "SYN109")


@cache
def summary(name: str) -> tuple[Report, Plain] | None:
    """The report and the plain reading, ``None`` for a file that is refused (which has a test of its own)."""
    path = Path(EXTRA or "") / name
    try:
        report = analyze(path)
    except TraceError:
        return None
    return report, Plain(path)


@pytest.fixture(params=[row["file"] for row in index()])
def found(request: pytest.FixtureRequest) -> tuple[Report, Plain]:
    both = summary(request.param)
    if both is None:
        pytest.skip("refused")
    return both


def test_every_wait_is_found_once_and_by_the_rule_that_its_ops_ask_for(found: tuple[Report, Plain]) -> None:
    report, plain = found
    counted: Counter[str] = Counter()
    for finding in report.findings:
        if finding.rule in WAITS:
            counted[finding.rule] += finding.count
    assert +counted == plain.waits_by_rule
    assert report.traces[0].coverage.waits == len(plain.waits)


def test_the_first_wait_begins_when_the_file_says(found: tuple[Report, Plain]) -> None:
    report, plain = found
    first = [f.first_ns for f in report.findings if f.rule in WAITS and f.count and f.first_ns is not None]
    if not plain.waits:
        assert first == []
        return
    assert min(first) == pytest.approx(plain.waits[0]["ts"] * 1000, abs=2)


def test_every_pageable_copy_is_found(found: tuple[Report, Plain]) -> None:
    report, plain = found
    counted: Counter[str] = Counter()
    for finding in report.findings:
        if finding.rule == "CPY201":
            counted["HtoD" if "to the device" in finding.message else "DtoH"] += finding.count
    assert +counted == +plain.pageable_copies


def test_the_steps_are_those_of_the_profiler_or_the_optimizer(found: tuple[Report, Plain]) -> None:
    report, plain = found
    steps = report.traces[0].steps
    assert (steps.count, steps.source) == (len(plain.steps), plain.source)
    if plain.steps:
        assert steps.profiled_ms == pytest.approx(plain.step_ms, abs=1e-3)


def test_the_devices_time_adds_up(found: tuple[Report, Plain]) -> None:
    report, plain = found
    overlap = report.traces[0].overlap
    assert overlap is not None
    assert {name: getattr(overlap, name) for name in plain.device_ms} == pytest.approx(plain.device_ms, abs=1e-3)


@pytest.mark.parametrize("name", ["param__dlrm_kineto__worker"])
def test_files_of_several_ranks_are_joined(name: str) -> None:
    files = sorted(Path(EXTRA or "") / row["file"] for row in index() if row["file"].startswith(name))
    joined, alone = analyze(*files), [analyze(file) for file in files]
    assert [trace.rank for trace in joined.traces] == list(range(len(files)))
    of_run = {rule.code for rule in RUN_RULES}
    by_rank = Counter((finding.rank, finding.rule) for finding in joined.findings if finding.rule not in of_run)
    assert by_rank == Counter((rank, f.rule) for rank, report in enumerate(alone) for f in report.findings)
