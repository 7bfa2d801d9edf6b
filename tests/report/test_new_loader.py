"""A loader that begins anew after each epoch, and takes more of the run than any finding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from syncscope.report.conclusion import conclude
from syncscope.schema.findings import Finding, Site
from syncscope.schema.run import PhaseLine
from syncscope.schema.verdict import Verdict
from tests.report import sample
from tests.report.sample_run import EPOCH_END, info, phases, rate, report, run

READ = rate(sample.findings()[0], 1.0, 412)
LOOP = Site(file="train.py", line=12, function="main", expression="for x, y in train_loader:")


def lines(*found: Finding, site: Site = LOOP, verdict: Verdict | None = None, **of_phase: Any) -> dict[str, str]:
    """What opens the report of a run with a third of its time between the epochs."""
    made = list(phases())
    known = {"share": 0.33, "looks": 40, "lines": (PhaseLine(site=site, share=0.97),), **of_phase}
    made[EPOCH_END] = msgspec.structs.replace(made[EPOCH_END], **known)
    return dict(conclude(report([info(run=run(phases=tuple(made)))], found), verdict).lines)


def saving(ms: float, **changes: Any) -> Finding:
    return msgspec.structs.replace(READ, run_saving_ms_per_step=ms, **changes)


def test_it_comes_before_what_saves_far_less_of_the_run() -> None:
    said = lines(saving(2.0))
    assert said["step"].endswith("; 32 % of the run is between epochs, where a loader begins anew")
    assert "with the first change" not in said["step"] and "with one change" not in said["step"]
    fix = "Keep its workers (persistent_workers=True), or one iterator for all epochs"
    assert said["first"] == f"train.py:12  for x, y in train_loader: {fix}"


def test_it_comes_first_where_nothing_else_is_known_to_help() -> None:
    assert lines()["first"].startswith("train.py:12  for x, y in train_loader: Keep its workers")


@pytest.mark.parametrize(
    "of_phase",
    [
        {"share": 0.2}, {"times": 1}, {"looks": 4}, {"kind": "evaluate"},
        {"site": Site(file="train.py", line=12, function="main", expression="model.fit(x)")},
        {"lines": (PhaseLine(site=LOOP, share=0.5),)},
    ],
)  # fmt: skip
def test_what_is_little_or_something_else_does_not(of_phase: dict[str, Any]) -> None:
    assert lines(saving(2.0), **of_phase)["first"].startswith("train.py:42  loss.item()")


def test_what_is_known_to_save_half_as_much_of_the_run_stays_first() -> None:
    assert lines(saving(30.0))["first"].startswith("train.py:42")


def test_what_fails_a_gate_and_races_stay_first() -> None:
    verdict = Verdict(gate=("SYN102",), unexpected=(saving(2.0),))
    assert lines(saving(2.0), verdict=verdict)["first"].startswith("train.py:42")
    race = msgspec.structs.replace(READ, rule="HAZ401", name="read-before-arrival")
    assert lines(race)["first"].startswith("train.py:42")
