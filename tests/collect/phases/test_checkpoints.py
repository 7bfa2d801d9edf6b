"""What saves and loads is a checkpoint: with PyTorch, distributed, and to safetensors."""

from __future__ import annotations

import importlib
import inspect
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import following, learn, model, sgd  # noqa: E402


def test_saving_is_a_checkpoint(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    class Place(io.BytesIO):
        def write(self, data: Any) -> int:
            places.append(run.here())
            return super().write(data)

    places: list[str] = []
    for number in range(6):
        learn(net, optimizer)
        if number == 3:
            torch.save(net.state_dict(), Place())
            assert run.here() == "train"
    assert set(places) == {"checkpoint"}
    assert run.sequence == ["train", "checkpoint", "train"]
    assert run.intruded == [("train", 5)]


def test_what_is_saved_without_a_step_in_between_is_one_checkpoint(run: Any) -> None:
    """``pickle`` saves each tensor of a model by itself."""
    net = model()
    optimizer = sgd(net)
    pickle.dumps(net)
    for _ in range(6):
        learn(net, optimizer)
        learn(net, optimizer)
        pickle.dumps(net)
        torch.save(optimizer.state_dict(), io.BytesIO())
    saved = next(phase for phase in run.tracker.phases if phase.kind == "checkpoint")
    assert run.sequence.count("checkpoint") > 2 * 7
    assert (saved.times, run.tracker.phases[0].times) == (7, 1)


@pytest.mark.parametrize("imported_before", [True, False])
def test_saving_safetensors_is_a_checkpoint(imported_before: bool, tmp_path: Path, monkeypatch: Any) -> None:
    """A library has taken ``save_file`` by name before anything is watched, or imports it later."""
    (tmp_path / "safetensors").mkdir()
    (tmp_path / "safetensors" / "__init__.py").touch()
    (tmp_path / "safetensors" / "torch.py").write_text(
        "places = []\n"
        "def _flatten_as_ptr(tensors):\n"
        "    places.append(tensors())\n"
        "def save_file(tensors):\n"
        "    _flatten_as_ptr(tensors)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("safetensors", "safetensors.torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if imported_before:
        saving = importlib.import_module("safetensors.torch")
        save_file = saving.save_file
    finders = list(sys.meta_path)
    with following() as run:
        net = model()
        optimizer = sgd(net)
        if not imported_before:
            saving = importlib.import_module("safetensors.torch")
            save_file = saving.save_file
        for _ in range(3):
            learn(net, optimizer)
        save_file(lambda: run.here())
        assert run.here() == "train"
        assert not run.signals.failure
    assert saving.places == ["checkpoint"]
    assert run.sequence == ["train", "checkpoint", "train"]
    assert saving._flatten_as_ptr.__code__.co_filename.endswith("torch.py")  # nothing of ours stays
    assert sys.meta_path == finders
    for name in ("safetensors", "safetensors.torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_what_is_gathered_and_saved_distributed_is_a_checkpoint(run: Any, tmp_path: Path) -> None:
    """The weights come from the device while they are gathered, before anything is written."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    writer: Any = checkpoint.FileSystemWriter

    places: list[str] = []

    class Writer(writer):  # type: ignore[misc]
        def write_data(self, *arguments: Any) -> Any:
            places.append(run.here())
            return super().write_data(*arguments)

    net = model()
    optimizer = sgd(net)
    net.register_state_dict_post_hook(lambda *_: places.append(run.here()))
    for _ in range(3):
        learn(net, optimizer)
    places.clear()
    weights, state = get_state_dict(net, optimizer)
    gathered, told = len(places), run.here()
    checkpoint.save(weights, storage_writer=Writer(tmp_path))
    checkpoint.load(weights, checkpoint_id=tmp_path)
    set_state_dict(net, optimizer, model_state_dict=weights, optim_state_dict=state)
    assert not run.signals.failure
    assert (gathered > 0, told, set(places)) == (True, "train", {"checkpoint"})
    assert run.here() == "train"


def test_reading_what_was_saved_is_a_checkpoint(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    class Place(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            places.append(run.here())
            return super().read(size)

    places: list[str] = []
    saved = Place()
    torch.save(net.state_dict(), saved)
    saved.seek(0)
    torch.load(saved)  # what the training begins with
    assert set(places) == {"start"}
    places.clear()
    for _ in range(6):
        learn(net, optimizer)
    saved.seek(0)
    torch.load(saved)
    assert set(places) == {"checkpoint"}
    assert run.here() == "train"


def test_a_dataset_reads_no_checkpoints(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    saved = io.BytesIO()
    torch.save(torch.zeros(3), saved)

    class Files:
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            saved.seek(0)
            return torch.load(saved)

    for _ in range(2):
        for _ in torch.utils.data.DataLoader(Files()):
            learn(net, optimizer)
    assert run.sequence.count("checkpoint") == 1  # the save


def test_saving_that_fails_is_over(run: Any) -> None:
    with pytest.raises(AttributeError):
        torch.save(model(), 3)
    assert run.tracker.current.kind == "start"


def test_what_saves_and_loads_is_pickled_and_described_as_without_us(run: Any) -> None:
    assert torch.save is torch.serialization.save
    assert pickle.loads(pickle.dumps(torch.save)) is torch.save
    assert "weights_only" in inspect.signature(torch.load).parameters
    assert "weights_only" in inspect.getfullargspec(torch.load).kwonlyargs
