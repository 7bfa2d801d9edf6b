"""SARIF's fixes, addresses and limits: a change only where it is certain, and a file that code scanning takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fixtures.labels import CASES, report_of
from syncscope.advice.operations import DISTRIBUTIONS, PYTORCH_CODE
from syncscope.policy import Policy, check_gate
from syncscope.report import sarif
from syncscope.schema import address
from syncscope.schema.findings import Finding, Frame, Site
from syncscope.schema.verdict import Ratchet, Verdict
from tests.report import sample
from tests.report.hostile import HOSTILE, spoiled, spoiled_verdict
from tests.report.test_sarif import result_of, run_of, scalar_read

VALIDATE = next(entry for entry in PYTORCH_CODE if entry.argument == "validate_args=False")
MULTITOOL = "@microsoft/sarif-multitool@5.7.0"


def checked(expression: str, **changed: Any) -> Finding:
    """A read inside the checks of a distribution that the program makes at line 12, column 9."""
    end = changed.pop("end_column", 9 + len(expression))
    site = Site(file="policy.py", line=12, function="act", expression=expression, column=9, end_column=end)
    return scalar_read(**{"site": site, "fix": VALIDATE.sentence, "site_source": "hook", **changed})


def test_a_change_that_is_certain_is_a_fix_at_its_columns() -> None:
    (fix,) = result_of(checked("Normal(mean, std)"), base="src")["fixes"]
    assert fix["description"]["text"] == VALIDATE.sentence
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "src/policy.py", "uriBaseId": "SRCROOT"}
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 12, "startColumn": 9, "endLine": 12, "endColumn": 26},
            "insertedContent": {"text": "Normal(mean, std, validate_args=False)"},
        }
    ]


@pytest.mark.parametrize(
    "finding",
    [
        checked("dist.log_prob(action)"),  # it checks too, and takes no such argument
        checked("Normal(mean, std, validate_args=True)"),
        checked("Normal(mean, std, True)"),
        checked("Normal(mean, std, None)"),
        checked("Normal(*given)"),
        checked("Normal(mean, **given)"),
        checked("Independent(Normal(m, s) for m, s in pairs)"),
        checked("make(mean)"),
        checked("Normal(mean, std)", site_source="stack"),
        checked("Normal(mean, std)", end_column=40),  # not what stands there
        checked("Normal(mean, std)", end_column=None),
        checked("Normal(mean, '\u202e')"),
        checked("Normal(mean, std)", fix="Keep it on the device."),
        scalar_read(),
    ],
    ids=lambda finding: finding.site.expression,
)
def test_what_is_not_certain_has_no_fix(finding: Finding) -> None:
    assert "fixes" not in result_of(finding)


@pytest.mark.parametrize("line", ["a = Normal(mean, std,)", "é, b = Normal(m, s ), 1", "\tNormal(loc=m, scale=s)"])
def test_a_fix_leaves_a_line_that_python_reads(line: str) -> None:
    start = line.index("Normal")
    expression = line[start : line.index(")") + 1]
    (fix,) = result_of(checked(expression))["fixes"]
    (replacement,) = fix["artifactChanges"][0]["replacements"]
    fixed = line[:start] + replacement["insertedContent"]["text"] + line[start + len(expression) :]
    compile(fixed.strip(), "policy.py", "exec")


def test_a_file_outside_of_the_repository_is_not_changed() -> None:
    finding = checked("Normal(mean, std)")
    assert finding.site is not None
    library = msgspec.structs.replace(finding.site, file="<site-packages>/lib/policy.py")
    assert "fixes" not in result_of(msgspec.structs.replace(finding, site=library))


def test_every_distribution_that_is_named_takes_the_argument() -> None:
    distributions = pytest.importorskip("torch.distributions", reason="asks PyTorch's classes")
    for name in sorted(DISTRIBUTIONS):
        assert "validate_args" in getattr(distributions, name).__init__.__annotations__ or "validate_args" in (
            getattr(distributions, name).__init__.__code__.co_varnames
        ), name


def test_the_tool_and_its_rules_have_addresses() -> None:
    driver = run_of(sample.report())["tool"]["driver"]
    assert driver["informationUri"] == address.HOME
    assert {rule["helpUri"] for rule in driver["rules"]} == {address.RULES}
    assert all(rule["help"]["markdown"].startswith(rule["shortDescription"]["text"]) for rule in driver["rules"])


def test_more_findings_than_code_scanning_takes_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    found = [scalar_read(fingerprint=str(n), site=Site(file=f"{n}.py", line=1, function="f")) for n in range(5)]
    run = run_of(sample.report(found=found))
    assert len(run["results"]) == 2
    last = run["invocations"][0]["toolExecutionNotifications"][-1]
    assert last["message"]["text"] == "3 more findings are not in this file, which holds the first 2"
    assert last["descriptor"]["id"] == "left-out"


def test_that_the_recording_is_not_the_baselines_is_notified() -> None:
    ratchet = Ratchet(
        path="b.json", outcome="held", covered=0, fixed=0, differs=("it is of 9 steps, and this shows 1",)
    )
    notices = run_of(sample.report(), Verdict(gate=(), baseline=ratchet))["invocations"][0][
        "toolExecutionNotifications"
    ]
    assert "Not what the baseline was written from: it is of 9 steps, and this shows 1" in [
        notice["message"]["text"] for notice in notices
    ]


def test_a_deep_recursion_keeps_its_innermost_calls() -> None:
    chain = tuple(Frame(file="train.py", line=number, function="down") for number in range(1, 3000))
    related = result_of(scalar_read(chain=chain))["relatedLocations"]
    assert len(related) < 100
    assert related[-1]["physicalLocation"]["region"]["startLine"] == 2998


@pytest.fixture(scope="session")
def multitool(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Microsoft's validator, from npm."""
    if sys.platform != "linux" or shutil.which("npm") is None:
        pytest.skip("no npm to install @microsoft/sarif-multitool with")
    folder = tmp_path_factory.mktemp("multitool")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", MULTITOOL]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {MULTITOOL} in two minutes")
    if done.returncode:
        pytest.skip(f"npm does not install {MULTITOOL}: {(done.stderr or done.stdout).strip()[-200:]}")
    return [str(folder / "node_modules" / ".bin" / "sarif-multitool")]


def logs() -> dict[str, str]:
    """A log of every kind: real, hostile, with a fix, against a verdict."""
    made = {}
    for case in CASES[:12]:
        report = report_of(case, "windows")
        made[case] = sarif.render(report, check_gate(report, Policy()))
    for number, (name, text) in enumerate(HOSTILE.items()):
        if text:
            report = sample.report()
            made[f"hostile{number}-{name}"] = sarif.render(spoiled(report, text), spoiled_verdict(report, text))
    made["fix"] = sarif.render(sample.report(found=[checked("Normal(mean, std)")]), base="src")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Sarif", "Ghas"])
def test_microsofts_validator_has_nothing_to_say(multitool: list[str], tmp_path: Path, kind: str) -> None:
    """By the rules of SARIF, and by those of GitHub's code scanning."""
    for name, text in logs().items():
        (tmp_path / f"{''.join(c if c.isalnum() else '-' for c in name)}.sarif").write_text(text, encoding="utf-8")
    command = [*multitool, "validate", str(tmp_path / "*.sarif"), "--rule-kind", kind, "--output", "v.json"]
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = json.loads((tmp_path / "v.json").read_text(encoding="utf-8-sig"))["runs"]
    said = [one for run in runs for one in run["results"] if one.get("level", "warning") in ("warning", "error")]
    assert [(one["ruleId"], one["message"]) for one in said] == []
