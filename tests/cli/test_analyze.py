"""``syncscope analyze``: what it prints and writes, and what it refuses."""

import json
import os
import stat
from pathlib import Path

import pytest

from syncscope.schema.report import Report
from tests.cli import traces
from tests.cli.conftest import Run


def test_the_finding_is_printed_with_its_line(run: Run) -> None:
    done = run("analyze", "waiting.json.gz")
    assert done.code == 0
    assert done.err == ""
    assert "SYN102 scalar-read\n" in done.out and "once a step" in done.out
    assert "train.py:21  loss.item()  in train_step" in done.out
    assert "3 of 3 waits have a line" in " ".join(done.out.split())


def test_a_clean_trace_has_no_findings_that_wait(run: Run) -> None:
    done = run("analyze", "clean.json", "--select", "SYN,CPY")
    assert done.code == 0
    assert "no findings" in done.out


def test_json_is_the_report_alone(run: Run) -> None:
    done = run("analyze", "waiting.json.gz", "--format", "json")
    report = Report.from_json(done.out)
    assert report.schema_version == 1
    (finding,) = [finding for finding in report.findings if finding.rule == "SYN102"]
    assert finding.site is not None
    assert (finding.site.file, finding.site.line, finding.count, finding.per_step) == ("train.py", 21, 3, 1.0)


def test_outputs_go_by_ending_or_by_name(run: Run, folder: Path) -> None:
    done = run("analyze", "waiting.json.gz", "-o", "a.json", "-o", "b.txt", "-o", "html=c.out", "--output", "d.html")
    assert done.code == 0
    assert Report.from_json((folder / "a.json").read_bytes()).findings
    assert "train.py:21" in (folder / "b.txt").read_text(encoding="utf-8")
    for name in ("c.out", "d.html"):
        assert (folder / name).read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert sorted(path.name for path in folder.iterdir()) == [
        "a.json", "b.txt", "c.out", "clean.json", "d.html", "waiting.json.gz",
    ]  # fmt: skip


def test_select_and_ignore_take_codes_and_prefixes(run: Run) -> None:
    def rules(*arguments: str) -> set[str]:
        done = run("analyze", "waiting.json.gz", "--format", "json", *arguments)
        return {finding["rule"] for finding in json.loads(done.out)["findings"]}

    everything = rules()
    assert "SYN102" in everything
    assert rules("--select", "SYN") == {rule for rule in everything if rule.startswith("SYN")}
    assert rules("--select", "SYN102,CPY201") == {"SYN102"}
    assert rules("--ignore", "SYN") == {rule for rule in everything if not rule.startswith("SYN")}
    assert rules("--select", "SYN", "--ignore", "SYN102") == set()


def test_a_folder_is_its_traces_and_nothing_else(run: Run, folder: Path) -> None:
    ranks = folder / "run" / "deep"
    ranks.mkdir(parents=True)
    for rank in (10, 2):
        traces.waiting(rank=rank).write(ranks / f"rank{rank}.json.gz")
    (folder / "run" / "report.json").write_text('{"traceEvents": "not ours to read"}')
    (folder / "run" / "labels.json").write_text('{"labels": []}')
    (folder / "run" / "notes.txt").write_text("traceEvents")
    done = run("analyze", "run", "--format", "json")
    assert [info["rank"] for info in json.loads(done.out)["traces"]] == [2, 10]


def test_a_trace_given_twice_is_read_once(run: Run, folder: Path) -> None:
    done = run("analyze", "waiting.json.gz", folder / "waiting.json.gz", "--format", "json")
    assert len(json.loads(done.out)["traces"]) == 1


