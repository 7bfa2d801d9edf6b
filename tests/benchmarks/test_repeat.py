"""A repeated trace is the recorded one, several times over."""

import pytest

from benchmarks import repeat
from syncscope import load
from tests.builders import TraceBuilder

BASE = repeat.HERE.parent / "fixtures" / "traces" / "item_logging" / "full.json.gz"
TABLES = ("ops", "runtime", "device", "frames")


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repeated")
    repeat.write(folder / "one.json", base=BASE, events=1)
    repeat.write(folder / "four.json.gz", base=BASE, events=4 * repeat.read(BASE).events, steps=5)
    return load(folder / "one.json"), load(folder / "four.json.gz")


@pytest.mark.parametrize("table", TABLES)
def test_every_copy_has_every_row(repeated, table):
    one, four = (getattr(trace, table) for trace in repeated)
    assert len(four) == 4 * len(one)
    assert (four["name"].astype(str)[: len(one)] == one["name"].astype(str)).all()


def test_ids_of_copies_are_their_own(repeated):
    one, four = repeated
    assert four.device["correlation"].nunique() == 4 * one.device["correlation"].nunique()
    assert four.ops["external_id"].nunique() == 4 * one.ops["external_id"].nunique()


def test_copies_do_not_overlap(repeated):
    one, four = repeated
    assert four.runtime["ts"].iloc[len(one.runtime)] > four.runtime["end"].iloc[: len(one.runtime)].max()


def test_the_steps_cover_the_trace(repeated):
    _, four = repeated
    assert len(four.steps) == 5
    assert (four.steps["end"].to_numpy()[:-1] == four.steps["ts"].to_numpy()[1:]).all()
    assert four.runtime["ts"].between(four.steps["ts"].iloc[0], four.steps["end"].iloc[-1]).all()


def test_sites_come_with_every_copy(repeated):
    one, four = repeated
    assert one.recording is not None
    assert four.recording is not None
    assert len(four.recording.sites) == 4 * len(one.recording.sites)


def test_a_file_of_another_layout_is_refused(tmp_path):
    path = TraceBuilder().step(0, 100).launch("k", call=(1, 2), runs=(5, 5)).write(tmp_path / "t.json")
    with pytest.raises(SystemExit, match="layout"):
        repeat.read(path)
