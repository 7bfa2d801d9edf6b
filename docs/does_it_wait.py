"""Make the page "Does it wait?" from the recordings of ``fixtures/operations``: ``python -m docs.does_it_wait``.

Writes ``does-it-wait.md`` and, for programs, ``does-it-wait.json`` beside this file.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from fixtures.operations.listing import RECORDINGS, Operation, operations
from syncscope.rules import find
from syncscope.timeline import Timeline
from syncscope.timeline.copies import HOST_COPIES
from syncscope.timeline.tables import Waits
from syncscope.trace import load
from syncscope.trace.names import MEMORY_ROLES, SYNC_ROLES

PAGE = Path(__file__).with_name("does-it-wait.md")
DATA = Path(__file__).with_name("does-it-wait.json")

ALLOCATING = ("alloc", "free")
"""Kinds of ``Waits.kind`` that only may wait."""

SHOWN = (*SYNC_ROLES, *MEMORY_ROLES, "copy")
"""Roles of the runtime calls that are counted."""

Answer = Literal["yes", "in the copy", "allocates", "no", "unsupported"]
"""``in the copy``: the copy's own call returns only when the device has taken the data. ``allocates``: the driver hands
out memory or takes it back, which may wait."""


class Row(msgspec.Struct, frozen=True):
    """One operation."""

    section: str
    operation: str
    file: str
    line: int
    answer: Answer
    waits: int
    """Calls that wait for the device."""
    with_line: int
    """Of these, how many have the operation's own line."""
    warnings: int
    """Raised by PyTorch in sync debug mode."""
    calls: dict[str, int]
    """Runtime calls that wait, copy or allocate."""
    copies: tuple[str, ...]
    """Between host and device: direction, the host's memory, bytes."""
    rules: dict[str, int]
    """The rules that have a finding at the line, with its count."""
    fix: str | None
    """The advice of the first of these findings."""
    expected: str | None
    """What PyTorch's sources suggest: ``warned``, ``silent``, ``free``."""
    error: str | None
    """Why it does not run on a GPU."""

    @property
    def observed(self) -> str:
        """What it does, in the words of ``expected``."""
        if self.warnings:
            return "warned"
        return "free" if self.answer == "no" else "silent"


class Table(msgspec.Struct, frozen=True):
    """All operations, and where they ran."""

    device: str
    torch: str
    operations: list[Row]


class RecordedRun:
    """One recording of the program ``fixtures/operations``, read operation by operation."""

    def __init__(self, mode: str) -> None:
        trace, observed = RECORDINGS[mode]
        document = json.loads(observed.read_text())
        self.torch, self.device = str(document["torch"]), str(document["device"])
        self._observed: list[dict[str, int | str | None]] = document["steps"]
        self._timeline = Timeline(load(trace))
        recording = self._timeline.trace.recording
        assert recording is not None
        self._first = recording.steps.first
        calls = self._timeline.calls
        self._calls = calls.take(np.isin(calls.role.astype(str), SHOWN))
        findings = [hit.finding for hit in find(self._timeline)[0]]
        self._findings = [f for f in findings if f.count and f.rule.startswith(("SYN", "CPY"))]

    def rows(self) -> list[Row]:
        """One row an operation, in the order of the program."""
        each = operations()
        return [self._row(one, (number - self._first) % len(each)) for number, one in enumerate(each)]

    def _row(self, operation: Operation, step: int) -> Row:
        waits = self._waits(step)
        observed = self._observed[self._first + step]
        findings = [f for f in self._findings if f.site is not None and operation.holds(f.site.file, f.site.line)]
        rules: Counter[str] = Counter()
        for finding in findings:
            rules[finding.rule] += finding.count
        return Row(
            section=operation.section,
            operation=operation.text,
            file=operation.file,
            line=operation.lines.start,
            answer="unsupported" if observed["error"] else self._answer(step),
            waits=len(waits),
            with_line=sum(self._is_at(place, operation) for place in waits.place.tolist()),
            warnings=int(observed["warnings"] or 0),
            calls=dict(sorted(Counter(self._calls_of(step)).items())),
            copies=self._copies(step),
            rules=dict(rules),
            fix=findings[0].fix if findings else None,
            expected=operation.expected,
            error=None if observed["error"] is None else str(observed["error"])[:100],
        )

    def _answer(self, step: int) -> Answer:
        if len(self._waits(step)):
            return "yes"
        waits, copies = self._timeline.waits, self._timeline.copies
        # A copy that the device had not begun when the call returned did not block the host.
        blocked = (copies.step == step) & (copies.memory == "pageable") & (copies.launch_end > copies.ts)
        return "in the copy" if blocked.any() else "allocates" if (waits.step == step).any() else "no"

    def _waits(self, step: int) -> Waits:
        waits = self._timeline.waits
        return waits.take((waits.step == step) & ~np.isin(waits.kind.astype(str), ALLOCATING))

    def _calls_of(self, step: int) -> list[str]:
        steps, ts = self._timeline.steps, self._calls.ts
        names: list[str] = self._calls.name[(ts >= steps.ts[step]) & (ts < steps.end[step])].tolist()
        return names

    def _is_at(self, place: int, operation: Operation) -> bool:
        exact = self._timeline.places[place]
        return exact.source == "hook" and exact.site is not None and operation.holds(exact.site.file, exact.site.line)

    def _copies(self, step: int) -> tuple[str, ...]:
        copies = self._timeline.copies
        copies = copies.take((copies.step == step) & np.isin(copies.direction.astype(str), HOST_COPIES))
        columns = copies.direction.tolist(), copies.memory.tolist(), copies.bytes.tolist()
        return tuple(f"{direction} {memory} {size}" for direction, memory, size in zip(*columns, strict=True))


