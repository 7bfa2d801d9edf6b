"""Ranks that wait more or less often than the others of their run, by the counts of the whole run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import Recording
from syncscope.trace.quantiles import median

LEAST_RANKS = 3
"""Of two that differ, nobody can say which is the odd one."""
SHARE = 0.2
"""Rates that differ by less than this share are the same."""
LEAST = 0.01
"""Waits a step, below which a difference is none."""

Place = tuple[str, str, str, str]
"""Phase, file, function and expression."""


def describe_differences(recordings: Mapping[int, Recording]) -> dict[int, str]:
    """For each rank that differs from the others one sentence about the line that differs most. By rank."""
    rates: dict[Place, dict[int, float]] = defaultdict(dict)
    lines: dict[Place, int | None] = {}
    for rank, recording in recordings.items():
        for place, line, rate in _rates(recording):
            rates[place][rank] = rates[place].get(rank, 0.0) + rate
            lines.setdefault(place, line)
    if len(recordings) < LEAST_RANKS:
        return {}
    worst: dict[int, tuple[float, str]] = {}
    for place, by_rank in rates.items():
        every = {rank: by_rank.get(rank, 0.0) for rank in recordings}
        usual = median(list(every.values()))
        odd = {rank: rate for rank, rate in every.items() if abs(rate - usual) > max(LEAST, SHARE * max(rate, usual))}
        if 2 * len(odd) >= len(every):
            continue  # they differ among each other
        for rank, rate in odd.items():
            distance = abs(rate - usual)
            if distance > worst.get(rank, (0.0, ""))[0]:
                worst[rank] = distance, _sentence(rank, place, lines[place], rate, usual)
    return {rank: sentence for rank, (_, sentence) in sorted(worst.items())}


def _rates(recording: Recording) -> Iterator[tuple[Place, int | None, float]]:
    run: RecordedRun | None = recording.run
    for wait in run.waits if run is not None else ():
        phase = run.phases[wait.phase] if run is not None else None
        if phase is None or not phase.counted_steps or wait.may_wait:
            continue
        stack = [recording.frames[number] for number in recording.stacks[wait.stack]]
        if stack:
            site = next((frame for frame in reversed(stack) if frame.user), stack[0])
            place = phase.name, site.file, site.function, site.expression or ""
            yield place, site.line, wait.count / phase.counted_steps


def _sentence(rank: int, place: Place, line: int | None, rate: float, usual: float) -> str:
    phase, file, _, expression = place
    return (
        f"Rank {rank} differs from the other ranks: {file}:{line} {expression} waits {rate:.3g} times a step of "
        f"{phase} there, {usual:.3g} times on most others."
    )