def test_expected_findings_are_counted_with_their_configuration(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('expect = [{ rule = "SYN102", file = "train.py", reason = "logs" }]\n')
    done = run("analyze", "waiting.json.gz", "--select", "SYN")
    assert "no findings · 1 expected" in done.out


def test_a_selection_makes_no_expectation_stale(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('expect = [{ rule = "SYN102", reason = "logs" }]\n')
    assert "stale" not in run("analyze", "waiting.json.gz", "--select", "CPY").out
    assert "stale" not in run("analyze", "waiting.json.gz", "--ignore", "SYN102").out


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("missing.json", None),
        ("empty.json", b""),
        ("text.json", b"hello"),
        ("other.json", b'{"a": 1}'),
        ("list.json", b"[]"),
        ("broken.json.gz", b"\x1f\x8b\x08\x00garbage"),
    ],
)
def test_a_file_that_is_no_trace_is_one_line_and_exit_3(run: Run, folder: Path, name: str, data: bytes | None) -> None:
    if data is not None:
        (folder / name).write_bytes(data)
    done = run("analyze", name)
    assert done.code == 3
    assert done.out == ""
    assert done.err.startswith(f"error: {name}: ")
    assert done.err.count("\n") == 1


def test_a_folder_without_traces_is_exit_3(run: Run, folder: Path) -> None:
    (folder / "nothing").mkdir()
    done = run("analyze", "nothing")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: nothing: no trace in this folder")


