"""One place, one card: findings of several rules about the same copies at one place are shown together, and so is the
same line in several phases of a program, since one change mends it in all of them.

Filters, counts and the JSON report stay by rule. Every output that shows findings to people groups them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from syncscope.report.finding_phrases import group_alike
from syncscope.schema.findings import BETWEEN_RANKS, COUNTED, NOTHING, RACES, SEVERITIES, Finding, gain
from syncscope.schema.report import Report


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of one place. Its saving and its fix are those of the finding that gains most."""

    groups: tuple[tuple[Finding, ...], ...]
    """A group for each rule, the one that gains most first, or a late rank that holds the others for longer than that;
    where no gain is known, the most severe. A group has the same finding of each trace and phase, the heaviest
    first, and what was only counted outside of the steps behind what happens in them."""

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
        """How many traces have it, of those of the phase that is shown."""
        return len({finding.trace for finding in self.findings if finding.phase == self.lead.phase})

    @property
    def others(self) -> tuple[Finding, ...]:
        """A finding of each other phase, the heaviest first."""
        first: dict[str | None, Finding] = {}
        for finding in self.findings:
            first.setdefault(finding.phase, finding)
        return tuple(finding for phase, finding in first.items() if phase != self.lead.phase)


def make_cards(findings: Iterable[Finding]) -> list[Card]:
    """The cards of findings in their order. A finding that has the same cause as another at the same place, as
    ``related`` says, joins its card; races and causes of idle time have their own."""
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
    joined = ([_recorded_first(group) for group in card] for card in _join_phases(cards))
    return [Card(groups=tuple(map(tuple, _in_order(card)))) for card in joined]


def lead_with(first: Finding | None, cards: Sequence[Card]) -> list[Card]:
    """``cards`` with that of the ``first`` change before all others, if it has one. The change may be a part of its
    finding, such as one cause of idle time."""
    if first is None:
        return list(cards)
    key = first.trace, first.fingerprint
    return sorted(cards, key=lambda card: all((one.trace, one.fingerprint) != key for one in card.findings))


def _recorded_first(group: Sequence[Finding]) -> list[Finding]:
    """What a card shows of a line: its waits in the steps before those that were only counted outside of them, and of
    one phase those of a trace that recorded them before those of others, whose windows met none."""
    recorded = {finding.phase for finding in group if finding.site_source != COUNTED}

    def follows(finding: Finding) -> bool:
        return finding.site_source == COUNTED and (finding.run_steps is None or finding.phase in recorded)

    return sorted(group, key=follows)


def _join_phases(cards: Iterable[list[list[Finding]]]) -> list[list[list[Finding]]]:
    """The cards, those of the same line in other phases joined to the first one of it."""
    joined: list[list[list[Finding]]] = []
    known: dict[object, list[list[list[Finding]]]] = {}
    for card in cards:
        keys = [_across_phases(group[0]) for group in card if not _alone(group[0]) and group[0].site is not None]
        phase = card[0][0].phase
        like = (one for key in keys for one in known.get(key, ()))
        first = next((one for one in like if all(found.phase != phase for group in one for found in group)), None)
        if first is None:
            joined.append(card)
            first = card
        else:
            _add_phase(card, first)
        for key in keys:
            if first not in (mine := known.setdefault(key, [])):
                mine.append(first)
    return joined


def _add_phase(card: list[list[Finding]], first: list[list[Finding]]) -> None:
    """Add the groups of a card to those of the same rules in the ``first`` one."""
    own = {_across_phases(group[0]): group for group in first}
    for group in card:
        if (mine := own.get(_across_phases(group[0]))) is not None:
            mine.extend(group)
        else:
            first.append(group)


def _across_phases(finding: Finding) -> object:
    return finding.rule, finding.fingerprint, finding.status, finding.site, finding.at, finding.annotation


def _in_order(card: list[list[Finding]]) -> list[list[Finding]]:
    """The groups of a card: where the gain of none is known, the most severe first; then those of a late rank that
    holds the others for longer than the first one gains at most."""
    if all(gain(group[0]) is None for group in card):
        card = sorted(card, key=lambda group: SEVERITIES.index(group[0].severity))
    most = card[0][0].saving_high_ms_per_step or 0.0

    def follows(group: list[Finding]) -> bool:
        late = group[0].rule.startswith(BETWEEN_RANKS)
        return not (late and (group[0].exposed_ms_per_step or 0.0) > most)

    return sorted(card, key=follows)


def _belongs(finding: Finding, card: Sequence[Sequence[Finding]]) -> bool:
    """Whether a finding has the cause of a card at its place. Two findings of one rule stay two."""
    others = [group[0] for group in card]
    if _alone(finding) or any(_alone(other) or other.rule == finding.rule for other in others):
        return False
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


def count_saving(found: Iterable[Finding]) -> int:
    """How many cards of ``found`` save something as far as it is known; what only asks for more is no change."""
    cards = make_cards(one for one in found if not one.asks_for_more)
    return sum(any(map(_saves, card.findings)) for card in cards)


def count_changes(found: Iterable[Finding]) -> int:
    """How many changes save something as far as it is known, or where that is one alone, how many there are: what is
    unknown is in no sum."""
    kept = [one for one in found if not one.asks_for_more]
    known = count_saving(kept)
    return known if known > 1 else len(make_cards(kept))


def _saves(finding: Finding) -> bool:
    return (finding.saving_high_ms_per_step or finding.saving_ms_per_step or 0.0) >= NOTHING


def _summed_up(finding: Finding) -> Iterable[str]:
    return (*finding.related, *(print_ for cause in finding.causes for print_ in cause.covered_by))
