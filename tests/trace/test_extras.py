"""A missing library of an extra is one line that says what to install."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from syncscope.trace.extras import KNOWN_AS, LIBRARIES, MissingExtra, require

PROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"


@pytest.mark.parametrize(("extra", "missing"), [(extra, one) for extra, all in LIBRARIES.items() for one in all])
def test_the_message_names_the_library_and_the_extra(extra: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES[extra]:
        monkeypatch.setitem(sys.modules, library, ModuleType(library))
    package = missing.partition(".")[0]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra) as caught:
        require(extra)
    assert str(caught.value) == f"{KNOWN_AS.get(package, package)} is not installed: pip install 'syncscope[{extra}]'"


def test_the_error_passes_between_processes() -> None:
    error = pickle.loads(pickle.dumps(MissingExtra("pyarrow is not installed")))
    assert isinstance(error, MissingExtra)
    assert str(error) == "pyarrow is not installed"


def test_a_library_that_is_broken_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("raise ImportError('libfoo.so: too old\\nmore')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(LIBRARIES, "arrow", ("broken_library",))
    with pytest.raises(MissingExtra) as caught:
        require("arrow")
    assert str(caught.value) == ("the extra arrow cannot be used (libfoo.so: too old): pip install 'syncscope[arrow]'")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs tomllib")
def test_every_extra_is_one_of_the_project() -> None:
    import tomllib

    known = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(LIBRARIES) <= set(known)
