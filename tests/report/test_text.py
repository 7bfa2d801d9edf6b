"""The terminal summary: what stands in it, that it fits, and that foreign names stay inert."""

import io
import re
from typing import Any

import msgspec
import pytest
from rich.console import Console

from syncscope.analysis.merge import merge
from syncscope.report.text import render, render_verdict, to_text
from syncscope.report.view import WHOLE, View
from syncscope.schema.findings import Finding, WorkEnd
from syncscope.schema.report import NotChecked, Replay, Report, TraceInfo
from syncscope.schema.verdict import Budget, BudgetOutcome, Ratchet, RatchetOutcome, Verdict
from tests.report import sample

HOSTILE = "\x1b[31m[bold red]x[/bold red]\x1b]0;t\x07\u202e\n::error::"


VERBOSE = View(verbose=True)


def shown(report: Report, width: int = 80, *, color: bool = False, view: View = WHOLE) -> str:
    buffer = io.StringIO()
    system = "standard" if color else None
    render(report, Console(file=buffer, width=width, force_terminal=color, color_system=system), view)  # type: ignore[arg-type]
    return buffer.getvalue()


def one(**changes: object) -> Report:
    """A report with one finding, changed."""
    return sample.report(found=[msgspec.structs.replace(sample.findings()[0], **changes)])


def foreign(**changes: object) -> Report:
    """The same of a trace that something else recorded."""
    made = one(**changes)
    return msgspec.structs.replace(made, traces=(not_ours(),))


def not_ours(**changes: object) -> TraceInfo:
    info = sample.trace_info()
    return msgspec.structs.replace(info, has=tuple(one for one in info.has if one != "sites"), **changes)


