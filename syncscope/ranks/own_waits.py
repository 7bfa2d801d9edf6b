"""How long a rank waits for others in the collectives that each of its findings is about."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from syncscope.ranks.clocks import Meeting
from syncscope.schema.ranks import FindingBetween
from syncscope.schema.report import TraceInfo

Before = Mapping[int, float]
"""How long ranks wait in one meeting for one that began later, in ms, by the trace's place in the report."""


class _OfFinding(msgspec.Struct):
    """Times are in ms."""

    exposed: float = 0.0
    many: int = 0
    compared: int = 0
    waits: float = 0.0
    before: float = 0.0
    waits_for: Counter[int] = msgspec.field(default_factory=Counter)
    """In ns."""


def find_own_waits(
    ranks: Mapping[int, TraceInfo], meetings: Iterable[tuple[Meeting, Before]]
) -> dict[int, tuple[FindingBetween, ...]]:
    """For each trace what its findings' collectives wait for others, by the ``meetings`` that ranks have in common."""
    known: dict[int, defaultdict[int, _OfFinding]] = {trace: defaultdict(_OfFinding) for trace in ranks}
    for trace, info in ranks.items():
        for one in info.meetings.collectives if info.meetings else ():
            for finding, exposed in zip(one.findings, one.each_exposed_ms, strict=False):
                known[trace][finding].exposed += exposed
                known[trace][finding].many += 1
    for meeting, before in meetings:
        _compare(meeting, before, known)
    return {trace: tuple(_row(number, own[number]) for number in sorted(own)) for trace, own in known.items()}


def _compare(meeting: Meeting, before: Before, known: Mapping[int, defaultdict[int, _OfFinding]]) -> None:
    """Count a meeting: what a rank is exposed for beyond the time of the rank that came last, it waits. Those several
    in a row that are kept one by one on all ranks are compared so; else their sum is shared out."""
    lengths = {trace: one.each_ms or (one.ms,) for trace, one in meeting.items()}
    each = zip(*lengths.values(), strict=True) if len(set(map(len, lengths.values()))) == 1 else ()
    last = [min(zip(row, lengths, strict=True)) for row in each]
    shortest = min((one.ms, trace) for trace, one in meeting.items())
    for trace, one in meeting.items():
        left, share = before.get(trace, 0.0), max(1 - shortest[0] / one.ms, 0.0) if one.ms else 0.0
        for place, (finding, exposed) in enumerate(zip(one.findings, one.each_exposed_ms, strict=False)):
            own = known[trace][finding]
            waits = max(exposed - one.exposed_last(place, last[place][0]), 0.0) if last else exposed * share
            own.compared += 1
            own.waits += waits
            own.before += min(waits, left)
            own.waits_for[(last[place] if last else shortest)[1]] += round((waits - min(waits, left)) * 1e6)
            left -= min(waits, left)


def _row(number: int, own: _OfFinding) -> FindingBetween:
    longest = max(own.waits_for, key=lambda trace: (own.waits_for[trace], -trace), default=None)
    if longest is not None and own.waits_for[longest] <= 0:
        longest = None
    return FindingBetween(
        meets=number,
        collectives=own.many,
        not_compared=own.many - own.compared,
        exposed_ms=round(own.exposed, 6),
        waits_ms=round(own.waits, 6),
        before_ms=round(own.before, 6),
        longest_for=longest,
        longest_ms=0.0 if longest is None else round(own.waits_for[longest] * 1e-6, 6),
    )
