"""``syncscope check --baseline``: written once, tightened when asked, never loosened, never half."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli import traces
from tests.cli.conftest import Run

FILE = "syncscope-baseline.json"
NEW = ("train.py", 40, "evaluate", "accuracy.item()")
WRITE = "--write-baseline"
ARGUMENTS = ("check", "waiting.json.gz", "--baseline", FILE)


@pytest.fixture
def adopted(run: Run, folder: Path) -> bytes:
    """The baseline of the trace that waits."""
    assert run(*ARGUMENTS, WRITE).code == 0
    return (folder / FILE).read_bytes()


def test_the_baseline_is_written_when_asked_and_the_check_says_so(run: Run, folder: Path) -> None:
    done = run(*ARGUMENTS, WRITE)
    assert done.code == 0
    assert f"baseline {FILE} written: 1 finding may stay, new ones fail; commit this file" in done.out
    (entry,) = json.loads((folder / FILE).read_text())["findings"].values()
    assert entry == {
        "rule": "SYN102",
        "file": "train.py",
        "function": "train_step",
        "expression": "loss.item()",
        "per_step": 1,
    }


def test_what_was_there_passes_on_another_line(run: Run, folder: Path, adopted: bytes) -> None:
    traces.waiting(frame=("train.py", 77, "train_step", "loss.item()")).write(folder / "waiting.json.gz")
    done = run(*ARGUMENTS)
    assert done.code == 0
    assert done.out.endswith(" · 1 in the baseline\n")


@pytest.mark.parametrize("update", [(), ("--update",)])
def test_worse_fails_and_leaves_the_file_untouched(
    update: tuple[str, ...], run: Run, folder: Path, adopted: bytes
) -> None:
    traces.waiting(frame=NEW).write(folder / "new.json")
    done = run("check", "new.json", "--baseline", FILE, *update)
    assert done.code == 1
    assert "train.py:40  accuracy.item()  in evaluate" in done.out
    assert (folder / FILE).read_bytes() == adopted
    assert ("not touched" in done.out) == bool(update)


def test_a_count_that_grows_is_reported_at_its_line(run: Run, folder: Path, adopted: bytes) -> None:
    (folder / FILE).write_bytes(adopted.replace(b'"per_step": 1', b'"per_step": 0.5'))
    done = run(*ARGUMENTS)
    assert done.code == 1
    assert "in train_step\n  baseline 0.5, now 1 a step\n" in done.out


def test_better_passes_and_is_tightened_only_with_update(run: Run, folder: Path, adopted: bytes) -> None:
    done = run("check", "clean.json", "--baseline", FILE)
    assert done.code == 0
    assert f"baseline {FILE}: 1 entry fixed; run with --update to tighten it" in done.out
    assert (folder / FILE).read_bytes() == adopted
    done = run("check", "clean.json", "--baseline", FILE, "--update")
    assert done.code == 0
    assert f"baseline {FILE} tightened: 1 entry fixed, 0 left" in done.out
    assert "no longer in the baseline: SYN102 train.py loss.item() in train_step, 1 a step" in done.out
    assert json.loads((folder / FILE).read_text())["findings"] == {}
    assert run(*ARGUMENTS).code == 1


def test_with_nothing_to_tighten_the_file_is_not_written_again(run: Run, folder: Path, adopted: bytes) -> None:
    spaced = adopted.replace(b"\n", b"\r\n")
    (folder / FILE).write_bytes(spaced)
    assert run(*ARGUMENTS, "--update").code == 0
    assert (folder / FILE).read_bytes() == spaced


def test_a_baseline_that_is_there_is_not_written_again(run: Run, folder: Path, adopted: bytes) -> None:
    traces.waiting(frame=NEW).write(folder / "waiting.json.gz")
    done = run(*ARGUMENTS, WRITE)
    assert (done.code, done.err) == (
        2,
        f"error: {FILE}: exists; --update removes what is fixed, and nothing adds to it\n",
    )
    assert (folder / FILE).read_bytes() == adopted


def test_a_merge_that_is_not_resolved_is_2_and_says_so(run: Run, folder: Path, adopted: bytes) -> None:
    text = adopted.decode().splitlines(keepends=True)
    conflict = ["<<<<<<< ours\n", *text[2:3], "=======\n", *text[2:3], ">>>>>>> theirs\n"]
    (folder / FILE).write_text("".join([*text[:2], *conflict, *text[3:]]))
    done = run(*ARGUMENTS)
    assert done.code == 2
    assert done.err == f"error: {FILE}: has the marks of a merge that is not resolved\n"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_2_and_stays(run: Run, folder: Path, adopted: bytes) -> None:
    (folder / FILE).chmod(0o444)
    done = run("check", "clean.json", "--baseline", FILE, "--update")
    assert done.code == 2
    assert (folder / FILE).read_bytes() == adopted


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is denied to root")
@pytest.mark.parametrize("option", ["--baseline", "--config"])
def test_a_file_that_may_not_be_read_is_2_and_one_line(run: Run, folder: Path, option: str) -> None:
    (folder / "closed").touch(0o000)
    done = run("check", "clean.json", option, "closed")
    assert (done.code, done.err) == (2, "error: closed: Permission denied\n")


def test_what_another_run_tightened_meanwhile_is_not_undone(
    run: Run, folder: Path, adopted: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two checks at once: the other one writes between this one's reading and its writing."""
    import syncscope.policy as policy

    check = policy.check_baseline
    other = b'{"format": 1, "findings": {}}'

    def while_another_runs(*arguments: Any) -> Any:
        (folder / FILE).write_bytes(other)
        return check(*arguments)

    monkeypatch.setattr(policy, "check_baseline", while_another_runs)
    done = run("check", "clean.json", "--baseline", FILE, "--update")
    assert done.code == 2
    assert "was changed by another run meanwhile" in done.err
    assert (folder / FILE).read_bytes() == other


