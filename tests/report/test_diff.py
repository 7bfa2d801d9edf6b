"""What changed, in a terminal and as a comment on a pull request: what is said, and that names stay text."""

import io

import msgspec
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from syncscope.compare.diff import Change, Diff, diff
from syncscope.report import markdown_diff, text_diff
from syncscope.report.diff_phrases import describe_step, format_counts
from syncscope.schema.report import NotChecked, Report
from tests.report import sample

HOSTILE = "\x1b[31m|`</details><img src=x onerror=alert(1)>[a](http://b) @c #1 **d** <!-- \u202e\n::error::"


def before() -> Report:
    found = [
        sample.finding("SYN103", "dynamic-shape", 12, "x[mask]", op="aten::nonzero"),
        sample.finding("SYN102", "scalar-read", 42, "loss.item()", per_step=2.0),
        sample.finding("SYN105", "explicit-sync", 58, "torch.cuda.synchronize()"),
        sample.finding("SYN101", "blocking-copy", 60, "x.cpu()"),
    ]
    unseen = (NotChecked(rule="CPY201", why="no memory kinds"),)
    return msgspec.structs.replace(sample.report(found=found), stale=(), not_checked=unseen)


def after() -> Report:
    found = [
        sample.finding("SYN104", "tensor-print", 7, "print(x)", fix="Print rarely."),
        sample.finding("SYN102", "scalar-read", 42, "loss.item()", per_step=3.0),
        sample.finding("SYN105", "explicit-sync", 58, "torch.cuda.synchronize()", per_step=0.5),
        sample.finding("SYN101", "blocking-copy", 61, "x.cpu()"),
        sample.finding("CPY201", "pageable-copy", None, None, status="expected", reason="a small one"),
    ]
    faster = msgspec.structs.replace(
        sample.trace_info(), steps=msgspec.structs.replace(sample.trace_info().steps, bare_ms=4.08)
    )
    return msgspec.structs.replace(sample.report([faster], found), stale=(), not_checked=())


def terminal(found: Diff, width: int = 100) -> str:
    buffer = io.StringIO()
    text_diff.render(found, Console(file=buffer, width=width, color_system=None))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("after_ms", "said"), [(4.08, "−20 %"), (5.2, "+2 %"), (5.1, "the same"), (5.11, "under 1 % longer")]
)
def test_a_step_that_hardly_changed_says_so(after_ms: float, said: str) -> None:
    info = sample.trace_info()
    timed = msgspec.structs.replace(info, steps=msgspec.structs.replace(info.steps, bare_ms=after_ms))
    assert describe_step(diff(sample.report(), sample.report([timed]))).endswith(f" ({said}), without a profiler")


@pytest.mark.parametrize(
    ("phase", "source", "steps", "said"),
    [
        ("train", "hook", (0, 9), "0 → 4 times a step"),
        ("evaluate in main", "hook", (0, 9), "0 → 4 times a step of evaluate in main"),
        ("evaluate", "count", (0, 9), "0 → 4 times a step of evaluate"),
        ("start", "count", None, "0 → 4 times in start"),
        ("epoch end", "count", None, "0 → 4 times in each epoch end"),
    ],
)
def test_times_are_of_the_steps_or_of_the_phase_that_has_none(
    phase: str, source: str, steps: tuple[int, int] | None, said: str
) -> None:
    found = sample.finding("SYN102", "scalar-read", 42, "loss.item()")
    one = msgspec.structs.replace(found, phase=phase, site_source=source, run_steps=steps)
    assert format_counts(Change(kind="new", finding=one, before=0.0, after=4.0)) == said


def test_the_terminal_shows_every_change_its_place_and_the_step() -> None:
    text = terminal(diff(before(), after()))
    assert "step   5.1 → 4.08 ms (−20 %), without a profiler\n" in text
    assert "new SYN104 tensor-print · 0 → 1 times a step\n  train.py:7  print(x)  in train_step\n" in text
    assert "  fix: Print rarely.\n" in text
    assert "more SYN102 scalar-read · 2 → 3 times a step\n" in text
    assert "unclear CPY201 pageable-copy · ? → 1 times a step\n  in ## solve ##, line unknown, aten::item\n" in text
    assert "  expected: a small one\n" in text
    assert "fewer SYN105 explicit-sync · 1 → 0.5 times a step\n" in text
    assert "fixed SYN103 dynamic-shape · 1 → 0 times a step\n" in text
    assert "not compared CPY201: not checked on both sides\n" in text
    assert text.endswith("1 new, 1 more often, 1 unclear, 1 less often, 1 fixed, 1 the same\n")