def test_a_broken_file_in_a_folder_is_not_passed_over(run: Run, folder: Path) -> None:
    (folder / "cut.json.gz").write_bytes(b"")
    done = run("analyze", ".")
    assert done.code == 3
    assert "cut.json.gz: " in done.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-o", "report.pdf"], "report.pdf: unknown format"),
        (["-o", "report"], "report: unknown format"),
        (["-o", "pdf=report.html=x"], "pdf=report.html=x: unknown format"),
        (["-o", "none/report.html"], "none/report.html: its folder does not exist"),
        (["-o", "text=."], ".: is a folder"),
        (["-o", "a.html", "-o", "./a.html"], "a.html: is named twice"),
        (["-o", "json=waiting.json.gz"], "waiting.json.gz: would overwrite its input"),
        (["--select", "SYN9"], "SYN9"),
        (["--ignore", "nonsense"], "nonsense"),
        (["--config", "none.toml"], "none.toml: No such file or directory"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(run: Run, folder: Path, arguments: list[str], reason: str) -> None:
    before = (folder / "waiting.json.gz").read_bytes()
    done = run("analyze", "waiting.json.gz", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert reason in done.err
    assert done.err.count("\n") == 1
    assert (folder / "waiting.json.gz").read_bytes() == before
    assert not list(folder.glob("a.html"))


def test_an_unknown_format_is_refused_with_those_that_there_are(run: Run) -> None:
    done = run("analyze", "waiting.json.gz", "--format", "pdf")
    assert done.code == 2
    said = done.err.replace("'", "")  # typer before 0.29 quotes them
    assert "Invalid value for --format: pdf is not one of text, concise, json, html" in said


def test_a_trace_in_a_folder_given_is_not_overwritten(run: Run) -> None:
    done = run("analyze", ".", "-o", "clean.json")
    assert done.code == 2
    assert "clean.json: would overwrite its input" in done.err


def test_an_output_that_cannot_be_written_leaves_what_was_there(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.json").write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    done = run("analyze", "waiting.json.gz", "-o", "report.json")
    assert done.code == 2
    assert done.err == "error: report.json: No space left on device\n"
    assert (folder / "report.json").read_text() == "before"
    assert sorted(path.name for path in folder.iterdir()) == ["clean.json", "report.json", "waiting.json.gz"]


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
def test_a_new_output_has_the_permissions_of_any_new_file(run: Run, folder: Path) -> None:
    (folder / "plain").touch()
    run("analyze", "waiting.json.gz", "-o", "report.json")
    assert stat.S_IMODE((folder / "report.json").stat().st_mode) == stat.S_IMODE((folder / "plain").stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
def test_a_link_to_an_output_stays_a_link(run: Run, folder: Path) -> None:
    (folder / "latest.json").symlink_to("real.json")
    run("analyze", "waiting.json.gz", "-o", "latest.json")
    assert (folder / "latest.json").is_symlink()
    assert Report.from_json((folder / "real.json").read_bytes()).findings


def test_hostile_names_in_a_trace_are_inert(run: Run, folder: Path) -> None:
    name = "\x1b[31m[bold]x\u202e"
    traces.waiting(frame=(name, 21, name, name)).write(folder / "hostile.json")
    done = run("analyze", "hostile.json")
    assert "[bold]x:21  [bold]x  in [bold]x" in done.out
    assert "\x1b" not in done.out


def test_a_hostile_path_is_inert_in_an_error(run: Run) -> None:
    done = run("analyze", "\x1b[31m[bold]none.json")
    assert "[bold]none.json: " in done.err
    assert "\x1b" not in done.err


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX")
def test_a_file_whose_name_is_no_text_can_be_reported_on(run: Run, folder: Path) -> None:
    os.rename("waiting.json.gz", b"bad\xff.json.gz")
    done = run("analyze", Path(os.fsdecode(b"bad\xff.json.gz")), "--format", "json", "-o", "x.sarif", "-o", "x.html")
    assert done.code == 0
    assert json.loads(done.out)["traces"][0]["path"] == "bad?.json.gz"


def test_a_given_bare_step_turns_ranges_into_savings(run: Run, folder: Path) -> None:
    traces.waiting(bare=False).write(folder / "foreign.json")

    def savings(*arguments: str) -> list[object]:
        done = run("analyze", "foreign.json", "--select", "SYN102", "--format", "json", *arguments)
        (finding,) = json.loads(done.out)["findings"]
        return [finding["saving_ms_per_step"], finding["saving_null_why"]]

    saving, why = savings()
    assert saving is None and "--bare-ms" in str(why)
    saving, why = savings("--bare-ms", "0.095")
    assert isinstance(saving, float) and why is None


def test_a_bare_step_of_no_length_is_wrong_usage(run: Run) -> None:
    done = run("analyze", "waiting.json.gz", "--bare-ms", "0")
    assert done.code == 2
    assert "--bare-ms" in done.err


def test_concise_is_a_line_a_finding(run: Run) -> None:
    done = run("analyze", "waiting.json.gz", "--format", "concise")
    assert done.code == 0
    assert done.out.startswith("train.py:21")
    assert ": SYN102 loss.item() reads one value" in done.out.splitlines()[0]


def test_the_page_can_be_printed(run: Run) -> None:
    assert run("analyze", "waiting.json.gz", "--format", "html").out.startswith("<!doctype html>")


def test_the_page_is_opened_on_request_in_a_folder_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run("analyze", "waiting.json.gz").code == run("analyze", "waiting.json.gz", "--open").code == 0
    assert run("report", "waiting.json.gz", "--open", "-o", "page.html").code == 0
    assert [Path(one).name for one in opened] == ["report.html", "page.html"]
    assert opened[1] == (Path.cwd() / "page.html").as_uri()


def test_verbose_shows_what_lies_behind_the_figures(run: Run) -> None:
    assert "savings: of a recorded step" not in run("analyze", "waiting.json.gz").out
    assert "savings: of a recorded step" in " ".join(run("analyze", "waiting.json.gz", "-v").out.split())


@pytest.mark.parametrize(("code", "meant"), [("syn", "SYN"), ("scaler-read", "SYN102"), ("SYN12", "SYN102")])
def test_an_unknown_rule_has_a_suggestion(run: Run, code: str, meant: str) -> None:
    done = run("analyze", "waiting.json.gz", "--select", code)
    assert (done.code, done.err) == (2, f"error: unknown rule '{code}', did you mean {meant}?\n")


def test_a_configuration_is_not_taken_for_a_trace(run: Run, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    done = run("analyze", "pyproject.toml")
    assert done.code == 3
    assert done.err.startswith("error: pyproject.toml: is TOML, not a trace")


def test_help_shows_extras_and_no_type_of_flags(run: Run) -> None:
    assert "'syncscope[hta]'" in " ".join(run("hta", "--help").out.split())
    for command in ([], ["analyze"], ["profile"]):
        assert "bool" not in run(*command, "--help").out


def test_rules_are_completed_after_a_comma_too() -> None:
    from syncscope.cli.options import complete_rules

    assert ("CPY201", "pageable-copy") in list(complete_rules("c"))
    assert [code for code, _ in complete_rules("SYN101,SYN102,ovl302")] == ["SYN101,SYN102,OVL302"]
