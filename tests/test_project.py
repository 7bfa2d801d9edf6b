"""What the project says of itself and what it does are the same."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from syncscope import __version__
from syncscope.cli import app
from syncscope.policy import default_gate
from syncscope.rules import RULES, find
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
RULES_PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def shell_blocks() -> list[str]:
    return [block.strip() for block in re.findall(r"```(?:sh|console)\n(.*?)```", README, re.DOTALL)]


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 150


def test_ci_ends_with_the_test_command_of_the_readme() -> None:
    command = shell_blocks()[1]
    assert "./check" in command
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().splitlines()[-1] == command


def test_the_readme_runs_the_main_job_on_a_bundled_trace() -> None:
    command = shell_blocks()[0]
    trace = re.search(r"fixtures/\S+", command)
    assert trace is not None
    assert (ROOT / trace[0]).is_file()


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
@pytest.mark.parametrize("script", ["check", ".ci/run"])
def test_scripts_are_executable_and_parse(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["sh", "-n", ROOT / script], check=True)


def test_what_is_recorded_stays_small() -> None:
    recorded = [*(ROOT / "fixtures").rglob("*.json.gz"), *(ROOT / "benchmarks").rglob("*.json.gz")]
    assert sum(file.stat().st_size for file in recorded) < 25e6


def test_nothing_but_their_own_tests_imports_the_benchmarks() -> None:
    places = [*(ROOT / "fixtures").rglob("*.py"), *(ROOT / "docs").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    own = ROOT / "tests" / "benchmarks"
    importing = re.compile(r"^\s*(?:from|import)\s+benchmarks\b", re.MULTILINE)
    assert any(importing.search(file.read_text(encoding="utf-8")) for file in own.glob("*.py"))
    others = [file for file in places if own not in file.parents]
    assert [str(file) for file in others if importing.search(file.read_text(encoding="utf-8"))] == []


def rules_table() -> list[list[str]]:
    """The cells of each row of the table of rules."""
    rows = re.findall(r"^\| ([A-Z]{3}\d{3} \|.*)\|$", RULES_PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.split(" | ")] for row in rows]


def test_the_table_of_rules_is_the_list_of_rules() -> None:
    rows = [(row[0], row[1]) for row in rules_table()]
    assert rows == [(rule.code, rule.name) for rule in sorted(RULES, key=lambda rule: rule.code[3:])]


def codes_in_prose(text: str) -> list[str]:
    """``SYN101–SYN103, SYN105 and CPY201`` as the codes that it stands for."""
    codes = []
    for first, last in re.findall(r"([A-Z]{3}\d{3})(?:[–-]([A-Z]{3}\d{3}))?", text):
        codes += [f"{first[:3]}{number}" for number in range(int(first[3:]), int((last or first)[3:]) + 1)]
    return codes


def test_the_page_on_configuration_names_the_default_gate_of_the_rules() -> None:
    said = re.search(r"gate = .*# default: (.*)", CONFIGURATION)
    assert said and codes_in_prose(said[1]) == list(default_gate())


@pytest.mark.parametrize(("column", "ops"), [(4, True), (5, False)])
def test_the_table_of_rules_says_what_is_not_checked_in_foreign_traces(column: int, ops: bool) -> None:
    trace = TraceBuilder().steps(0, 100).launch("gemm", call=(5, 5), runs=(12, 50))
    if ops:
        trace.op("aten::item", 20, 55)
        # As PyTorch marks what it compiles, where it does.
        trace.op("_compile.compile_inner (dynamo_timed)", 1, 1).op("Torch-Compiled Region: 0/0", 3, 8)
    trace.copy("DtoH", call=(22, 4), runs=(63, 2), memory="pinned", bytes=4).stream_sync(27, 45)
    _, not_checked = find(Timeline(trace.trace()))
    said = {row[0] for row in rules_table() if row[column] == "not checked"}
    assert {entry.rule for entry in not_checked} == said


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d[^]]*)\]", changelog, re.MULTILINE)[0] == __version__


def documented_commands() -> list[list[str]]:
    """The words of every ``syncscope …`` line in the documentation's blocks."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
    blocks = [block for text in texts for block in re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL)]
    lines = [line.partition("#")[0] for block in blocks for line in block.splitlines()]
    found = [
        re.search(r"(?:^|/)syncscope ((?:profile|watch|analyze|check|report|rules|diff|hta)\b.*)", line)
        for line in lines
    ]
    return [match[1].split() for match in found if match]


@pytest.mark.parametrize("words", documented_commands(), ids=" ".join)
def test_documented_commands_have_the_options_they_name(words: list[str]) -> None:
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, words[0])
    known = {option for parameter in command.params for option in parameter.opts}
    script = next((number for number, word in enumerate(words) if word.endswith(".py")), len(words))
    if "-m" in words[:script]:
        script = words.index("-m") + 1
    assert {word for word in words[:script] if word.startswith("-")} <= known


def test_the_documented_layers_are_those_of_the_import_contract() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = next(text for text in re.findall(r"```text\n(.*?)```", contributing, re.DOTALL) if "__main__" in text)
    documented = [re.split(r" {2,}", line)[0] for line in block.splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    assert documented == next(contract["layers"] for contract in contracts if contract["type"] == "layers")


def test_links_in_the_documentation_lead_somewhere() -> None:
    others = (ROOT / "CONTRIBUTING.md", *sorted((ROOT / "benchmarks").glob("*/README.md")))
    for file in (ROOT / "README.md", *others, *sorted((ROOT / "docs").glob("*.md"))):
        for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", file.read_text(encoding="utf-8")):
            page = file.parent / target if target else file
            assert page.exists(), f"{file.name}: {target}"
            assert not anchor or anchor in anchors_of(page), f"{file.name}: {target}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
