"""The public API: all there, and nothing heavy before it is used."""

import importlib.metadata
import subprocess
import sys

import pytest

import syncscope

HEAVY = {"pandas", "numpy", "plotly", "torch", "msgspec", "typer", "rich"}


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after running code."""
    script = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_is_light() -> None:
    assert loaded_after("import syncscope").isdisjoint(HEAVY)


def test_saying_that_a_step_ended_loads_no_analysis() -> None:
    assert loaded_after("import syncscope\nsyncscope.step()").isdisjoint({"pandas", "numpy", "plotly", "torch"})


def test_what_runs_before_the_program_loads_no_analysis() -> None:
    asked = "import syncscope.cli.profile, syncscope.collect.collector, syncscope.session\nimport syncscope.policy"
    assert loaded_after(asked).isdisjoint({"pandas", "numpy", "plotly", "torch"})


def test_analysis_loads_neither_torch_nor_pandas() -> None:
    modules = loaded_after("import syncscope\nsyncscope.analyze, syncscope.load\nimport syncscope.report.html")
    assert "numpy" in modules
    assert modules.isdisjoint({"torch", "pandas"})


def test_the_vocabulary_alone_loads_no_pandas() -> None:
    assert loaded_after("from syncscope import Finding, Frame, Report, Site").isdisjoint({"pandas", "numpy"})


@pytest.mark.parametrize("name", syncscope.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(syncscope, name) is not None
    assert name in dir(syncscope)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        syncscope.analyse  # noqa: B018


def test_the_version_is_that_of_the_installed_package() -> None:
    assert importlib.metadata.version("syncscope") == syncscope.__version__
