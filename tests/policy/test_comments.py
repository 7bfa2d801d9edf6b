"""Comments that expect what is found on their line: what counts as one, what it covers, and when it is stale."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.policy import ConfigError, Policy, apply
from syncscope.policy.comments import find_comments
from syncscope.schema.findings import Finding, SiteSource
from syncscope.schema.report import NotChecked, Report
from tests.report import sample

READ = "    total += loss.item()"


def at(line: int, rule: str = "SYN102", file: str = "train.py", source: SiteSource = "hook") -> Finding:
    """An unexpected finding at a line."""
    finding = sample.finding(rule, "scalar-read", line, "loss.item()")
    assert finding.site is not None
    site = msgspec.structs.replace(finding.site, file=file)
    return msgspec.structs.replace(finding, site=site, site_source=source)


def report(*findings: Finding, **info: Any) -> Report:
    """A report of one of our recordings."""
    trace = msgspec.structs.replace(sample.trace_info(), **{"files": ("train.py",), **info})
    return msgspec.structs.replace(sample.report([trace], findings), stale=(), not_checked=())


def judged(source: str, found: Report, folder: Path, name: str = "train.py") -> Report:
    (folder / name).write_text(source, encoding="utf-8")
    return apply(found, Policy(folders=(folder,)))


def test_a_comment_expects_its_own_line(tmp_path: Path) -> None:
    source = f"for batch in loader:\n{READ}  # syncscope: expect SYN102 -- one read an epoch\n{READ}\n"
    found = judged(source, report(at(2), at(3)), tmp_path)
    status = {finding.site.line: (finding.status, finding.reason) for finding in found.findings if finding.site}
    assert status == {2: ("expected", "one read an epoch"), 3: ("unexpected", None)}
    assert found.stale == ()


@pytest.mark.parametrize(
    ("comment", "rules", "reason"),
    [
        ("# syncscope: expect SYN102 -- logs", ["SYN102"], "logs"),
        ("#syncscope:expect SYN102--logs", ["SYN102"], "logs"),
        ("# syncscope: expect SYN102, CPY201 -- logs", ["SYN102", "CPY201"], "logs"),
        ("# syncscope: expect SYN102 CPY -- logs", ["SYN102", "CPY"], "logs"),
        ("# noqa: E501  # syncscope: expect SYN102 -- see issue #12, logs", ["SYN102"], "see issue #12, logs"),
        ("# syncscope: expect SYN102 -- logs  # noqa: E501", ["SYN102"], "logs"),
        ("# syncscope: expect SYN102 -- logs -- twice", ["SYN102"], "logs -- twice"),
        ("# syncscope finds this wait", [], ""),
        ("# expect SYN102 -- logs", [], ""),
    ],
)
def test_what_counts_as_a_comment(comment: str, rules: list[str], reason: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"x = 1  {comment}\n", encoding="utf-8")
    found = find_comments(report(), [tmp_path])
    assert [entry.rule for entry in found] == rules
    assert {entry.reason for entry in found} <= {reason}


def test_the_marker_inside_a_string_does_not_count(tmp_path: Path) -> None:
    source = 'a = "# syncscope: expect SYN102 -- no"\nb = """\n# syncscope: expect SYN102 -- no\n"""\n'
    assert judged(source, report(at(1), at(3)), tmp_path).stale == ()


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# syncscope: expect SYN102", "expect SYN102 gives no reason"),
        ("# syncscope: expect SYN102 --  ", "expect SYN102 gives no reason"),
        ("# syncscope: expect -- logs", "names no rule"),
        ("# syncscope: expect SYN901 -- logs", 'unknown rule "SYN901"'),
    ],
)
def test_a_comment_that_cannot_be_used_names_file_and_line(comment: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        judged(f"\nx = loss.item()  {comment}\n", report(), tmp_path)
    assert str(caught.value).startswith("train.py:2: syncscope: ")
    assert said in str(caught.value)


def test_a_comment_whose_wait_is_gone_is_stale_and_names_its_line(tmp_path: Path) -> None:
    source = "\n    total += loss  # syncscope: expect SYN102 -- one read an epoch\n"
    (stale,) = judged(source, report(), tmp_path).stale
    assert (stale.rule, stale.where, stale.reason) == ("SYN102", "train.py:2", "one read an epoch")


def test_each_rule_of_a_comment_is_stale_by_itself(tmp_path: Path) -> None:
    source = "x = loss.item()  # syncscope: expect SYN102, CPY201 -- logs\n"
    found = judged(source, report(at(1)), tmp_path)
    assert [entry.rule for entry in found.stale] == ["CPY201"]
    assert found.findings[0].status == "expected"


def test_a_comment_for_a_rule_nobody_could_check_is_not_stale(tmp_path: Path) -> None:
    blind = msgspec.structs.replace(report(), not_checked=(NotChecked(rule="SYN102", why="no"),))
    assert judged("x = 1  # syncscope: expect SYN102 -- logs\n", blind, tmp_path).stale == ()


def test_a_file_that_the_program_did_not_load_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1  # syncscope: expect SYN102\n")
    assert judged("x = 1\n", report(), tmp_path).stale == ()


def test_a_recording_cannot_name_files_outside_the_project(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1  # syncscope: expect SYN102\n")
    names = ("../outside.py", str(outside), "<site-packages>/x.py", "train.py")
    assert judged("x = 1\n", report(files=names), tmp_path / "project").stale == ()


def test_recordings_that_list_no_files_leave_those_of_their_call_chains(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("x = 1  # syncscope: expect SYN102 -- logs\n")
    finding = at(7)
    caller = msgspec.structs.replace(finding.chain[0], file="helpers.py")
    finding = msgspec.structs.replace(finding, chain=(caller, *finding.chain))
    assert [entry.where for entry in judged("", report(finding, files=None), tmp_path).stale] == ["helpers.py:1"]


@pytest.mark.parametrize(("has", "source"), [(("runtime", "stacks"), "stack"), (("runtime", "sites"), "stack")])
def test_a_line_that_is_only_that_of_the_def_is_not_meant(has: Any, source: SiteSource, tmp_path: Path) -> None:
    comment = "def step():  # syncscope: expect SYN102 -- logs\n"
    found = judged(comment, report(at(1, source=source), has=has), tmp_path)
    assert found.findings[0].status == "unexpected"
    assert len(found.stale) == ("sites" in has)


def test_glob_characters_in_a_files_name_mean_themselves(tmp_path: Path) -> None:
    (tmp_path / "a1.py").write_text("x = 1\n")
    comment = "x = 1  # syncscope: expect SYN102 -- logs\n"
    found = judged(comment, report(at(1, file="a[1].py"), at(1, file="a1.py")), tmp_path, "a[1].py")
    assert {f.site.file: f.status for f in found.findings if f.site} == {"a[1].py": "expected", "a1.py": "unexpected"}


def test_without_a_folder_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("x = 1  # syncscope: expect SYN102 -- logs\n")
    assert apply(report(at(1)), Policy()).findings[0].status == "unexpected"


def test_what_stands_before_a_syntax_error_still_counts(tmp_path: Path) -> None:
    source = "x = loss.item()  # syncscope: expect SYN102 -- logs\n'''never closed\n"
    assert judged(source, report(at(1)), tmp_path).findings[0].status == "expected"


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_file_is_too_strange(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("strange", numbered=True)
    (folder / "train.py").write_bytes(b"# syncscope: expect SYN102 -- logs\n" + data)
    assert len(find_comments(report(), [folder])) <= 1


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# syncscope: ignore SYN102 -- fine", "# syncscope: ignore"),
        ("# syncscope: expected SYN102 -- fine", "# syncscope: expected"),
        ("# syncscope: Expect SYN102 -- fine", "# syncscope: Expect"),
        ("# SyncScope: expect SYN102 -- fine", "# SyncScope: expect"),
        ("# syncscope expect SYN102 -- fine", "# syncscope expect"),
        ("# syncscope: SYN102 -- fine", "# syncscope: SYN102"),
        ("# syncscope SYN102 -- fine", "# syncscope SYN102"),
        ("# syncscope: expect(SYN102) -- fine", "# syncscope: expect"),
        ("# syncscope: expect: SYN102 -- fine", "# syncscope: expect"),
        ("# syncscope - expect SYN102 -- fine", "# syncscope - expect"),
        ("# syncscope-ignore: SYN102", "# syncscope-ignore"),
        ("# sync-scope: expect SYN102 -- fine", "# sync-scope: expect"),
        ("# synscope: expect SYN102 -- fine", "# synscope: expect"),
        ("# syncsc\u043epe: expect SYN102 -- fine", "# syncsc\u043epe: expect"),
        ("# syncscope\uff1aexpect SYN102 -- fine", "# syncscope:expect"),
        ("#: syncscope: expect SYN102 -- fine", "#: syncscope: expect"),
        ("# TODO syncscope: ignore SYN102", "# TODO syncscope: ignore SYN102"),
        ("# type: ignore  # syncscope: ignore SYN102", "syncscope: ignore"),
        ("# type: ignore, syncscope: ignore SYN102", "# type: ignore, syncscope: ignore SYN102"),
        ("# noqa: E501, SYN102", "# noqa: E501, SYN102"),
    ],
)
def test_a_comment_that_nobody_would_read_is_an_error(comment: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        judged(f"{READ}  {comment}\n", report(at(1)), tmp_path)
    assert str(caught.value) == f"train.py:1: {said}: did you mean # syncscope: expect SYN102 -- why it is fine?"


@pytest.mark.parametrize(
    "comment",
    [
        "# syncscope records this loop",
        "# see syncscope's docs",
        "# import syncscope",
        "# noqa: E501, PLR2004",
        "# what syncscope calls SYN102",
        "# we use syncscope: expected waits are listed",
        "# a telescope: ignore it",
        "# see https://example.org/syncscope: docs",
        "# pragma: no cover",
    ],
)
def test_a_comment_that_only_names_syncscope_is_none(comment: str, tmp_path: Path) -> None:
    (finding,) = judged(f"{READ}  {comment}\n", report(at(1)), tmp_path).findings
    assert finding.status == "unexpected"