def test_what_is_worse_comes_first() -> None:
    text = terminal(diff(before(), after()))
    places = [text.index(f"\n{kind} ") for kind in ("new", "more", "unclear", "fewer", "fixed")]
    assert places == sorted(places)


def test_nothing_changed_says_so() -> None:
    found = diff(after(), after())
    assert terminal(found).endswith("nothing changed, 5 the same\n")
    assert "### syncscope: nothing changed" in markdown_diff.render(found)


def test_steps_without_a_common_measure_are_not_compared() -> None:
    found = msgspec.structs.replace(diff(before(), after()), step=None)
    assert "not measured in the same way in both" in terminal(found)


def test_equal_lines_are_all_named() -> None:
    change = Change(kind="new", finding=sample.findings()[0], before=0.0, after=1.0, lines=(40, 42))
    found = msgspec.structs.replace(diff(before(), before()), changes=(change,))
    assert "  any of the lines 40, 42 may be the new one\n" in terminal(found)
    assert "any of the lines 40\\, 42 may be the new one" in markdown_diff.render(found)


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, terminal(diff(before(), after()), width).splitlines())) <= width


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_the_comment_shows_what_is_worse_and_folds_the_rest() -> None:
    text = markdown_diff.render(diff(before(), after()))
    assert text.index("| new |") < text.index("| more |") < text.index("| unclear |")
    shown, _, folded = rendered(text).partition("<details>")
    assert "<h3>syncscope: 1 new, 1 more often, 1 unclear, 1 less often, 1 fixed, 1 the same</h3>" in shown
    assert "<code>train.py:7</code><br><code>print(x)</code><br>in <code>train_step</code>" in shown
    assert [rule in shown for rule in ("SYN104", "SYN102", "CPY201", "SYN103", "SYN105")] == [True] * 3 + [False] * 2
    assert [rule in folded for rule in ("SYN103", "SYN105")] == [True, True]
    assert "Print rarely." in folded
    assert folded.rstrip().endswith("</details>")


def hostile_diff() -> Diff:
    finding = sample.findings()[0]
    assert finding.site is not None
    site = msgspec.structs.replace(finding.site, file=HOSTILE, function=HOSTILE, expression=HOSTILE)
    spoilt = msgspec.structs.replace(
        finding, site=site, rule=HOSTILE, name=HOSTILE, fix=HOSTILE, reason=HOSTILE, status="expected", op=HOSTILE
    )
    changes = tuple(
        Change(kind=kind, finding=found, before=1.0, after=2.0)
        for kind in ("new", "fixed")
        for found in (spoilt, msgspec.structs.replace(spoilt, site=None))
    )
    return Diff(before=(HOSTILE,), after=(HOSTILE,), changes=changes, same=0, step=None, not_compared=(HOSTILE,))


def test_hostile_names_stay_text_in_the_terminal() -> None:
    text = terminal(hostile_diff(), width=10_000)
    assert text.replace("\n", "").isprintable()
    assert all(not line.lstrip().startswith("::") for line in text.splitlines())
    assert text.count("<img src=x onerror=alert(1)>") >= 10


def test_hostile_names_stay_text_in_the_comment() -> None:
    text = markdown_diff.render(hostile_diff())
    html = rendered(text)
    assert "<img" not in html and "<!--" not in html and "<a " not in html and "<strong>d" not in html
    assert html.count("<details>") == html.count("</details>") == 1
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert html.count("<tr>") == 2 * 3
    assert "\x1b" not in text and "\u202e" not in text


def test_the_comment_stays_under_what_github_takes() -> None:
    long = msgspec.structs.replace(hostile_diff().changes[0].finding, fix="x" * 5000)
    changes = tuple(
        Change(kind=kind, finding=msgspec.structs.replace(long, fix=f"{n}{long.fix}"), before=0.0, after=1.0)
        for kind in ("new", "fixed")
        for n in range(500)
    )
    text = markdown_diff.render(msgspec.structs.replace(hostile_diff(), changes=changes))
    assert len(text) < 65_536
    assert text.count(" more\n") == 3