def hostile_report() -> Report:
    """Every string of a report is hostile, whatever fields it has."""

    def spoil(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {spoil(k) if key == "idle_by_cause" else k: spoil(v, k) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [spoil(item, key) for item in value]
        keep = ("severity", "status", "source", "site_source", "has")
        return HOSTILE if isinstance(value, str) and key not in keep else value

    return msgspec.convert(spoil(msgspec.to_builtins(sample.report())), Report)


def test_a_finding_shows_rule_place_weight_op_and_fix() -> None:
    text = shown(sample.report(), view=VERBOSE)
    assert "saves 3.7 % (0.19 ms) · SYN102 scalar-read\n" in text
    assert "  train.py:42  loss.item()  in train_step\n" in text
    assert "  at <site-packages>/lib/metrics.py:88  in Meter.update\n" in text
    facts = "once a step · blocked 1.63 ms (27 % of the recorded step) · aten::item · 12 B in all"
    assert facts in " ".join(text.split())
    assert "  fix: Keep the value on the device and read it once an epoch.\n" in text


def test_the_header_shows_device_steps_coverage_and_device_time() -> None:
    text = shown(sample.report(), width=120, view=VERBOSE)
    assert "NVIDIA H200 · torch 2.11.0+cu130 · 3 steps · 5.1 ms a step · 6 ms under the profiler" in text
    assert "6 of 9 waits have a line\n" in text
    assert "copies 0.7 ms (0.4 ms exposed), collectives 0.6 ms (0.1 ms exposed)" in " ".join(text.split())
    assert "device idle 1.6 ms a recorded step: wait 0.9 ms, host work 0.7 ms\n" in text
    assert "warning: The file was cut short" in text


def test_the_end_counts_what_was_expected_and_names_what_is_stale_or_unseen() -> None:
    text = " ".join(shown(sample.report(), view=VERBOSE).split())
    assert "3 findings · 1 expected · 1 in the baseline" in text
    assert "all fixed together: saves 0.4 ms (7.8 %) a recorded step" in text
    assert 'pyproject.toml:41: SYN103 matches nothing; delete it (it says "mask in the data loader")' in text
    assert "not checked HAZ401: needs a recording with --hazards" in text


def test_what_to_know_first_opens_the_output() -> None:
    opening = shown(sample.report(), 160).splitlines()[:4]
    assert [line.split()[0] for line in opening] == ["step", "first", "recorded", "idle"]
    text = verdict_text(Verdict(gate=("SYN102",), unexpected=sample.findings()[:1]), sample.findings())
    assert text.startswith("step      5.1 → 4.91 ms")


def several(number: int, **changes: Any) -> list[Finding]:
    return [
        msgspec.structs.replace(sample.findings()[0], fingerprint=f"{index:016x}", **changes) for index in range(number)
    ]


def test_a_long_expression_is_cut_in_a_card_unless_all_is_asked_for() -> None:
    long = f"model.generate(\n{', '.join(f'name_{number}=1' for number in range(12))})"
    finding = sample.findings()[0]
    assert finding.site is not None
    site = msgspec.structs.replace(finding.site, expression=long)
    made = sample.report(
        found=[msgspec.structs.replace(finding, site=site, message=f"{' '.join(long.split())} reads one value")]
    )
    brief, whole = (" ".join(shown(made, 160, view=view).split()) for view in (WHOLE, VERBOSE))
    assert "name_11=1" not in brief and brief.count("name_5=1, nam… in train_step") == 1
    assert "name_5=1, nam… reads one value" in brief
    assert whole.count("name_11=1)") == 2


SHORT = {"stall_ms_per_step": 0.2}


def test_of_several_traces_the_one_whose_wait_is_told_is_named() -> None:
    little = {"saving_ms_per_step": 0.02, "saving_below_drift": True}
    found = [replaced for rank in range(2) for replaced in several(1, trace=rank, rank=rank, **little)]
    infos = [sample.trace_info(f"rank{rank}.json", rank) for rank in range(2)]
    text = " ".join(shown(sample.report(infos, found), 160).split())
    assert "once a step · blocked 1.63 ms (27 %) · on 2 of 2 traces, rank 0 shown" in text


def test_findings_that_save_little_have_a_line_each() -> None:
    little = several(2, saving_ms_per_step=0.02, saving_below_drift=True)
    made = sample.report(found=[sample.findings()[1], *little])
    text = shown(msgspec.structs.replace(made, saving_all_ms_per_step=0.04), 120)
    assert text.count("fix: ") == 1
    line = "SYN102 scalar-read  train.py:42  loss.item()  once a step"
    heading = "each saves under 1 %, however long it blocks (without it the host waits elsewhere):"
    assert f"\n{heading}\n  {line} · blocked 1.63 ms (27 %)" in text
    short = shown(sample.report(found=several(1, saving_ms_per_step=0.02, saving_below_drift=True, **SHORT)))
    assert f":\n  {line}\n" in short and "however" not in short
    assert shown(sample.report(found=little), view=VERBOSE).count("fix: ") == 2


@pytest.mark.parametrize(
    ("high", "said"), [(None, "saving not known: no step"), (0.4, "only a range: no step"), (0.0, None)]
)
def test_why_a_saving_is_not_known_is_told_on_request(high: float | None, said: str | None) -> None:
    low = None if high is None else 0.0
    bounds = {"saving_ms_per_step": None, "saving_low_ms_per_step": low, "saving_high_ms_per_step": high}
    found = [msgspec.structs.replace(sample.findings()[0], saving_null_why="no step", **bounds)]
    assert ("no step" in shown(sample.report(found=found), view=VERBOSE)) is (said is not None)
    assert said is None or said in shown(sample.report(found=found), view=VERBOSE)
    assert "no step" not in shown(sample.report(found=found))


def test_a_long_fix_is_told_once() -> None:
    read = sample.findings()[0]
    fix = "Keep it on the device, where the next operation needs it, and read it once an epoch."
    assert read.site is not None
    several = [
        msgspec.structs.replace(
            read, fix=fix, fingerprint=f"{line}{told}", at=None,
            site=msgspec.structs.replace(read.site, line=line, expression=told, column=column),
        )
        for line, told, column in ((42, "x.item()", 1), (43, "x.item()", 1), (42, "y.item()", 1), (42, "x.item()", 20))
    ]  # fmt: skip
    text = shown(sample.report(found=several), 120)
    assert text.count(f"fix: {fix}") == 1
    assert "fix: Do the same as at train.py:42.\n" in text
    assert "fix: Do the same as for x.item() at this line.\n" in text
    assert "fix: Do the same as for the wait above at this line.\n" in text
    assert shown(sample.report(found=several), 120, view=VERBOSE).count(f"fix: {fix}") == 4


def test_the_line_at_which_work_of_the_host_ends_is_told_as_what_comes_after_it() -> None:
    (read,) = sample.findings()[:1]
    assert read.site is not None
    ends = (WorkEnd(site=read.site, share=0.9),)
    idle = msgspec.structs.replace(read, rule="OVL303", work_ends_at=ends, idle_ms_per_step=3.0)
    text = shown(sample.report(found=[idle]), 120)
    assert "\n  before train.py:42  loss.item()  in train_step\n" in text
    more = [msgspec.structs.replace(one, saving_ms_per_step=1.0) for one in several(5)]
    assert "before train.py:42  loss.item()" in shown(sample.report(found=[*more, idle]), 120).partition("also:")[2]


def test_an_op_without_a_line_says_so() -> None:
    (wait,) = several(1, site=None, at=None, annotation=None, op="cudaMemcpyAsync")
    assert "\n  cudaMemcpyAsync, line unknown\n" in shown(sample.report(found=[wait]), 120)
    small = msgspec.structs.replace(wait, saving_ms_per_step=0.001, saving_below_drift=True)
    assert "scalar-read  cudaMemcpyAsync, line unknown  " in shown(sample.report(found=[small]), 120)
    assert "line unknown" not in shown(sample.report(found=[msgspec.structs.replace(wait, op=None)]), 120)


def test_after_five_findings_the_others_have_a_line_each() -> None:
    text = shown(sample.report(found=several(7)), 120)
    assert text.count("fix: ") == 5
    assert "\nalso:\n  saves 3.7 % · SYN102 scalar-read  train.py:42  loss.item()  once a step" in text


def test_one_of_unknown_saving_that_has_a_line_says_how_long_it_is_exposed() -> None:
    late = sample.finding("DST601", "straggling-sync", 50, "loss.item()")
    unknown = {"saving_ms_per_step": None, "saving_low_ms_per_step": None, "saving_high_ms_per_step": None}
    late = msgspec.structs.replace(late, exposed_ms_per_step=3.0, per_step=1.0, **unknown)
    text = " ".join(shown(sample.report(found=[*several(5), late]), 160).split())
    assert "also: saving not known · DST601 straggling-sync" in text
    assert "once a step · holds others 3 ms (50 %)" in text


def test_top_shows_no_more_and_says_how_many_are_left() -> None:
    text = shown(sample.report(found=several(7)), view=View(top=2))
    assert text.count("fix: ") == 2
    assert "… and 5 more findings (--top 2)\n" in text


def test_what_fails_a_gate_is_marked_and_always_shown_in_full() -> None:
    found = tuple(several(7, saving_ms_per_step=0.02, saving_below_drift=True))
    text = verdict_text(Verdict(gate=("SYN102",), unexpected=found), found)
    assert text.count("✗ saves under 1 % · SYN102 scalar-read\n") == text.count("fix: ") == 7


def test_a_place_is_a_link_where_the_terminal_opens_it() -> None:
    view = View(link=lambda frame: f"file:///{frame.file}#{frame.line}" if frame.file == "train.py" else None)
    text = shown(sample.report(), color=True, view=view)
    uncoloured = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert re.search(r"\x1b\]8;id=\d+;file:///train.py#42\x1b\\train.py:42\x1b\]8;;\x1b\\", uncoloured)
    assert "metrics.py#" not in text


def test_expected_findings_are_counted_not_listed() -> None:
    assert "SYN105" not in shown(sample.report())


def test_at_is_left_out_where_it_is_the_site() -> None:
    finding = sample.findings()[0]
    assert "\n  at " not in shown(one(at=finding.site))


def test_how_to_get_the_lines_that_are_not_known_is_said_once() -> None:
    text = shown(foreign(site=None), 200)
    assert "the finding has no line: to see lines, record with `syncscope profile` or torch." in text
    assert "  at <site-packages>/lib/metrics.py:88" in text
    assert "to see lines" not in shown(one())


def test_what_recorded_the_trace_is_no_way_to_lines_that_it_does_not_know() -> None:
    text = shown(one(site=None), 200)
    assert "the finding has no line" in text and "to see lines" not in text


def test_what_cannot_record_a_device_is_not_advised_for_it() -> None:
    amd = not_ours(device="AMD Instinct MI300X")
    found = [msgspec.structs.replace(sample.findings()[0], site=None)]
    text = shown(sample.report([amd], found), 200)
    assert "record with torch.profiler's with_stack=True" in text


def test_an_annotation_stands_for_the_line() -> None:
    assert "  in ## forward ##\n" in shown(one(site=None, annotation="## forward ##"))


NO_SAVING = dict.fromkeys(f"saving_{name}ms_per_step" for name in ("", "low_", "high_"))


def test_what_has_neither_line_nor_op_is_about_the_whole_device() -> None:
    assert "to see lines" not in shown(one(site=None, op=None))


def test_a_line_from_a_stack_is_said_to_be_that_of_the_def() -> None:
    text = shown(foreign(site_source="stack"), width=120)
    assert "  train.py:42  loss.item()  in train_step (the def)\n" in text
    assert (
        "\nthe finding has only the line of the function's def: to see lines, record with `syncscope profile`" in text
    )


def test_findings_of_one_trace_at_one_place_stay_apart() -> None:
    finding = msgspec.structs.replace(sample.findings()[0], site=None)
    text = shown(sample.report(found=[finding] * 3))
    assert text.count("SYN102") == 3
    assert " traces, " not in text


def test_missing_figures_are_left_out_and_never_zero() -> None:
    text = shown(one(stall_ms_per_step=None, bytes=None, **NO_SAVING))
    assert "saving not known · SYN102 scalar-read\n" in text
    assert "\n  once a step\n" in text
    assert " 0 B" not in text


def test_without_steps_the_weight_is_that_of_the_whole_trace() -> None:
    text = shown(one(per_step=None, count=3, **NO_SAVING))
    assert "3 times in all · blocked 4.89 ms (81 % of the device's time)" in " ".join(text.split())


def test_a_wait_longer_than_the_time_of_the_device_is_no_share_of_it() -> None:
    text = shown(one(per_step=None, count=3, stall_ms=7.0, **NO_SAVING))
    assert "3 times in all · blocked 7 ms\n" in text


def test_without_a_bare_step_the_worth_is_a_range() -> None:
    text = shown(one(saving_ms_per_step=None, saving_low_ms_per_step=0.21, saving_high_ms_per_step=1.5), width=120)
    assert "saves up to 29 % (0.21 to 1.5 ms) · SYN102 scalar-read\n" in text
    text = shown(one(saving_ms_per_step=None, saving_low_ms_per_step=0.0124, saving_high_ms_per_step=0.15), width=120)
    assert "saves up to 2.9 % (12.4 µs to 0.15 ms) · SYN102" in text


def replayed(**fields: Any) -> str:
    info = msgspec.structs.replace(sample.trace_info(), replay=Replay(**fields))
    return shown(sample.report([info]), width=120, view=VERBOSE)


def test_what_stands_behind_the_savings_is_told() -> None:
    text = replayed(misfit=-0.0012, host_scale=0.93, assumptions=("copies are fast",))
    assert (
        "savings: of a recorded step, from a replay that meets it within 1 %, host work × 0.93 to meet the bare" in text
    )
    assert "assumed: copies are fast" in text
    assert "no bare step: only ranges" in replayed(misfit=0.0)


def test_why_there_are_no_savings_is_told() -> None:
    assert "  no savings: the trace has no steps to replay\n" in replayed(null_why="the trace has no steps to replay")


def test_why_a_trace_with_findings_has_no_savings_is_told_without_being_asked() -> None:
    info = msgspec.structs.replace(sample.trace_info(), replay=Replay(null_why="the recorded steps did more"))
    text = shown(sample.report([info]), 120)
    assert text.count("no savings: the recorded steps did more") == 1
    assert shown(sample.report([info]), 120, view=VERBOSE).count("no savings: the recorded steps did more") == 1
    assert "no savings" not in shown(sample.report([info], []), 120)


def test_waits_outside_the_steps_say_so_and_have_no_weight() -> None:
    assert "\n  outside the steps\n" in shown(one(per_step=0.0, count=0, **NO_SAVING))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = shown(sample.report(), width).splitlines()
    assert max(map(len, lines)) <= width


def test_lines_have_no_trailing_spaces() -> None:
    assert all(line == line.rstrip() for line in shown(merged()).splitlines())


@pytest.mark.parametrize("color", [False, True])
def test_hostile_names_stay_text(color: bool) -> None:
    text = shown(hostile_report(), width=1000, color=color)
    clean = "[bold red]x[/bold red] ::error::"
    assert clean in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "\x1b]" not in text
    assert "\x1b[31m" not in text
    assert all(not line.startswith("::") for line in text.splitlines())
    assert ("\x1b" in text) == color


def test_to_text_has_no_colours_whatever_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in to_text(sample.report())


def merged() -> Report:
    """Two ranks of the same program, the second a little slower."""
    slower = [
        msgspec.structs.replace(f, stall_ms_per_step=f.stall_ms_per_step and f.stall_ms_per_step * 2)
        for f in sample.findings(rank=1)
    ]
    return merge(
        [
            sample.report([sample.trace_info("run/rank0.json.gz", 0)], sample.findings(rank=0)),
            sample.report([sample.trace_info("run/rank1.json.gz", 1)], slower),
        ]
    )


def test_the_same_line_on_several_ranks_stands_once_under_the_heaviest() -> None:
    text = shown(merged(), 120)
    assert text.count("SYN102") == 1
    assert "blocked 0.84 ms" in text
    assert "on 2 of 2 traces, rank 1 shown" in text
    assert "3 findings · " in text


def test_a_line_without_figures_names_traces_only_where_not_all_have_it() -> None:
    none = {"saving_ms_per_step": 0.001, "saving_high_ms_per_step": 0.001, **SHORT}
    least = msgspec.structs.replace(sample.findings()[0], **none)
    three = [sample.report([sample.trace_info(f"rank{rank}.json.gz", rank)], []) for rank in range(3)]

    def on(ranks: int) -> str:
        mine = [msgspec.structs.replace(least, trace=0, rank=rank) for rank in range(ranks)]
        found = [msgspec.structs.replace(one, findings=(mine[rank],)) for rank, one in enumerate(three[:ranks])]
        lines = shown(merge([*found, *three[ranks:]]), 120).splitlines()
        return next(line for line in lines if line.startswith(f"  {least.rule}"))

    assert on(1).endswith("on rank 0")
    assert on(2).endswith("on 2 of 3 traces")
    assert "trace" not in on(3) and "rank" not in on(3)


def test_several_traces_have_a_row_each() -> None:
    rows = [line.split() for line in shown(merged()).splitlines()]
    assert ["rank", "0", "3", "5.1", "ms", "9", "6", "1.6", "ms", "0.4", "ms"] in rows
    assert ["rank", "1", "3", "5.1", "ms", "9", "6", "1.6", "ms", "0.4", "ms"] in rows


def test_a_finding_of_one_of_several_traces_says_of_which() -> None:
    ranks = [sample.report([sample.trace_info(f"rank{rank}.json.gz", rank)], []) for rank in (0, 1)]
    ranks[1] = msgspec.structs.replace(ranks[1], findings=tuple(sample.findings(rank=1)))
    text = shown(merge(ranks))
    assert "on rank 1\n" in text and " traces, " not in text


def test_traces_without_ranks_are_numbered_and_named() -> None:
    infos = [sample.trace_info("a/trace.json"), sample.trace_info("b/trace.json")]
    text = shown(merge([sample.report([info]) for info in infos]))
    assert "  #1 a/trace.json\n  #2 b/trace.json\n" in text
    assert "on 2 of 2 traces, #1 shown" in " ".join(text.split())


def test_rules_not_checked_on_some_traces_say_on_which() -> None:
    infos = [sample.trace_info("run/rank0.json.gz", 0), sample.trace_info("run/rank1.json.gz", 1)]
    report = msgspec.structs.replace(
        sample.report(infos), not_checked=(NotChecked(rule="SYN101", why="no runtime calls", trace=1, rank=1),)
    )
    assert "not checked SYN101: no runtime calls (on rank 1)" in shown(report, view=VERBOSE)
    assert "not checked SYN101 (--verbose says why)" in shown(report)


def test_rules_with_nothing_to_look_for_are_named_only_where_all_are() -> None:
    entry = NotChecked(rule="CMP701", why="nobody said", needless=True)
    report = msgspec.structs.replace(sample.report([sample.trace_info()]), not_checked=(entry,), findings=())
    assert "CMP701" not in shown(report) and "could not be checked" not in shown(report)
    assert "nothing here is what it is about CMP701: nobody said" in shown(report, view=VERBOSE)


def test_a_trace_without_device_or_runtime_rows_says_what_is_missing() -> None:
    info = msgspec.structs.replace(sample.trace_info(), has=("cpu_op",), overlap=None, device=None)
    text = shown(sample.report([info], []))
    assert "no runtime calls: waits cannot be seen" in text
    assert "no device activity" in text
    assert "device unknown" in text
    assert "\nno findings" in text


def verdict_text(verdict: Verdict, findings: tuple[Finding, ...] = ()) -> str:
    buffer = io.StringIO()
    render_verdict(verdict, sample.report(found=findings), Console(file=buffer, width=80, color_system=None))
    return buffer.getvalue()


def test_a_failed_gate_lists_its_findings_and_ends_with_the_count() -> None:
    found = sample.findings()
    text = verdict_text(Verdict(gate=("SYN102",), unexpected=found[:1]), found)
    assert "SYN102" in text
    assert "CPY201" not in text
    assert text.endswith("failed: 1 unexpected finding · 1 expected · 1 in the baseline\n")


def test_a_gate_that_could_not_look_does_not_say_passed() -> None:
    text = verdict_text(Verdict(gate=("SYN102",), not_checked=(NotChecked(rule="SYN102", why="no runtime calls"),)))
    assert text.endswith("failed: 1 rule not checked\n")


def test_a_passed_gate_names_the_rules_it_held() -> None:
    assert verdict_text(Verdict(gate=("SYN101", "SYN102"))).endswith("passed: SYN101, SYN102\n")


def test_a_failed_gate_says_how_to_allow_a_wait_before_the_last_line() -> None:
    found = sample.findings()[:1]
    text = " ".join(verdict_text(Verdict(gate=("SYN102",), unexpected=found), found).split())
    one = "to accept one: on its line, # syncscope: expect SYN102 -- reason"
    assert f"{one}; to accept all that is there now: --baseline FILE --write-baseline failed" in text
    held = Ratchet(path="b.json", outcome="held", covered=2, fixed=0)
    assert "--baseline" not in verdict_text(Verdict(gate=("SYN102",), unexpected=found, baseline=held))
    assert "syncscope: expect" not in verdict_text(Verdict(gate=("SYN102",)))


def test_what_goes_beyond_the_policy_stands_under_the_place() -> None:
    finding = msgspec.structs.replace(sample.findings()[0], exceeds="baseline 1, now 2 a step")
    text = verdict_text(Verdict(gate=("SYN102",), unexpected=(finding,)), (finding,))
    assert "in train_step\n  baseline 1, now 2 a step\n" in text


def budget(name: str, outcome: BudgetOutcome, message: str, trace: int = 0, found: float | None = None) -> Budget:
    return Budget(name=name, allowed=1.0, found=found, outcome=outcome, message=message, trace=trace)


def test_budgets_are_told_by_their_worst_trace() -> None:
    judged = (
        budget("max_stall_share", "exceeded", "blocked for 20 %", 0, 0.2),
        budget("max_stall_share", "exceeded", "blocked for 90 %", 1, 0.9),
        budget("max_exposed_copy_ms", "not checked", "the trace has no steps"),
        budget("max_unexpected_syncs_per_step", "kept", "1 unexpected waits"),
    )
    buffer = io.StringIO()
    render_verdict(Verdict(gate=(), budgets=judged), merged(), Console(file=buffer, width=80, color_system=None))
    text = buffer.getvalue()
    assert "budget exceeded max_stall_share: blocked for 90 % (rank 1)\n" in text
    assert "blocked for 20 %" not in text
    assert "budget not checked max_exposed_copy_ms: the trace has no steps (rank 0)\n" in text
    assert "budget kept max_unexpected_syncs_per_step: 1 unexpected waits (rank 0)\n" in text
    assert text.endswith("failed: 1 budget exceeded, 1 budget not checked · 1 expected · 1 in the baseline\n")


@pytest.mark.parametrize(
    ("outcome", "worse", "fixed", "line"),
    [
        ("written", False, 0, "baseline b.json written: 2 findings may stay, new ones fail; commit this file\n"),
        ("held", False, 1, "baseline b.json: 1 entry fixed; run with --update to tighten it\n"),
        ("held", True, 3, "baseline b.json: 3 entries fixed\n"),
        ("tightened", False, 3, "baseline b.json tightened: 3 entries fixed, 2 left\n"),
        ("not written", True, 0, "baseline b.json not touched\n"),
        ("not written", False, 0, "baseline b.json not written: not every gated rule could be checked\n"),
    ],
)
def test_what_became_of_the_baseline(outcome: RatchetOutcome, worse: bool, fixed: int, line: str) -> None:
    ratchet = Ratchet(path="b.json", outcome=outcome, covered=2, fixed=fixed)
    found = sample.findings()[:1] if worse else ()
    text = verdict_text(Verdict(gate=("SYN102",), unexpected=found, baseline=ratchet))
    assert line in text


def test_a_baseline_that_holds_is_not_worth_a_line() -> None:
    ratchet = Ratchet(path="b.json", outcome="held", covered=2, fixed=0)
    assert "b.json" not in verdict_text(Verdict(gate=("SYN102",), baseline=ratchet))


def test_hostile_names_stay_text_in_a_verdict() -> None:
    report = hostile_report()
    finding = msgspec.structs.replace(report.findings[0], exceeds=HOSTILE)
    verdict = Verdict(
        gate=("SYN102",),
        unexpected=(finding,),
        stale=report.stale,
        budgets=(budget("max_stall_share", "exceeded", HOSTILE, found=1.0),),
        baseline=Ratchet(path=HOSTILE, outcome="tightened", covered=1, fixed=1),
    )
    buffer = io.StringIO()
    render_verdict(verdict, report, Console(file=buffer, width=1000, color_system=None))
    text = buffer.getvalue()
    assert text.count("[bold red]x[/bold red] ::error::") >= 8
    assert text.replace("\n", "").isprintable()
    assert all(not line.startswith("::") for line in text.splitlines())


def test_a_rule_that_found_something_is_not_told_as_not_checked() -> None:
    entries = [NotChecked(rule=rule, why="no ops", trace=0) for rule in ("SYN102", "SYN103", "SYN104")]
    made = msgspec.structs.replace(sample.report(), not_checked=tuple(entries))
    assert "not checked SYN103, SYN104 · checked in part SYN102 (--verbose says why)" in shown(made, 120)
    alone = msgspec.structs.replace(made, not_checked=tuple(entries[:1]))
    assert "\nchecked in part SYN102 (--verbose says why)" in shown(alone, 120)


def test_a_rule_that_looked_at_all_but_a_lost_start_is_told_as_checked_in_part() -> None:
    entry = NotChecked(
        rule="OVL301", why="2 launches and copies at the start of the trace have no device row", rest=True
    )
    made = msgspec.structs.replace(sample.report(found=()), not_checked=(entry,))
    assert "\nchecked in part OVL301 (--verbose says why)" in shown(made, 120)
    assert "\nchecked in part OVL301: 2 launches and copies at the start" in shown(made, 120, view=VERBOSE)
    assert "could not be checked" not in shown(made, 120)
    seen_nowhere = msgspec.structs.replace(made, not_checked=(entry, NotChecked(rule="OVL301", why="no", trace=0)))
    assert "\nnot checked OVL301 (--verbose says why)" in shown(seen_nowhere, 120)
