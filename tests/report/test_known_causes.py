"""What is said to do about idle time, of which another cause than that of the fix is known to save something."""

from __future__ import annotations

from typing import Any

import msgspec

from syncscope.report.html import render
from syncscope.report.known_causes import describe_fixes, list_fixes
from syncscope.report.markdown import render as to_markdown
from syncscope.report.text import to_text
from syncscope.schema.findings import Finding, IdleCause, Site
from tests.report import sample

ASKS = "Record again on a device that nobody else uses."
LOADER = Site(file="data.py", line=18, function="batches", expression="for data in loader:")
LATE = IdleCause(cause="unknown", ms_per_step=8.0)
LOADING = IdleCause(
    cause="data loading", ms_per_step=2.0, site=LOADER, likely_saving_ms_per_step=1.0, saving_low_ms_per_step=0.5,
    saving_high_ms_per_step=1.5,
)  # fmt: skip


def idle(*causes: IdleCause, **changes: Any) -> Finding:
    unknown = {"saving_ms_per_step": None, "saving_low_ms_per_step": None, "saving_high_ms_per_step": None}
    found = sample.finding("OVL303", "device-starved", 1, "")
    return msgspec.structs.replace(
        found, site=None, at=None, op=None, causes=causes, idle_ms_per_step=10.0,
        **{"fix": ASKS, **unknown, **changes},
    )  # fmt: skip


def test_the_cause_that_is_told_to_save_something_has_its_fix_before_that_of_the_others() -> None:
    finding, info = idle(LATE, LOADING), sample.trace_info()
    assert list_fixes(finding, info) == [
        ("data loading at data.py:18", "Load ahead: more DataLoader workers, prefetch_factor, persistent_workers."),
        ("unknown", ASKS),
    ]
    said = describe_fixes(finding, info)
    made = sample.report([info], [finding])
    assert said.startswith("For data loading at data.py:18: Load ahead") and said.endswith(f"For unknown: {ASKS}")
    text = " ".join(to_text(made).split())
    assert "fix (data loading at data.py:18): Load ahead" in text and f"fix (unknown): {ASKS}" in text
    assert "For data loading" in to_markdown(made) and '["data loading at data.py:18","Load ahead' in render(made)


def test_what_a_fix_says_of_another_cause_is_not_told_twice() -> None:
    both = f"{ASKS} Apart from that, there is data loading (data.py:18). Load ahead: more DataLoader workers."
    (_, load), own = list_fixes(idle(LATE, LOADING, fix=both), sample.trace_info())
    assert load.startswith("Load ahead") and own == ("unknown", ASKS)
    beside = f"{ASKS} Apart from that, there is host work (train.py:9). Prepare the batch ahead."
    assert list_fixes(idle(LATE, LOADING, fix=beside), sample.trace_info())[1] == ("unknown", beside)


def test_a_fix_is_named_by_its_cause_where_only_the_most_of_another_is_told() -> None:
    most = msgspec.structs.replace(LOADING, cause="host work", likely_saving_ms_per_step=None)
    most = msgspec.structs.replace(most, saving_low_ms_per_step=0.0)
    assert list_fixes(idle(LATE, most), sample.trace_info()) == [("unknown", ASKS)]


def test_a_fix_for_all_that_is_told_needs_no_name() -> None:
    info = sample.trace_info()
    assert list_fixes(idle(LATE), info) == [("", ASKS)], "nothing else is told to save something"
    assert list_fixes(idle(LOADING), info) == [("", ASKS)]
    known = idle(LATE, LOADING, saving_ms_per_step=0.5)
    assert list_fixes(known, info) == [("", ASKS)], "the saving is that of the finding itself"
