"""What a finding about collectives says of ranks that come late: nothing from one rank, a figure from several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

import msgspec

from syncscope.rules.base.collective_advice import ALONE_WITH_PEER, COMPARED
from syncscope.schema.findings import Finding
from syncscope.schema.numbers import milliseconds
from syncscope.schema.ranks import BetweenRanks, FindingBetween, RankBetween
from syncscope.trace.names import collective_of_call

ALONE = "; one rank alone does not show whether another rank comes late"
WHICH = "; one rank alone does not show which rank comes late"
APART = "; the ranks given do not have the same collectives, which does not show whether another rank comes late"
UNMET = "; these could not be compared with those of another rank, so nothing shows which rank comes late"
OWN = "; in them this rank waits "
OWN_PARTLY = "; in those of them that can be compared this rank waits "
TOGETHER = "; in all its collectives this rank waits "
PARTLY = "; in those of its collectives that can be compared this rank waits "

LEAST_MS = 0.05
"""Less than this many milliseconds a step (in all, without steps) count as none."""

MOST = 0.5
"""A rank that waits for this share of the exposed time waits for most of it, and mostly for another if it waits for
that one for this share."""


def tell_of_ranks(
    findings: Sequence[Finding],
    code: str,
    between: BetweenRanks | None,
    apart: Set[int],
    alone: Mapping[int, Set[str]],
    without_meetings: Set[int] = frozenset(),
) -> list[Finding]:
    """The findings, where those of the rule ``code`` say how long their rank waits for others in their collectives, or
    that these could not be compared, as those of the traces ``apart``, and of those ``without_meetings``. What an
    earlier comparison said is replaced.

    A report of an earlier version does not say which collectives a finding is about: there it is what the rank waits in
    all, and could not be compared what it has ``alone``.
    """
    exposed: Counter[int] = Counter()
    for finding in findings:
        if finding.rule == code:
            exposed[finding.trace] += round(_exposed_ms(finding) * 1e6)
    rows = {row.trace: row for row in between.ranks} if between is not None else {}

    def told(finding: Finding) -> Finding:
        row = rows.get(finding.trace)
        if finding.trace in without_meetings:
            return _saying(finding, UNMET, compared=False)
        if between is None or row is None or finding.trace in apart:
            return _saying(finding, APART, compared=False)
        own = _own(finding, row)
        if own is None:
            clause = _clause(row, between, exposed[row.trace] / 1e6)
            unmet = collective_of_call(finding.op or "") in alone.get(finding.trace, ()) or _unmet(finding, row)
        else:
            clause = _own_clause(finding, own, between)
            unmet = own.not_compared == own.collectives
        if unmet:
            return _saying(finding, UNMET, compared=not between.missing)
        gained = _without_waiting(finding, _left(finding, row, own), in_turn=own is not None and _in_turn(own))
        return _saying(gained, clause, compared=True)

    known = rows.keys() | apart | without_meetings
    return [told(one) if one.rule == code and one.trace in known else one for one in findings]


def _saying(finding: Finding, clause: str, *, compared: bool) -> Finding:
    """The finding, which says of ranks that come late what the clause does."""
    return msgspec.structs.replace(
        finding, message=_message(finding.message, clause), fix=_fix(finding.fix, compared=compared)
    )


def _unmet(finding: Finding, row: RankBetween) -> bool:
    """Whether none of the kinds of a finding was compared, where the report would say of which finding each is."""
    if row.in_findings is None or row.in_kinds is None or finding.collectives is msgspec.UNSET:
        return False
    return not {kind.name for kind in row.in_kinds} & set(finding.collectives)


def _own(finding: Finding, row: RankBetween) -> FindingBetween | None:
    """What the rank waits in the collectives of the finding; ``None`` where the report does not say which they are."""
    if finding.meets is msgspec.UNSET or row.in_findings is None:
        return None
    return next((own for own in row.in_findings if own.meets == finding.meets), None)


def waits_ms(row: RankBetween, between: BetweenRanks) -> float:
    """Milliseconds a step (in all, without steps) that a rank waits for others, with what it waits once."""
    return row.waits_ms_per_step + (row.waits_before_ms or 0.0) / max(between.steps, 1)


def _exposed_ms(finding: Finding) -> float:
    """Milliseconds a step, or in all where there are no steps."""
    return (finding.exposed_ms_per_step if finding.per_step is not None else finding.exposed_ms) or 0.0


def _without_waiting(finding: Finding, left: float, *, in_turn: bool) -> Finding:
    """The finding with no more to gain than what it is exposed for without waiting: ``left`` is that share of it. The
    late rank's own findings are about the rest. Where ranks come late ``in_turn`` there are none, and fewer or hidden
    collectives take the waiting with them: that much is gained at most, though not likely. The least is as far below
    the rest as before: less to gain is no more certain. A saving that bare steps confirm stays."""
    low, high, likely = (
        finding.saving_low_ms_per_step, finding.saving_high_ms_per_step, finding.likely_saving_ms_per_step
    )  # fmt: skip
    if finding.saving_ms_per_step is not None or high is None:
        return finding
    exposed = _exposed_ms(finding)
    most = round(exposed * left, 6)
    return msgspec.structs.replace(
        finding,
        saving_low_ms_per_step=None if low is None else min(low, round(most * low / high, 6) if high else most),
        saving_high_ms_per_step=min(high, round(exposed, 6) if in_turn else most),
        likely_saving_ms_per_step=None if likely is None else min(likely, most),
    )


def _message(message: str, clause: str) -> str:
    for known in (ALONE, WHICH, APART, UNMET, OWN, OWN_PARTLY, TOGETHER, PARTLY):
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


def _left(finding: Finding, row: RankBetween, own: FindingBetween | None) -> float:
    """The share of what a finding's collectives are exposed for in which its rank waits for no other. Where the report
    does not say which they are, it is that of all of their kinds."""
    if own is not None:
        return _share_left(own.exposed_ms, own.waits_ms)
    if row.in_kinds is None or finding.collectives is msgspec.UNSET:
        return 1.0
    kinds = [kind for kind in row.in_kinds if kind.name in finding.collectives]
    exposed, waits = (sum(getattr(kind, f"{of}_ms_per_step") for kind in kinds) for of in ("exposed", "waits"))
    return _share_left(exposed, waits)


def _share_left(exposed: float, waits: float) -> float:
    return max(1 - waits / exposed, 0.0) if exposed else 1.0


def _own_clause(finding: Finding, own: FindingBetween, between: BetweenRanks) -> str:
    """How long a rank waits for others in the collectives of a finding, in ms a step (in all, without steps)."""
    exposed = _exposed_ms(finding)
    waits, before = (exposed * (1 - _share_left(own.exposed_ms, ms)) for ms in (own.waits_ms, own.before_ms))
    whom = next((row.rank for row in between.ranks if row.trace == own.longest_for), None)
    in_turn = _in_turn(own)
    clause = OWN_PARTLY if own.not_compared else OWN
    clause += _waiting(waits - before, own.before_ms, whom, between, in_turn=in_turn)
    return clause + _most(waits, waits - before, exposed, in_turn=in_turn)


def _in_turn(own: FindingBetween) -> bool:
    """Whether others come late in turn, as no one rank is waited for most of the time."""
    return own.longest_ms is not None and own.longest_ms < MOST * (own.waits_ms - own.before_ms)


def _waiting(waits: float, before: float, whom: int | None, between: BetweenRanks, *, in_turn: bool) -> str:
    """How long a rank waits a step, and ``before`` that, in ms; mostly for the rank ``whom``, or for others
    ``in_turn``."""
    per, began = ("", "recording") if between.whole else (" a step", "the first recorded step")
    if waits < LEAST_MS:
        clause = "for no other"
    else:
        mostly = " in turn" if in_turn else "" if whom is None else f", mostly for rank {whom}"
        clause = f"{milliseconds(waits)}{per} for others that come late{mostly}"
    if before >= LEAST_MS:
        clause += f", and {milliseconds(before)} once for one that began {began} later"
    if between.missing:
        noun = "rank" if between.missing == 1 else "ranks"
        clause += f", besides what it waits for {between.missing} {noun} without a trace"
    return clause


def _most(waits: float, again: float, exposed: float, *, in_turn: bool) -> str:
    """Whether a rank waits for most of what is exposed, and whether that comes again: all in ms a step. Where others
    come late ``in_turn``, there is no late rank to see to."""
    if waits < max(LEAST_MS, MOST * exposed):
        return ""
    first = "share out the work more evenly" if in_turn else "see to the late rank"
    return f": most of what is exposed{f', so {first} first' if again >= MOST * waits else ''}"


def _clause(row: RankBetween, between: BetweenRanks, exposed_ms: float) -> str:
    """How long a rank waits for others in all its collectives, beside what they are exposed for, in ms a step (in all,
    where there are no steps)."""
    whom = row.waits_for[0].rank if row.waits_for else None
    in_turn = bool(row.waits_for) and row.waits_for[0].ms_per_step < MOST * row.waits_ms_per_step
    clause = PARTLY if row.not_compared else TOGETHER
    clause += _waiting(row.waits_ms_per_step, row.waits_before_ms or 0.0, whom, between, in_turn=in_turn)
    return clause + _most(waits_ms(row, between), row.waits_ms_per_step, exposed_ms, in_turn=in_turn)
