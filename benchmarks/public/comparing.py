"""Hold a report against the oracle: line by line, how often PyTorch warned and how often the report says it waited."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from syncscope.schema.findings import Finding
from syncscope.schema.recording import Recording
from syncscope.schema.report import Report
from syncscope.schema.run import CompilingWaits
from syncscope.timeline.places import recorded_frames, without_wrappers

WAITS = "SYN"
"""How the codes of rules about waits begin. The first of them that claims a wait keeps it."""

CLOSE = 0.1
"""Counts of sampled steps may be off by this share."""

Line = tuple[str, int]
"""A file as it was named, and a line of it."""


@dataclass
class Warned:
    """What the oracle counted at one innermost line."""

    count: int = 0
    in_grad: int = 0
    """With gradients enabled: not an evaluation."""
    user: Line = ("", 0)
    compiling: dict[Line, int] = field(default_factory=dict)
    """Those of the compiler's own work, by the user's line."""


@dataclass
class Judged:
    """One line of the oracle, and what was said of it."""

    file: str
    line: int
    user: Line
    warned: int
    in_grad: int
    counted: float = 0
    """By the recordings' own counts."""
    reported: float = 0
    """``occurrences`` of the findings there, and what is ``noted``."""
    compiling: int = 0
    """Of ``warned``, those while PyTorch compiled."""
    noted: float = 0
    """Waits that the report says the user's line makes while it compiles, where their number is close."""
    phases: dict[str, float] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        return self.reported > 0

    @property
    def exact(self) -> bool:
        return self.reported == self.warned


@dataclass
class Compared:
    lines: list[Judged]
    elsewhere: dict[str, float]
    """Warnings that a recording counted at lines where the oracle has none."""
    phases: list[dict[str, object]]
    windows: list[str]
    processes: int
    oracle_processes: int
    one_in: float
    """The sparsest counting of any phase."""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def parts(file: str) -> tuple[str, ...]:
    """The components of a path, without what stands for the folder of a library."""
    file = re.sub(r"^.*/ipykernel_\d+/", "<notebook>/", file.replace("\\", "/"))
    for folder in ("<site-packages>/", "<python>/", "<torchinductor>/", "site-packages/"):
        file = file.split(folder, 1)[-1] if folder in file else file
    return tuple(part for part in file.split("/") if part)


def same_file(one: str, other: str) -> bool:
    """Whether one path is the end of the other."""
    a, b = parts(one), parts(other)
    shared = min(len(a), len(b))
    return a[-shared:] == b[-shared:]


class Lines:
    """Values by line, for files that are named in several ways."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.by_name: dict[Line, list[Line]] = defaultdict(list)
        for file, line in lines:
            self.by_name[parts(file)[-1], line].append((file, line))

    def find(self, file: str, line: int) -> Line | None:
        for known in self.by_name.get((parts(file)[-1], line), ()):
            if same_file(known[0], file):
                return known
        return None


def read_oracle(folder: Path) -> tuple[dict[Line, Warned], int]:
    """All processes together, and how many there were."""
    lines: dict[Line, Warned] = defaultdict(Warned)
    files = list(folder.glob("*.json"))
    for file in files:
        for name, line, user_file, user_line, grad, compiling, count in json.loads(file.read_text())["counts"]:
            warned = lines[name, line]
            warned.count += count
            warned.in_grad += count if grad else 0
            warned.user = user = (user_file, user_line)
            if compiling:
                warned.compiling[user] = warned.compiling.get(user, 0) + count
    return dict(lines), len(files)


def read_recordings(folder: Path) -> list[Recording]:
    recordings = []
    for file in sorted(folder.rglob("trace*.json.gz")):
        content = msgspec.json.decode(gzip.decompress(file.read_bytes()))
        if "syncscope" in content:
            recordings.append(msgspec.convert(content["syncscope"], Recording))
    return recordings


def speakers(recordings: Iterable[Recording]) -> list[Recording]:
    """Of the files of each process, the one that speaks for all of it."""
    return [recording for recording in recordings if recording.run is not None and recording.run.main]


def counted_lines(recordings: Iterable[Recording]) -> dict[Line, float]:
    """The warnings in the recordings' own counts, scaled up where only some steps were counted."""
    lines: dict[Line, float] = defaultdict(float)
    for recording in speakers(recordings):
        assert recording.run is not None
        for wait in recording.run.waits:
            frames = recorded_frames(recording, wait.stack)
            if wait.kind == "warning" and frames:
                frame = without_wrappers(frames)[-1]
                scaled = wait.count * recording.run.phases[wait.phase].one_in
                count = scaled if wait.estimate is None else wait.estimate
                lines[frame.file, frame.line or 0] += count + wait.before
    return dict(lines)


