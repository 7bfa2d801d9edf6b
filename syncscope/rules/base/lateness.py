"""What a finding about collectives says of ranks that come late: nothing from one rank, a figure from several."""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

from syncscope.schema.findings import Finding
from syncscope.schema.numbers import milliseconds
from syncscope.schema.ranks import BetweenRanks, RankBetween

ALONE = "; one rank alone does not show whether another rank comes late"
APART = "; the ranks given do not have the same collectives, which does not show whether another rank comes late"
TOGETHER = "; in all its collectives this rank waits "

LEAST_MS = 0.05
"""Less than this many milliseconds a step count as none."""


def tell_of_ranks(
    findings: Sequence[Finding], code: str, between: BetweenRanks | None, apart: Set[int]
) -> list[Finding]:
    """The findings, where those of the rule ``code`` say how long their rank waits for others, if it was compared with
    them, or that the traces ``apart`` could not be. What an earlier comparison said is replaced."""
    clauses = {row.trace: _clause(row) for row in between.ranks} if between is not None else {}
    clauses |= dict.fromkeys(apart, APART)
    return [
        msgspec.structs.replace(finding, message=_message(finding.message, clauses[finding.trace]))
        if finding.rule == code and finding.trace in clauses
        else finding
        for finding in findings
    ]


def _message(message: str, clause: str) -> str:
    for known in (ALONE, APART, TOGETHER):
        head, found, tail = message.rpartition(known)
        if found:
            # What follows the clause is in brackets.
            more = tail[tail.index(" (") :] if " (" in tail else ""
            return f"{head}{clause}{more}"
    return message


def _clause(row: RankBetween) -> str:
    waits = TOGETHER
    if row.waits_ms_per_step < LEAST_MS:
        waits += "for no other"
    else:
        most = row.waits_for[0].rank if row.waits_for else None
        whom = "" if most is None else f", mostly for rank {most}"
        waits += f"{milliseconds(row.waits_ms_per_step)} a step for others that come late{whom}"
    if row.waits_before_ms is not None and row.waits_before_ms >= LEAST_MS:
        waits += f", and {milliseconds(row.waits_before_ms)} once for one that began the first recorded step later"
    return waits