def read_recording(mode: str = "windows") -> Table:
    """The table, from the recording in one mode."""
    run = RecordedRun(mode)
    return Table(run.device, run.torch, run.rows())


def read_data() -> Table:
    """The table as it was written."""
    return msgspec.json.decode(DATA.read_bytes(), type=Table)


def write(table: Table) -> None:
    """Write the data, one operation a line, and the page."""
    # No operation's own text looks like the end of one row and the start of the next.
    text = msgspec.json.encode(table).decode().replace('},{"section"', '},\n{"section"')
    DATA.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(render(table), encoding="utf-8")


ANSWERS: dict[Answer, str] = {
    "yes": "**yes**",
    "in the copy": "**in the copy**",
    "allocates": "may",
    "no": "no",
    "unsupported": "–",
}
CALLS = {
    "cudaStreamSynchronize": "waits for the stream",
    "cudaDeviceSynchronize": "waits for the device",
    "cudaEventSynchronize": "waits for an event",
    "cudaMemcpy": "copies and waits",
    "cudaMalloc": "allocates from the driver",
    "cudaFree": "gives memory back to the driver",
    "cudaHostAlloc": "allocates pinned memory",
}
ROUTES = {"HtoD": "from", "DtoH": "to"}
EXPECTED = {"warned": "waits, with a warning", "silent": "waits, without a warning", "free": "does not wait"}

HEAD = """\
# Does it wait?

This page says of {count} PyTorch operations whether they make the host wait for the GPU: {waiting} of them do. Each ran
on its own on an {device} with torch {torch}. It was warm, and a kernel was still running in front of it. The page
is made from the recording (`python -m docs.does_it_wait`), not from reading sources. Other versions may differ.

- **yes**: a runtime call waits for everything queued before it.
- **in the copy**: no call waits, and PyTorch does not warn. But the copy's own call returns only when the device has
  taken the data, even with `non_blocking=True`. This happens with pageable memory.
- **may**: the driver hands out memory or takes it back, which may wait.
- *warned*: PyTorch's sync debug mode (`torch.cuda.set_sync_debug_mode("warn")`) sees the wait. It sees no other.

Copies are between the host and the device, and the memory named is the host's. `x`, `loss`, `mask`, `index`, `count`
and so on are on the device. `host`, `small` and `weights` are in pageable memory; `pinned`, `half` and `strided` are in
pinned memory. The program is in `fixtures/operations`, and `docs/does-it-wait.json` has the table for programs.
"""
COLUMNS = "| operation | waits | what happens | rule | instead |\n|---|---|---|---|---|"
DIFFERENT = """\
## Different from what the sources suggest

What PyTorch 2.6's sources suggest, and what the device did.

| operation | expected | observed |
|---|---|---|"""


def render(table: Table) -> str:
    """The page in Markdown."""
    rows = table.operations
    waiting = sum(row.answer in ("yes", "in the copy") for row in rows)
    parts = [HEAD.format(count=len(rows), waiting=waiting, device=table.device, torch=table.torch)]
    for section, members in itertools.groupby(rows, key=lambda row: row.section):
        lines = [_line(row) for row in members]
        parts.append(f"## {section}\n\n{COLUMNS}\n" + "\n".join(lines) + "\n")
    others = [row for row in rows if row.expected not in (None, row.observed) and row.answer != "unsupported"]
    lines = [
        f"| {_code(row.operation)} | {EXPECTED[row.expected or '']} | {EXPECTED[row.observed]} |" for row in others
    ]
    parts.append(f"{DIFFERENT}\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(row: Row) -> str:
    warned = ", warned" if row.warnings else ""
    fix = row.fix if row.rules and row.fix else ""
    rules = " ".join(row.rules) or ("found, but not its line" if row.waits else "")
    cells = [_code(row.operation), ANSWERS[row.answer] + warned, _describe(row), rules, _cell(fix)]
    return "| " + " | ".join(cells) + " |"


def _describe(row: Row) -> str:
    """The copies, then the calls that wait or allocate; each kind once, with its number."""
    if row.answer == "unsupported":
        return "does not run on a GPU"
    copies: Counter[str] = Counter()
    for copy in row.copies:
        direction, memory, size = copy.split(" ")
        copies[f"copies {_size(int(size))} {ROUTES[direction]} {memory} memory"] += 1
    calls = Counter({meaning: row.calls[name] for name, meaning in CALLS.items() if name in row.calls})
    return ", ".join(text if number == 1 else f"{text} ×{number}" for text, number in (copies + calls).items())


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB" if count >= 1 << 10 else f"{count} B"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    write(read_recording())