def reported_places(report: Report) -> dict[Line, dict[str, float]]:
    """Occurrences by ``at`` and phase. Rules about waits share those of one expression out among them where a window
    recorded it, and each tell all of them where none did; what other rules say of it is no more than these, or all
    there is."""
    expressions: dict[tuple[object, ...], dict[tuple[str, bool], float]] = defaultdict(dict)
    for finding in report.findings:
        if finding.occurrences is not None and (at := finding.at or finding.site) is not None:
            run = report.traces[finding.trace].run
            process = run.pid if run is not None else None
            key = (at.file, at.line or 0, finding.phase or "", process, *expression(finding, report))
            rule = finding.rule, finding.site_source != "count"
            expressions[key][rule] = max(expressions[key].get(rule, 0), finding.occurrences)
    places: dict[Line, dict[str, float]] = defaultdict(dict)
    for (file, line, phase, *_), rules in expressions.items():
        phases = places[str(file), int(str(line))]
        shared = sum(count for (rule, recorded), count in rules.items() if rule.startswith(WAITS) and recorded)
        phases[str(phase)] = phases.get(str(phase), 0) + max(shared, *rules.values())
    return dict(places)


def expression(finding: Finding, report: Report) -> tuple[object, ...]:
    """What tells apart findings at one line in one phase: the process, and the chain of expressions."""
    site = finding.site
    chain = tuple((frame.file, frame.line) for frame in finding.chain)
    return finding.rank, site and (site.file, site.line, site.column, site.end_column), chain


def noted_waits(report: Report) -> list[CompilingWaits]:
    """What the report says of waits while it compiles, of each process once."""
    runs = [trace.run for trace in report.traces if trace.run is not None and trace.run.main]
    return [one for run in runs if run.counted is not None for one in run.counted.compiling]


def add_notes(judged: Judged, warned: Warned, notes: Iterable[CompilingWaits]) -> None:
    """Credit what the report notes of a line: as many as it says, where they are close to the warnings of the compiler
    there, and the note has the user's line of these."""
    here = [one for one in notes if same_file(one.at.file, judged.file) and one.at.line == judged.line]
    for (file, line), count in warned.compiling.items():
        said = sum(one.waits for one in here if one.site.line == line and same_file(one.site.file, file))
        if said and are_close(said, count):
            judged.noted += said
    if judged.noted:
        add_report(judged, {"while it compiles": judged.noted})


def are_close(said: float, warned: float) -> bool:
    """Whether one number of waits is as good as the other, where steps are sampled."""
    return abs(said - warned) <= max(2, CLOSE * warned)


def described_phases(report: Report) -> list[dict[str, object]]:
    runs = [trace.run for trace in report.traces if trace.run is not None and trace.run.main]
    return [msgspec.to_builtins(phase) for run in runs for phase in run.phases]


def described_windows(recordings: Iterable[Recording]) -> list[str]:
    """``train 40-45``: the phase and the numbers of the steps that were recorded."""
    said = []
    for recording in recordings:
        steps = len(recording.steps.boundaries_ns) - 1
        if steps > 0:
            rank = "" if recording.rank is None else f"rank {recording.rank} "
            first = recording.steps.first
            said.append(f"{rank}{recording.phase or '?'} {first}-{first + steps} of {steps_of(recording)}")
    return said


def steps_of(recording: Recording) -> str:
    run = recording.run
    known = [phase.steps for phase in run.phases if phase.name == recording.phase] if run is not None else []
    return str(known[0]) if known else "?"


def compare(oracle: Path, results: Path) -> Compared:
    """Raises ``OSError`` where there is no report."""
    report = Report.from_json((results / "report.json").read_bytes())
    recordings = read_recordings(results)
    warned, oracle_processes = read_oracle(oracle)
    known = Lines(warned)
    lines = {
        place: Judged(*place, one.user, one.count, one.in_grad, compiling=sum(one.compiling.values()))
        for place, one in warned.items()
    }  # fmt: skip
    elsewhere: dict[str, float] = defaultdict(float)
    for (file, line), count in counted_lines(recordings).items():
        if (place := known.find(file, line)) is not None:
            lines[place].counted += count
        else:
            elsewhere[f"{file}:{line}"] += count
    for (file, line), phases in reported_places(report).items():
        if (place := known.find(file, line)) is not None:
            add_report(lines[place], phases)
    notes = noted_waits(report)
    for place, judged in lines.items():
        add_notes(judged, warned[place], notes)
    for finding in report.findings:
        at = finding.at or finding.site
        if at is not None and (place := known.find(at.file, at.line or 0)) is not None:
            lines[place].rules = sorted({*lines[place].rules, finding.rule})
    runs = [recording.run for recording in speakers(recordings) if recording.run is not None]
    return Compared(
        lines=sorted(lines.values(), key=lambda one: -one.warned),
        elsewhere=dict(elsewhere),
        phases=described_phases(report),
        windows=described_windows(recordings),
        processes=len({recording.pid for recording in recordings}),
        oracle_processes=oracle_processes,
        one_in=max((phase.one_in for run in runs for phase in run.phases), default=1.0),
    )


def overhead_shares(results: Path) -> list[float | None]:
    """What counting cost by its own measure, a process each."""
    return [recording.run.overhead_share for recording in speakers(read_recordings(results)) if recording.run]


def add_report(judged: Judged, phases: Mapping[str, float]) -> None:
    judged.reported += sum(phases.values())
    for phase, count in phases.items():
        judged.phases[phase] = judged.phases.get(phase, 0) + count
