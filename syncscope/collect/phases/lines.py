"""At which lines the program is in each phase, by a look now and then."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import CodeType

from msgspec import structs

from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.sites.stacks import Stacks, frames_of
from syncscope.collect.sites.threads import current_frames
from syncscope.schema.counting import MAX_LINES, RecordedPhase, SampledLine

MOST_FRAMES, MOST_STACKS = 8, 1000
"""Frames of the user's that are kept of a look, the innermost, and different ones in all."""

Frames = tuple[tuple[CodeType, int], ...]
"""Code and instruction of the user's frames, outermost first."""


class PhaseLines:
    """Counts where the thread is whose phases ``tracker`` follows. ``look`` is called on a thread of ours.

    Only the user's frames are kept, and stacks of waits stay apart from them: the program may run on meanwhile.
    """

    def __init__(self, tracker: PhaseTracker, stacks: Stacks) -> None:
        self._tracker = tracker
        self._stacks = stacks
        self._looks: Counter[Phase] = Counter()
        self._seen: dict[tuple[Phase, Frames], int] = {}

    def look(self) -> None:
        """Look once."""
        phase = self._tracker.current
        frame = current_frames().get(self._tracker.thread)
        if frame is None:
            return
        taken = [one for one in frames_of(frame) if self._stacks.is_user(one[0].co_filename)]
        self._looks[phase] += 1
        key = phase, tuple(reversed(taken[:MOST_FRAMES]))
        if key[1] and (key in self._seen or len(self._seen) < MOST_STACKS):
            self._seen[key] = self._seen.get(key, 0) + 1

    def added_to(self, phases: tuple[RecordedPhase, ...]) -> tuple[RecordedPhase, ...]:
        """``phases``, by their numbers, each with how often it was looked at, and where the program was then."""
        looks: Counter[int] = Counter()
        for phase, number in self._looks.copy().items():
            looks[_whole(phase).number] += number
        seen: defaultdict[int, Counter[Frames]] = defaultdict(Counter)
        for (phase, frames), number in self._seen.copy().items():
            seen[_whole(phase).number][frames] += number
        return tuple(
            structs.replace(recorded, samples=looks[number], lines=self._lines(seen[number]))
            for number, recorded in enumerate(phases)
        )

    def _lines(self, seen: Counter[Frames]) -> tuple[SampledLine, ...]:
        return tuple(
            SampledLine(stack=self._stacks.extend(None, frames), samples=number)
            for frames, number in seen.most_common(MAX_LINES)
        )


def _whole(phase: Phase) -> Phase:
    """The phase that ``phase`` turned out to be part of, or itself."""
    while phase.folded_into is not None:
        phase = phase.folded_into
    return phase
