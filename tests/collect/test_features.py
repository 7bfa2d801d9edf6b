"""A PyTorch that lacks what it never promised: a note or a refusal that names it, and no traceback."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the collector's features are PyTorch's")

import syncscope  # noqa: E402
from syncscope.collect.collector import Collector  # noqa: E402
from syncscope.collect.features import HAZARDS, SYNC_DEBUG_MODE, Unsupported  # noqa: E402
from syncscope.collect.files import FileNames  # noqa: E402
from syncscope.collect.hazards.window import HazardWindow  # noqa: E402
from syncscope.collect.live.record import unavailable  # noqa: E402
from syncscope.collect.patching import Patches  # noqa: E402
from syncscope.collect.paths import Paths  # noqa: E402
from syncscope.collect.plan import Plan  # noqa: E402
from syncscope.collect.sites.recorder import SiteRecorder  # noqa: E402
from syncscope.collect.sites.stacks import Stacks  # noqa: E402
from syncscope.collect.sites.threads import Threads  # noqa: E402
from syncscope.collect.sites.wrappers import CallWrappers  # noqa: E402
from syncscope.collect.windows import Windows  # noqa: E402
from tests.collect.hazards.fake import FakeRuntime  # noqa: E402

ROOT = Path(__file__).parents[2]
OWNERS = (
    "_VF", "_ops.OpOverload", "_ops.OpOverloadPacket", "_C.ScriptFunction", "_C.ScriptMethod",
    "utils.data.dataloader._BaseDataLoaderIter",
)  # fmt: skip

OF_OTHERS = {
    "_showwarnmsg", "_filters_mutated", "_filters_mutated_lock_held", "_get_filters", "_py_warnings", "_kind", "_like",
    "_dill",
}  # fmt: skip
"""Quoted private names of the collector that are not PyTorch's."""

IN_PROSE = {"_C", "_device", "_gpu_trace", "_sanitizer"}
"""Modules, and what comments say is not used."""


class Without:
    """``thing``, where the attribute at the end of ``path`` is missing."""

    def __init__(self, thing: Any, path: str) -> None:
        self._thing, self._path = thing, path

    def __getattr__(self, name: str) -> Any:
        first, _, rest = self._path.partition(".")
        if name != first:
            return getattr(self._thing, name)
        if not rest:
            raise AttributeError(f"torch has no attribute {name!r}")
        return Without(getattr(self._thing, name), rest)


def with_gpu(**native: Any) -> Any:
    """As much of torch as a schedule needs before it records, with CUDA in use."""
    return SimpleNamespace(
        __version__="2.99",
        cuda=SimpleNamespace(is_initialized=lambda: True),
        version=SimpleNamespace(cuda=None),
        _C=SimpleNamespace(
            **{
                "_autograd": SimpleNamespace(_profiler_enabled=lambda: False),
                "_cuda_synchronize": lambda: None,
                "_cuda_get_sync_debug_mode": lambda: 0,
                "_cuda_set_sync_debug_mode": lambda mode: None,
                **native,
            }
        ),
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Any]:
    """What the windows say after twenty steps."""

    def run(torch: Any, **plan: int) -> Any:
        given = {"warmup": 0, "bare": 1, "steps": 0, "attribution": 0, "settle": 0, **plan}
        windows = Windows(Plan(**given), torch, Stacks(Paths(tmp_path)), Threads(), lambda _: None)  # type: ignore[arg-type]
        for _ in range(20):
            windows.boundary()
        assert windows.finished
        return windows.recorded

    return run


