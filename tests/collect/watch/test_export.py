"""Exporters, with the packages that they write for where those are installed."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from syncscope.collect.export import ExportError, Receivers, make_exporter
from syncscope.collect.watch.measures import Measures, PhaseMeasures

TRAIN = PhaseMeasures("train", "train", 20, 2.5, 0.9)
END = PhaseMeasures("epoch end", "epoch end", 0, None, 0.1)
MEASURES = Measures(60.0, (TRAIN, END), 3, 1, 0.002)


class Broken:
    def __init__(self) -> None:
        self.calls = 0

    def export(self, measures: Measures) -> None:
        self.calls += 1
        raise OSError("no space\nleft")

    def close(self) -> None:
        raise AssertionError("was called again")


class Kept:
    def __init__(self) -> None:
        self.seen: list[Measures] = []
        self.closed = False

    def export(self, measures: Measures) -> None:
        self.seen.append(measures)

    def close(self) -> None:
        self.closed = True


def test_an_exporter_that_fails_is_left_out_with_one_note_and_hurts_nobody() -> None:
    broken, kept = Broken(), Kept()
    receivers = Receivers([broken, kept])
    for _ in range(3):
        receivers.export(MEASURES)
    receivers.close()
    assert broken.calls == 1 and len(kept.seen) == 3 and kept.closed
    assert receivers.notes == ["Broken failed and gets no more figures (OSError: no space left)."]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("carrier-pigeon", "is no exporter: choose from tensorboard, wandb, prometheus, jsonl"),
        ("jsonl", "jsonl needs a value: jsonl=FILE"),
        ("tensorboard=", "tensorboard needs a value: tensorboard=DIR"),
    ],
)
def test_what_cannot_be_made_is_said(text: str, why: str) -> None:
    with pytest.raises(ExportError) as error:
        make_exporter(text)
    assert why in str(error.value)


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "prometheus"])
def test_a_missing_package_names_its_extra(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    modules = {"tensorboard": "tensorboard.summary", "wandb": "wandb", "prometheus": "prometheus_client"}
    monkeypatch.setitem(__import__("sys").modules, modules[kind], None)
    with pytest.raises(ExportError) as error:
        make_exporter(f"{kind}={tmp_path if kind == 'tensorboard' else 0}")
    assert f"pip install 'syncscope[{kind}]'" in str(error.value)


def test_json_lines_are_appended(tmp_path: Path) -> None:
    exporter = make_exporter(f"jsonl={tmp_path}/runs/waits.jsonl")
    exporter.export(MEASURES)
    exporter.export(MEASURES)
    exporter.close()
    rows = [json.loads(line) for line in (tmp_path / "runs" / "waits.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    assert rows[0] == {
        "seconds": 60.0, "step": 20, "lines": 3.0, "new_lines": 1.0, "cost": 0.002, "train/waits_per_step": 2.5,
        "train/share": 0.9, "train/steps": 20.0, "epoch end/share": 0.1, "epoch end/steps": 0.0,
    }  # fmt: skip


def test_each_rank_has_lines_of_its_own(tmp_path: Path) -> None:
    make_exporter(f"jsonl={tmp_path}/waits.jsonl", rank=3).export(MEASURES)
    assert [path.name for path in tmp_path.iterdir()] == ["waits.rank3.jsonl"]


def test_tensorboard_reads_the_scalars_back(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    exporter = make_exporter(f"tensorboard={tmp_path}")
    exporter.export(MEASURES)
    exporter.close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events: Any = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["tensors"]) == {f"syncscope/{name}" for name in MEASURES.scalars()}
    (event,) = events.Tensors("syncscope/train/waits_per_step")
    assert (event.step, list(event.tensor_proto.float_val)) == (20, [2.5])


def test_prometheus_serves_the_gauges() -> None:
    pytest.importorskip("prometheus_client")
    exporter: Any = make_exporter("prometheus=0")
    exporter.export(MEASURES)
    text = urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics").read().decode()
    exporter.close()
    assert 'syncscope_waits_per_step{phase="train"} 2.5' in text
    assert "syncscope_new_lines 1.0" in text
    assert "python_info" not in text, "the program's own registry is served elsewhere"


def test_a_port_that_is_taken_is_said_before_the_program_runs() -> None:
    pytest.importorskip("prometheus_client")
    exporter: Any = make_exporter("prometheus=0")
    with pytest.raises(ExportError) as error:
        make_exporter(f"prometheus={exporter.port}")
    exporter.close()
    assert "cannot listen at" in str(error.value)


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    return pytest.importorskip("wandb")


def test_the_programs_own_run_keeps_its_steps(offline: Any) -> None:
    exporter = make_exporter("wandb")
    exporter.export(MEASURES)  # the program has no run yet
    run = offline.init(project="theirs")
    run.log({"loss": 2.0})
    exporter.export(MEASURES)
    run.log({"loss": 1.0})
    assert run.step == 2
    assert run.summary["syncscope/train/waits_per_step"] == 2.5
    run.finish()
    exporter.close()


def test_a_run_of_ours_is_beside_the_programs(offline: Any) -> None:
    exporter: Any = make_exporter("wandb=ours")
    assert offline.run is None
    exporter.export(MEASURES)
    exporter.close()
    assert offline.run is None
