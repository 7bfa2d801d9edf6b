"""One place, one card: findings of several rules about the same copies at one place are shown together.

Filters, counts and the JSON report stay by rule. Every output that shows findings to people groups them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from syncscope.report.finding_phrases import group_alike
from syncscope.schema.findings import BETWEEN_RANKS, RACES, Finding, gain
from syncscope.schema.report import Report


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of one place. Its saving and its fix are those of the finding that gains most."""

    groups: tuple[tuple[Finding, ...], ...]
    """A group for each rule, the one that gains most first; a group has the same finding of each trace, the heaviest
    first."""

    @property
    def lead(self) -> Finding:
        """The finding that the card shows."""
        return self.groups[0][0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of the card, of all rules and traces."""
        return tuple(finding for group in self.groups for finding in group)

    @property
    def tags(self) -> tuple[tuple[str, str], ...]:
        """Code and name of each rule."""
        return tuple((group[0].rule, group[0].name) for group in self.groups)

    @property
    def traces(self) -> int:
        """How many traces have it."""
        return len({finding.trace for finding in self.findings})


def make_cards(findings: Iterable[Finding]) -> list[Card]:
    """The cards of findings in their order. A finding that has the same cause as another at the same place, as
    ``related`` says, joins its card; races and causes of idle time have their own. So has a rank that comes late, whose
    gain is never known, where no line shows the place and what waits for it gains something by itself."""
    cards: list[list[list[Finding]]] = []
    at_place: dict[object, list[list[list[Finding]]]] = {}
    for group in group_alike(findings):
        lead = group[0]
        place = (lead.phase, lead.status, lead.site, lead.at, lead.annotation)
        near = at_place.setdefault(place, [])
        card = next((one for one in near if _belongs(lead, one)), None)
        if card is None:
            card = []
            cards.append(card)
            near.append(card)
        card.append(group)
    return [Card(groups=tuple(map(tuple, card))) for card in cards]


def _belongs(finding: Finding, card: Sequence[Sequence[Finding]]) -> bool:
    """Whether a finding has the cause of a card at its place. Two findings of one rule stay two."""
    others = [group[0] for group in card]
    if _alone(finding) or any(_alone(other) or other.rule == finding.rule for other in others):
        return False
    whole = (*others, finding)
    if finding.site is None and any(one.rule.startswith(BETWEEN_RANKS) for one in whole):
        # Without a line nothing shows that they are at one place.
        return all(gain(one) is None for one in whole) and _are_related(finding, others)
    return _are_related(finding, others)


def _are_related(finding: Finding, others: Sequence[Finding]) -> bool:
    return any(other.fingerprint in finding.related or finding.fingerprint in other.related for other in others)


def _alone(finding: Finding) -> bool:
    return finding.rule.startswith(RACES) or bool(finding.causes) or finding.sums_up


def choose_findings(report: Report) -> list[Finding]:
    """The unexpected findings that are worth a card: those that only sum up others are left out, where one of these is
    there."""
    found = [finding for finding in report.findings if finding.status == "unexpected"]
    own = {(finding.trace, finding.fingerprint) for finding in found if not finding.sums_up}
    return [
        finding
        for finding in found
        if not (finding.sums_up and any((finding.trace, other) in own for other in _summed_up(finding)))
    ]


def _summed_up(finding: Finding) -> Iterable[str]:
    return (*finding.related, *(print_ for cause in finding.causes for print_ in cause.covered_by))