@pytest.fixture
def unprofiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows with a profiler that records nothing, and without the calls of ``torch._VF``."""

    class Profiler:
        ready_at = 0.0

        def __init__(self, *parts: Any, **settings: Any) -> None: ...
        def prepare(self) -> None: ...
        def start(self) -> None: ...
        def stop(self, *, detach: bool) -> None: ...
        def step(self, number: int) -> Any:
            return contextlib.nullcontext()

    class Recorder(SimpleNamespace):
        missing = ("torch._VF",)

        def __init__(self, *parts: Any, hears_copies: bool) -> None: ...
        def open(self) -> None: ...
        def close(self) -> None: ...
        def take(self) -> tuple[()]:
            return ()

    monkeypatch.setattr("syncscope.collect.windows.KinetoWindow", Profiler)
    monkeypatch.setattr("syncscope.collect.windows.SiteRecorder", Recorder)


@pytest.mark.parametrize("path", HAZARDS)
def test_no_race_is_looked_for_without_what_sees_them(path: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=rf"^cannot look for races: PyTorch \S+ lacks torch\.{re.escape(path)}$"):
        HazardWindow(Without(torch, path), Stacks(Paths(tmp_path)), Threads(), FakeRuntime())


def test_a_recording_that_cannot_look_for_races_says_so_and_keeps_the_rest(
    recorded: Callable[..., Any], unprofiled: None
) -> None:
    said = recorded(with_gpu(), steps=1, hazards=2)
    assert said.bare is not None and said.failure is None and said.hazards is None
    _, note = said.notes
    assert (
        note.startswith("This recording cannot look for races: ") and "torch._C._disabled_torch_dispatch_impl" in note
    )


def test_a_block_that_cannot_look_for_races_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in SYNC_DEBUG_MODE:  # those of the CPU build
        monkeypatch.delattr(f"torch.{path}", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with syncscope.hazards() as found:
        ran = True
    assert ran and not found.findings
    assert all("lacks torch._C._cuda_get_sync_debug_mode" in entry.why for entry in found.not_checked)
    assert found.not_checked


@pytest.mark.parametrize("name", ["_cuda_synchronize", "_autograd"])
def test_nothing_is_recorded_without_what_times_need(recorded: Callable[..., Any], name: str) -> None:
    lacking = with_gpu()
    delattr(lacking._C, name)
    assert f"AttributeError: 'types.SimpleNamespace' object has no attribute '{name}'" in recorded(lacking).failure


@pytest.mark.parametrize("path", SYNC_DEBUG_MODE)
def test_nothing_is_recorded_without_the_sync_debug_mode(recorded: Callable[..., Any], path: str) -> None:
    said = recorded(Without(with_gpu(), path), steps=2)
    assert f"cannot see waits: PyTorch 2.99 lacks torch.{path}" in said.failure
    assert said.timed is None and said.bare is not None


@pytest.mark.parametrize("path", OWNERS)
def test_calls_that_are_gone_are_named_and_the_others_recorded(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda one: True), raising=False)
    calls: list[str] = []
    mode: Any = SimpleNamespace(suspend=int, resume=int, suspend_if_unnoticed=bool)
    wrappers = CallWrappers(Without(torch, path), lambda name, start, frame: calls.append(name), mode)
    wrappers.open()
    try:
        torch.linalg.eigh(torch.eye(2))
    finally:
        wrappers.close()
    assert wrappers.missing == [f"torch.{path}"]
    assert calls == ["torch.linalg.eigh"]


@pytest.mark.parametrize("path", ["library._impls", "_library", "_library.custom_ops"])
def test_operators_are_recorded_without_the_lists_of_those_in_python(path: str) -> None:
    CallWrappers(Without(torch, path), lambda name, start, frame: None, None)  # type: ignore[arg-type]


def test_missing_calls_are_noted_once(recorded: Callable[..., Any], unprofiled: None) -> None:
    said = recorded(with_gpu(), steps=1, attribution=1)
    assert said.notes == ["PyTorch lacks torch._VF: calls of it have no line of their own."]


def test_the_program_can_import_a_torch_whose_steps_cannot_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.delattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook")
    collector = Collector(FileNames(tmp_path), Plan(), Paths(tmp_path))
    collector.open()  # torch is there: as if the program had imported it now
    collector.close()
    assert collector.path is None
    cause, consequence = collector.notes
    assert cause.startswith("The run is not counted (ImportError: cannot import name 'register_optimizer_step")
    assert consequence.startswith("No step was seen")


@pytest.mark.parametrize("name", ["_lazy_call", "_tls"])
def test_nothing_is_recorded_where_the_first_use_of_cuda_goes_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(torch.cuda, name)
    collector = Collector(FileNames(tmp_path), Plan(), Paths(tmp_path))
    collector.open()
    collector.close()
    assert collector.path is None
    assert collector.notes[0].startswith("Waits cannot be counted in this PyTorch (") and name in collector.notes[0]


def test_waits_are_neither_counted_nor_guarded_without_the_sync_debug_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in SYNC_DEBUG_MODE:
        monkeypatch.delattr(f"torch.{path}", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    assert "_cuda_set_sync_debug_mode, which this PyTorch lacks" in (unavailable() or "")
    for _ in range(2):  # the first refusal leaves nothing behind
        with pytest.raises(Unsupported, match="cannot see waits"), syncscope.guard("raise"):
            pass


def test_the_recorder_of_lines_refuses_before_it_changes_anything(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"lacks torch\._C\._cuda_set_sync_debug_mode"):
        SiteRecorder(Without(with_gpu(), SYNC_DEBUG_MODE[1]), Stacks(Paths(tmp_path)), Threads())


@pytest.mark.parametrize("has", [(), ("set_code_exec_strategy",), ("set_code_exec_strategy", "_FrameAction")], ids=str)
def test_wrappers_work_where_dynamo_cannot_be_told_of_them(has: tuple[str, ...]) -> None:
    evaluator = SimpleNamespace(**dict.fromkeys(has, lambda *given: 1 / 0))
    owner = SimpleNamespace(call=lambda: 1)
    patches = Patches(SimpleNamespace(_C=SimpleNamespace(_dynamo=SimpleNamespace(eval_frame=evaluator))))
    patches.replace(owner, "call", lambda original: lambda: original() + 1)
    assert owner.call() == 2


def test_the_page_lists_every_private_name_of_pytorch_that_the_collector_uses() -> None:
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    owners = r"\b(?:torch|native|dispatch|overrides|evaluator|func|_C)((?:\.\w+)*?\.(?P<name>_[a-zA-Z]\w*))"
    used: set[str] = set()
    for file in (ROOT / "syncscope" / "collect").rglob("*.py"):
        code = file.read_text(encoding="utf-8")
        used |= {match["name"] for match in re.finditer(owners, code)}
        used |= set(re.findall(r'"(?:\w+\.)*(_[a-zA-Z]\w*)(?:\.\w+)*"', code))
    assert "_cuda_setStream" in used and "_push_mode" in used
    missing = {name for name in used - OF_OTHERS if name not in page} - IN_PROSE
    assert missing == set()