@pytest.mark.parametrize("data", ["", "{", '{"format": 99, "findings": {}}', '{"format": 1, "findings": 3}'])
def test_a_corrupt_or_newer_file_is_2_and_stays(data: str, run: Run, folder: Path) -> None:
    (folder / FILE).write_text(data)
    done = run(*ARGUMENTS, "--update")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {FILE}: ") and done.err.count("\n") == 1
    assert (folder / FILE).read_text() == data


def test_nothing_is_written_where_a_gated_rule_could_not_be_checked(run: Run, folder: Path) -> None:
    traces.blind().write(folder / "blind.json")
    done = run("check", "blind.json", "--baseline", FILE, WRITE)
    assert done.code == 3
    assert "not written: not every gated rule could be checked" in done.out
    assert not (folder / FILE).exists()


def test_what_the_baseline_covers_has_its_status_in_every_output(run: Run, folder: Path, adopted: bytes) -> None:
    done = run(*ARGUMENTS, "--format", "json", "-o", "report.json")
    for text in (done.out, (folder / "report.json").read_text()):
        statuses = {finding["rule"]: finding["status"] for finding in json.loads(text)["findings"]}
        assert statuses["SYN102"] == "baseline"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--update",), "--update needs --baseline"),
        ((WRITE,), "--write-baseline needs --baseline"),
        (("--baseline", FILE, WRITE, "--update"), "exclude each other"),
        (("--baseline", FILE), "there is no such baseline; --write-baseline writes it"),
        (("--baseline", FILE, "--update"), "there is no such baseline"),
        (("--baseline", "missing/baseline.json"), "its folder does not exist"),
        (("--baseline", FILE, WRITE, "-o", FILE), "would overwrite its input"),
    ],
)
def test_wrong_usage_is_2(arguments: tuple[str, ...], said: str, run: Run, folder: Path) -> None:
    done = run("check", "waiting.json.gz", *arguments)
    assert done.code == 2
    assert said in done.err
    assert not (folder / FILE).exists()


def test_a_recording_of_far_fewer_steps_than_the_baseline_says_so_and_takes_nothing_out(run: Run, folder: Path) -> None:
    traces.clean(steps=20).write(folder / "long.json")
    assert run("check", "long.json", "--baseline", FILE, WRITE).code == 0
    written = (folder / FILE).read_bytes()
    differs = "it is of 20 steps, and this shows 3"
    done = run("check", "clean.json", "--baseline", FILE, "--update")
    assert done.code == 0
    assert f"not what baseline {FILE} was written from: {differs}" in done.out
    assert (folder / FILE).read_bytes() == written
    annotated = run("check", "clean.json", "--baseline", FILE, "--format", "github")
    assert f"::warning title=other recordings than those of the baseline::{differs}\n" in annotated.out


def test_the_configuration_demands_steps(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text("min_steps = 20\n")
    done = run("check", "clean.json")
    assert done.code == 3
    assert "the recording shows 3 steps, and min_steps is 20" in " ".join(done.out.split())
    (folder / "syncscope.toml").write_text("min_steps = 0\n")
    assert run("check", "clean.json").code == 2
