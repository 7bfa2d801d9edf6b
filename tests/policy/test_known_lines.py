from __future__ import annotations

from pathlib import Path

import pytest

from syncscope.policy import BaselineError, ConfigError
from syncscope.policy.known_lines import read_known_lines

BASELINE = """{"format": 1, "findings": {
  "a": {"rule": "SYN102", "file": "train.py", "function": "step", "expression": "loss.item()", "per_step": 1},
  "b": {"rule": "SYN105", "op": "cudaDeviceSynchronize", "per_step": 1}}}"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "baseline.json").write_text(BASELINE)
    (tmp_path / "syncscope.toml").write_text(
        'expect = [\n  { rule = "SYN102", file = "log.py", function = "write_*", reason = "the log" },\n'
        '  { rule = "SYN105", reason = "all of them" },\n]\n'
    )
    (tmp_path / "eval.py").write_text("x.item()\nx.item()  # syncscope: expect SYN102 -- once\n")
    return tmp_path


def test_an_expression_of_the_baseline_is_known_under_any_rule_and_at_any_line(project: Path) -> None:
    known = read_known_lines(project / "baseline.json", project)
    assert ("train.py", 99, "step", "loss.item()") in known
    assert ("train.py", 99, "step", " (loss.item( )) ") in known
    assert ("train.py", 99, "other", "loss.item()") not in known
    assert ("train.py", 99, "step", "x.item()") not in known


def test_what_the_configuration_expects_at_a_place_is_known(project: Path) -> None:
    known = read_known_lines(project / "baseline.json", project)
    assert ("log.py", 1, "write_loss", "x.item()") in known
    assert ("log.py", 1, "read", "x.item()") not in known


def test_a_comment_makes_its_own_line_known(project: Path) -> None:
    known = read_known_lines(project / "baseline.json", project)
    assert ("eval.py", 2, "f", "x.item()") in known
    assert ("eval.py", 1, "f", "x.item()") not in known


def test_a_baseline_that_is_not_written_yet_knows_nothing(project: Path) -> None:
    known = read_known_lines(project / "new.json", project)
    assert ("train.py", 1, "step", "loss.item()") not in known


def test_what_cannot_be_read_is_said(project: Path) -> None:
    with pytest.raises(BaselineError):
        read_known_lines(project / "nowhere" / "baseline.json", project)
    with pytest.raises(BaselineError):
        read_known_lines(project / "eval.py", project)
    (project / "syncscope.toml").write_text("gates = 1")
    with pytest.raises(ConfigError):
        read_known_lines(project / "baseline.json", project)
