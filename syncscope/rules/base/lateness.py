"""What a finding about collectives says of ranks that come late: nothing from one rank, a figure from several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

import msgspec

from syncscope.rules.base.collective_advice import ALONE_WITH_PEER, COMPARED
from syncscope.schema.findings import Finding
from syncscope.schema.numbers import milliseconds
from syncscope.schema.ranks import BetweenRanks, RankBetween
from syncscope.trace.names import collective_of_call

ALONE = "; one rank alone does not show whether another rank comes late"
WHICH = "; one rank alone does not show which rank comes late"
APART = "; the ranks given do not have the same collectives, which does not show whether another rank comes late"
UNMET = "; these could not be compared with those of another rank, so nothing shows which rank comes late"
TOGETHER = "; in all its collectives this rank waits "
PARTLY = "; in those of its collectives that can be compared this rank waits "

LEAST_MS = 0.05
"""Less than this many milliseconds a step (in all, without steps) count as none."""

MOST = 0.5
"""A rank that waits for this share of the exposed time waits for most of it."""


def tell_of_ranks(
    findings: Sequence[Finding],
    code: str,
    between: BetweenRanks | None,
    apart: Set[int],
    alone: Mapping[int, Set[str]],
) -> list[Finding]:
    """The findings, where those of the rule ``code`` say how long their rank waits for others, if it was compared with
    them, or that the traces ``apart`` could not be, or that those of its collectives could not that it has ``alone``.
    What an earlier comparison said is replaced."""
    exposed: Counter[int] = Counter()
    for finding in findings:
        if finding.rule == code:
            exposed[finding.trace] += round(_exposed_ms(finding) * 1e6)
    clauses, rows = {}, {}
    if between is not None:
        clauses = {row.trace: _clause(row, between, exposed[row.trace] / 1e6) for row in between.ranks}
        rows = {row.trace: row for row in between.ranks}
    clauses |= dict.fromkeys(apart, APART)

    def told(finding: Finding) -> Finding:
        unmet = collective_of_call(finding.op or "") in alone.get(finding.trace, ())
        return msgspec.structs.replace(
            finding if unmet else _without_waiting(finding, _left(finding, rows.get(finding.trace))),
            message=_message(finding.message, UNMET if unmet else clauses[finding.trace]),
            fix=_fix(finding.fix, compared=not unmet and finding.trace not in apart),
        )

    return [told(one) if one.rule == code and one.trace in clauses else one for one in findings]


def waits_ms(row: RankBetween, between: BetweenRanks) -> float:
    """Milliseconds a step (in all, without steps) that a rank waits for others, with what it waits once."""
    return row.waits_ms_per_step + (row.waits_before_ms or 0.0) / max(between.steps, 1)


def _exposed_ms(finding: Finding) -> float:
    """Milliseconds a step, or in all where there are no steps."""
    return (finding.exposed_ms_per_step if finding.per_step is not None else finding.exposed_ms) or 0.0


def _without_waiting(finding: Finding, left: float) -> Finding:
    """The finding with no more to gain than what it is exposed for without waiting: ``left`` is that share of it. The
    late rank's own findings are about the rest. A saving that bare steps confirm stays."""
    low, high, likely = (
        finding.saving_low_ms_per_step, finding.saving_high_ms_per_step, finding.likely_saving_ms_per_step
    )  # fmt: skip
    if finding.saving_ms_per_step is not None or high is None:
        return finding
    most = round(_exposed_ms(finding) * left, 6)
    return msgspec.structs.replace(
        finding,
        saving_low_ms_per_step=None if low is None else min(low, most),
        saving_high_ms_per_step=min(high, most),
        likely_saving_ms_per_step=None if likely is None else min(likely, most),
    )


def _message(message: str, clause: str) -> str:
    for known in (ALONE, WHICH, APART, UNMET, TOGETHER, PARTLY):
        head, found, tail = message.rpartition(known)
        if found:
            # What follows the clause is in brackets.
            more = tail[tail.index(" (") :] if " (" in tail else ""
            return f"{head}{clause}{more}"
    return message


def _fix(fix: str, *, compared: bool) -> str:
    """To record the other ranks, too, helps only where their traces are not given."""
    late = (ALONE_WITH_PEER.sentence, COMPARED.sentence)
    return late[compared] if fix in late else fix


def _left(finding: Finding, row: RankBetween | None) -> float:
    """The share of what a finding's collectives are exposed for in which its rank waits for no other."""
    if row is None or row.in_kinds is None or finding.collectives is msgspec.UNSET:
        return 1.0
    kinds = [kind for kind in row.in_kinds if kind.name in finding.collectives]
    exposed, waits = (sum(getattr(kind, f"{of}_ms_per_step") for kind in kinds) for of in ("exposed", "waits"))
    return max(1 - waits / exposed, 0.0) if exposed else 1.0


def _clause(row: RankBetween, between: BetweenRanks, exposed_ms: float) -> str:
    """How long a rank waits for others, beside what its collectives are exposed for, in ms a step (in all, where there
    are no steps)."""
    clause, before = PARTLY if row.not_compared else TOGETHER, row.waits_before_ms or 0.0
    per, began = ("", "recording") if between.whole else (" a step", "the first recorded step")
    if row.waits_ms_per_step < LEAST_MS:
        clause += "for no other"
    else:
        most = row.waits_for[0].rank if row.waits_for else None
        whom = "" if most is None else f", mostly for rank {most}"
        clause += f"{milliseconds(row.waits_ms_per_step)}{per} for others that come late{whom}"
    if before >= LEAST_MS:
        clause += f", and {milliseconds(before)} once for one that began {began} later"
    if between.missing:
        noun = "rank" if between.missing == 1 else "ranks"
        clause += f", besides what it waits for {between.missing} {noun} without a trace"
    waits = waits_ms(row, between)
    if waits < max(LEAST_MS, MOST * exposed_ms):
        return clause
    again = row.waits_ms_per_step >= MOST * waits
    return f"{clause}: most of what is exposed{', so see to the late rank first' if again else ''}"
