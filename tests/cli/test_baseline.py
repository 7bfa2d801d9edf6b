"""``syncscope check --baseline``: written once, tightened when asked, never loosened, never half."""

import json
from pathlib import Path

import pytest

from tests.cli import traces
from tests.cli.conftest import Run

FILE = "syncscope-baseline.json"
NEW = ("train.py", 40, "evaluate", "accuracy.item()")
ARGUMENTS = ("check", "waiting.json.gz", "--baseline", FILE)


@pytest.fixture
def adopted(run: Run, folder: Path) -> bytes:
    """The baseline of the trace that waits."""
    assert run(*ARGUMENTS).code == 0
    return (folder / FILE).read_bytes()


def test_the_first_run_writes_the_baseline_and_says_so(run: Run, folder: Path) -> None:
    done = run(*ARGUMENTS)
    assert done.code == 0
    assert f"baseline {FILE} written: 1 finding may stay, what is new fails; commit it" in done.out
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
    assert json.loads((folder / FILE).read_text()) == {"format": 1, "findings": {}}
    assert run(*ARGUMENTS).code == 1


def test_with_nothing_to_tighten_the_file_is_not_written_again(run: Run, folder: Path, adopted: bytes) -> None:
    spaced = adopted.replace(b"\n", b"\r\n")
    (folder / FILE).write_bytes(spaced)
    assert run(*ARGUMENTS, "--update").code == 0
    assert (folder / FILE).read_bytes() == spaced


@pytest.mark.parametrize("data", ["", "{", '{"format": 99, "findings": {}}', '{"format": 1, "findings": 3}'])
def test_a_corrupt_or_newer_file_is_3_and_stays(data: str, run: Run, folder: Path) -> None:
    (folder / FILE).write_text(data)
    done = run(*ARGUMENTS, "--update")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {FILE}: ") and done.err.count("\n") == 1
    assert (folder / FILE).read_text() == data


def test_nothing_is_written_where_a_gated_rule_could_not_be_checked(run: Run, folder: Path) -> None:
    traces.blind().write(folder / "blind.json")
    done = run("check", "blind.json", "--baseline", FILE)
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
        (("--baseline", "missing/baseline.json"), "its folder does not exist"),
        (("--baseline", FILE, "-o", FILE), "would overwrite its input"),
    ],
)
def test_wrong_usage_is_2(arguments: tuple[str, ...], said: str, run: Run, folder: Path) -> None:
    done = run("check", "waiting.json.gz", *arguments)
    assert done.code == 2
    assert said in done.err
    assert not (folder / FILE).exists()
