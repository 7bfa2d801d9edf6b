"""The functions by whose frames waits of the compiler are told are those of the PyTorch that is here."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from syncscope.schema.preparation import COMPILING, PASSES, compiles

torch: Any = pytest.importorskip("torch", reason="the names are PyTorch's")
PACKAGES = Path(torch.__file__).parents[1]
PAGE = (Path(__file__).parents[3] / "docs" / "pytorch.md").read_text(encoding="utf-8")
OURS = {file: names for file, names in COMPILING.items() if file.startswith("torch/")}
NEWER = {
    "_compile_fx_main",
    "compile_fx_forward",
    "compile_fx_backward",
    "_compile_fx_inner",
    "_combo_sequential_autotune",
}
"""Not in all versions: their callers or what they call tell the same."""


@pytest.mark.parametrize("file", OURS)
def test_they_are_there(file: str) -> None:
    source = (PACKAGES / file).read_text(encoding="utf-8")
    assert set(OURS[file]) - NEWER <= set(re.findall(r"def (\w+)\(", source))
    assert (PACKAGES / PASSES).is_dir()


@pytest.mark.parametrize("name", sorted({name for names in COMPILING.values() for name in names}))
def test_the_page_of_what_pytorch_does_not_promise_has_them(name: str) -> None:
    assert f"`{name}`" in PAGE


def frames() -> list[tuple[str, str]]:
    """The files and functions around the caller of the caller, out to this file."""
    frame: FrameType | None = sys._getframe(2)
    found = []
    while frame is not None and frame.f_code.co_filename != __file__:
        found.append((frame.f_code.co_filename.replace(f"{PACKAGES}/", "<site-packages>/"), frame.f_code.co_name))
        frame = frame.f_back
    return found


def test_a_frame_of_a_real_compilation_tells_it_and_none_of_a_call_does() -> None:
    seen: dict[str, list[tuple[str, str]]] = {}
    names: dict[str, Any] = {"see": lambda kind: seen.setdefault(kind, frames())}
    source = "def backend(graph, inputs):\n    see('compiles')\n    return run\n\ndef run(*given):\n    see('runs')\n"
    source += "    return given[-1:]"
    exec(compile(source, f"{PACKAGES}/torch/_dynamo/backends/made.py", "exec"), names)
    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, backend=names["backend"])(torch.ones(2))
    torch._dynamo.reset()
    assert compiles(seen["compiles"])
    assert seen["runs"] and not compiles(seen["runs"])
