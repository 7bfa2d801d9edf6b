"""What several outputs call a trace, several traces, and the causes of idle time in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from syncscope.patterns import compile_later
from syncscope.report.escape import terminal
from syncscope.report.numbers import span
from syncscope.report.runs import Process
from syncscope.schema.report import Report, TraceInfo

MOST_RUNS = 4
"""Runs of ranks named in a sentence."""

AMOUNT = compile_later(r"\b\d+(?:\.\d+)? (?:µs|ms|s)\b")
"""A time, as ``milliseconds`` writes it."""


def label_by_file(traces: Sequence[TraceInfo]) -> list[str]:
    """Ranks and phases where they tell the traces apart, else the files' names, else their paths."""
    names = [PurePath(info.path).name for info in traces]
    return _ranks(traces) or (names if len(set(names)) == len(names) else [info.path for info in traces])


def label_by_number(traces: Sequence[TraceInfo]) -> list[str]:
    """Ranks and phases where they tell the traces apart, else numbers: what fits into a line of text."""
    return _ranks(traces) or [f"#{number}" for number in range(1, len(traces) + 1)]


def _ranks(traces: Sequence[TraceInfo]) -> list[str] | None:
    """A rank for each trace, with its phase where a rank has several traces; ``None`` where both do not tell them
    apart."""
    ranks, several = [info.rank for info in traces], len(traces) > 1
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [f"rank {rank}" for rank in ranks]
    pairs = [(info.rank, info.phase) for info in traces]
    known = several and all(info.phase or info.run is not None for info in traces)
    if not known or len(set(pairs)) < len(pairs):
        return None
    named = [([] if rank is None else [f"rank {rank}"], terminal(phase or "counted")) for rank, phase in pairs]
    return [" ".join([*rank, phase]) for rank, phase in named]


def join_labels(labels: Iterable[str]) -> str:
    """Labels of traces in a sentence: ``rank 3``, ``ranks 0–1022``, ``ranks 0–3, 8 and 17 more``, ``ranks 0–7 train,
    rank 0 evaluate``."""
    phases: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        rank, phase = _split(label)
        phases.setdefault(phase, []).append(rank)
    joined = [" ".join(filter(None, [_join_ranks(ranks), phase])) for phase, ranks in phases.items()]
    more = len(joined) - MOST_RUNS
    return ", ".join(joined[:MOST_RUNS]) + (f" and {more} more" if more > 0 else "")


def _split(label: str) -> tuple[str, str]:
    """The rank, or the number, in a label, and the phase behind it."""
    found = re.fullmatch(r"(rank -?\d+|#\d+|)(?: ?(.*))", label, re.DOTALL)
    return (found[1], found[2]) if found else ("", label)


def _join_ranks(listed: Sequence[str]) -> str:
    if listed == [""]:
        return ""
    kind = "rank " if all(name.startswith("rank ") for name in listed) else "#"
    runs: list[tuple[int, int]] = []
    for number in sorted(int(name.removeprefix(kind)) for name in listed):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:MOST_RUNS]]
    more = sum(last - first + 1 for first, last in runs[MOST_RUNS:])
    names = ", ".join(shown) if kind == "rank " else ", ".join(f"#{one}" for one in shown)
    label = "" if kind == "#" else "rank " if len(listed) == 1 else "ranks "
    return f"{label}{names}" + (f" and {more} more" if more else "")


def group_losses(report: Report) -> list[tuple[str, list[str]]]:
    """What of the traces was lost and which of several ranks are missing, each once, with the labels of the traces."""
    lost = [info.lost for info in report.traces]
    return [*_group(report, lost), *((missing.text, []) for missing in report.missing_ranks if missing.given > 1)]


def group_warnings(report: Report) -> list[tuple[str, list[str]]]:
    """Each other warning once, with the labels of the traces that have it."""
    warnings = [[text for text in info.warnings if text not in info.lost] for info in report.traces]
    alone = [missing.text for missing in report.missing_ranks if missing.given == 1]
    return [*_join_amounts(_group(report, warnings)), *((text, []) for text in alone)]


def group_no_savings(report: Report) -> list[tuple[str, list[str]]]:
    """Why traces that have findings have no savings, each reason once, with the labels of the traces."""
    having = {finding.trace for finding in report.findings if finding.status == "unexpected"}
    whys = [
        [info.replay.null_why] if number in having and info.replay and info.replay.null_why else []
        for number, info in enumerate(report.traces)
    ]
    return _group(report, whys)


def _group(report: Report, texts: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Each text once, with the labels of the traces that have it; no labels for the only trace."""
    found: dict[str, list[str]] = {}
    for own, label in zip(texts, label_by_number(report.traces), strict=True):
        for text in own:
            found.setdefault(text, []).append(label)
    several = len(report.traces) > 1
    return [(text, labels if several else []) for text, labels in found.items()]


def _join_amounts(groups: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """The texts of several traces that differ in times alone as one, with the shortest and the longest: ``a wait of
    86.8 to 275 ms``."""
    alike: dict[str, list[tuple[str, list[str]]]] = {}
    for text, labels in groups:
        alike.setdefault(AMOUNT.sub("0 ms", text), []).append((text, labels))
    joined: list[tuple[str, list[str]]] = []
    for parts in alike.values():
        every = [label for _, labels in parts for label in labels]
        if not every or len(set(every)) < len(every):
            joined += parts
        else:
            joined.append((_span_amounts([text for text, _ in parts]), every))
    return joined


def _span_amounts(texts: Sequence[str]) -> str:
    columns = zip(*(AMOUNT.findall(text) for text in texts), strict=True)
    spans = ((min(column, key=_in_ms), max(column, key=_in_ms)) for column in columns)
    written = iter([least if least == most else span(least, " to ", most) for least, most in spans])
    return AMOUNT.sub(lambda _: next(written), texts[0])


def _in_ms(amount: str) -> float:
    number, unit = amount.split(" ")
    return float(number) * {"µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def label_processes(processes: Sequence[Process], traces: Sequence[TraceInfo]) -> list[str]:
    """What the processes of a report are called: their ranks, else what their first traces are called."""
    ranks = [traces[process.traces[0]].rank for process in processes]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [f"rank {rank}" for rank in ranks]
    labels = label_by_number(traces)
    return [labels[process.traces[0]] for process in processes]


def was_shared(info: TraceInfo) -> bool:
    """Whether other processes used the device of a trace too, as far as the recording says."""
    return info.run is not None and bool(info.run.shared_device)
