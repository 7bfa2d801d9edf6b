"""What the guides for contributors show is what the code does."""

from __future__ import annotations

import gzip
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from rich.console import Console

from fixtures.labels import MODES, Label, labels_of, recordings, score_report
from syncscope import rules
from syncscope.analysis.analyze import analyze
from syncscope.report import text
from syncscope.schema.counting import PhaseKind
from syncscope.schema.run import Run
from tests.report import sample_run

ROOT = Path(__file__).parent.parent
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDING = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
PATHS = re.compile(r"`((?:syncscope|tests|fixtures|benchmarks|docs|notebooks)/[\w./-]+)`")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_code_of_the_architecture_prints_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert len(examples) == len(blocks(ARCHITECTURE, "python")) >= 7
    for code, shown in examples:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown


def test_the_event_of_the_architecture_is_in_the_trace() -> None:
    (event,) = blocks(ARCHITECTURE, "json")
    trace = gzip.decompress((ROOT / "fixtures/traces/item_logging/trace.json.gz").read_bytes()).decode()
    assert " ".join(event.split()) in " ".join(trace.split())


def test_the_run_of_the_page_on_recording_is_one_of_a_report() -> None:
    (shown,) = blocks(RECORDING, "json")
    run = msgspec.json.decode(shown, type=Run)
    assert json.loads(shown) == json.loads(msgspec.json.encode(run))
    assert sum(phase.share for phase in run.phases) == pytest.approx(1)


def test_the_output_of_the_page_on_recording_is_what_a_terminal_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = blocks(RECORDING, "text")
    buffer = io.StringIO()
    text.render(sample_run.of_fixture(), Console(file=buffer, width=100, color_system=None))
    assert example in "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def test_the_output_of_the_readme_is_what_a_terminal_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = [block for block in blocks(README, "text") if block.startswith("step ")]
    buffer = io.StringIO()
    report = analyze("fixtures/traces/item_logging/trace.json.gz")
    text.render(report, Console(file=buffer, width=100, color_system=None))
    assert "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) == example.rstrip("\n")


def test_the_page_on_recording_lists_every_phase() -> None:
    listed = re.findall(r"^\| `([\w ]+)` \|", RECORDING.split("## Phases")[1].split("##")[0], re.MULTILINE)
    assert tuple(listed) == get_args(PhaseKind)


def test_the_worked_example_of_a_rule_works(monkeypatch: pytest.MonkeyPatch) -> None:
    written, tested = blocks(CONTRIBUTING, "python")
    (labels,) = blocks(CONTRIBUTING, "json")
    module: dict[str, Any] = {"__name__": "syncscope.rules.norm_check"}
    exec(written, module)
    rule = module["NormCheck"]()
    monkeypatch.setattr(rules, "RULES", (rule, *rules.RULES))
    monkeypatch.setitem(rules.BY_CODE, rule.code, rule)
    tests: dict[str, Any] = {}
    exec(tested, tests)
    cases = [test for name, test in tests.items() if name.startswith("test_")]
    assert len(cases) == 2
    for case in cases:
        case()
    expected = {
        "clip_nonfinite": msgspec.convert(json.loads(labels)["labels"], list[Label]),
        "clip_norm": labels_of("clip_norm"),
    }
    for name, wanted in expected.items():
        for mode in MODES:
            assert score_report(wanted, analyze(*recordings(name, mode))).short == []


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=["architecture", "contributing"])
def test_paths_in_the_guides_exist(page: str) -> None:
    paths = set(PATHS.findall(page))
    assert len(paths) > 5
    missing = sorted(path for path in paths if not (ROOT / path).exists() and "norm_check" not in path)
    assert missing == []


def test_every_promise_is_held_by_a_test_and_its_programs() -> None:
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "collect").rglob("test_*.py"))
    programs = {path.stem for path in (ROOT / "tests" / "collect" / "life" / "programs").iterdir()}
    for _, _, used, tests in rows:
        named = re.findall(r"`(\w+)`", tests)
        assert named and all(f"def {name}(" in source for name in named), tests
        assert set(re.findall(r"`(\w+)`", used)) <= programs, used


def test_an_optimizer_is_spelled_as_in_pytorch() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.json"), *ROOT.glob("syncscope/**/*.json")]
    said = {page.name: page.read_text(encoding="utf-8") for page in pages}
    said |= {rule.code: " ".join(entry.sentence for entry in rule.advice) + rule.doc for rule in rules.RULES}
    assert [where for where, text in said.items() if re.search("optimiser", text, re.IGNORECASE)] == []
