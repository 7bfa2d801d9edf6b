"""The lines that wait, each found once, soon after its first wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from syncscope.schema.counting import PhaseKind, RecordedPhase, RecordedRun
from syncscope.schema.recording import RecordedFrame

MOST_LINES = 10_000
"""Places that are remembered. Further ones are not looked at."""


@dataclass(frozen=True)
class WaitingLine:
    """A line of the user's that waits for the device."""

    file: str
    """As in reports: relative to the project, else ``<site-packages>/…``."""
    line: int | None
    function: str
    expression: str | None
    phase: str
    kind: PhaseKind
    """Of the phase."""

    @property
    def place(self) -> Place:
        return self.file, self.function, self.expression

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.expression or ''} in {self.function} ({self.phase})"


Place = tuple[str, str, "str | None"]
"""File, function and expression."""
Resolved = tuple[Sequence[RecordedFrame], Sequence[Sequence[int]]]
"""Frames, and for each stack the numbers of its frames, as ``Stacks.resolve`` returns them."""

Judge = Callable[[WaitingLine], bool]
"""Whether a line is known: in the baseline, or expected."""


class Lines:
    """Finds lines that it has not seen before.

    A line that ``known`` does not know is new, in phases whose kind or name is in ``phases``. A run that never has such
    a phase is judged in its longest one, at its end. Without ``known`` nothing is new.
    """

    def __init__(self, known: Judge | None = None, phases: Collection[str] = ("train",)) -> None:
        self.new: list[WaitingLine] = []
        """Once for each place, in the order in which they were found."""
        self._known = known
        self._phases = frozenset(phases)
        self._seen: dict[tuple[int, int], WaitingLine | None] = {}
        """By phase and stack; ``None`` for what is not a wait, is expected, or is the compiler's."""
        self._places: set[Place] = set()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def judged(self) -> bool:
        """Whether there is something to judge lines by."""
        return self._known is not None

    def find(self, run: RecordedRun, resolve: Callable[[], Resolved]) -> list[WaitingLine]:
        """The lines that wait and were not there the last time. ``resolve`` is called only where there are any."""
        unseen = [wait for wait in run.waits if (wait.phase, wait.stack) not in self._seen]
        if not unseen or len(self._seen) >= MOST_LINES:
            return []
        frames, stacks = resolve()
        found: list[WaitingLine] = []
        for wait in unseen:
            if wait.stack >= len(stacks):
                continue  # of a moment ago: the next time
            line = waiting_line([frames[number] for number in stacks[wait.stack]], run.phases[wait.phase])
            counts = line is not None and not wait.may_wait and not wait.compiling
            self._seen[wait.phase, wait.stack] = line if counts and wait.expected is None else None
            if line is not None and counts and line.place not in self._places:
                self._places.add(line.place)
                found.append(line)
        return found

    def judge(self, run: RecordedRun) -> list[WaitingLine]:
        """The lines that have become new since the last time, of those that ``find`` found."""
        if self._known is None:
            return []
        phases = [number for number, phase in enumerate(run.phases) if {phase.kind, phase.name} & self._phases]
        if not phases and run.complete and run.phases:
            phases = [max(range(len(run.phases)), key=lambda number: run.phases[number].time_ns)]
        known_new = {line.place for line in self.new}
        begun = len(self.new)
        for (phase, stack), line in self._seen.items():
            if line is None or phase not in phases or line.place in known_new:
                continue
            if self._known(line):
                self._seen[phase, stack] = None
            else:
                known_new.add(line.place)
                self.new.append(line)
        return self.new[begun:]


def waiting_line(stack: Sequence[RecordedFrame], phase: RecordedPhase) -> WaitingLine | None:
    """The site of a wait: its innermost frame of the user's, else the outermost one."""
    if not stack:
        return None
    site = next((frame for frame in reversed(stack) if frame.user), stack[0])
    return WaitingLine(site.file, site.line, site.function, site.expression, phase.name, phase.kind)
