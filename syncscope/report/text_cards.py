"""Print findings in a terminal: a card for each place that matters, a line for each of the others."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence

from rich.console import Console
from rich.text import Text

from syncscope.report.card_phases import describe_other_phases, describe_traces, name_other_phases
from syncscope.report.cards import Card
from syncscope.report.escape import terminal
from syncscope.report.families import find_family, list_lines
from syncscope.report.finding_phrases import (
    describe_much,
    describe_occurrences,
    describe_often,
    describe_work_ends,
    format_location,
    name_loop,
    shorten_expression,
    shorten_message,
    tells_more,
)
from syncscope.report.headings import describe_heading
from syncscope.report.impact import Impact, Level, describe_impact
from syncscope.report.known_causes import list_fixes
from syncscope.report.numbers import count, size
from syncscope.report.prominence import KINDS, Kind, find_kind
from syncscope.report.run_phrases import describe_source
from syncscope.report.text_lines import line, place
from syncscope.report.view import MOST_CARDS, View
from syncscope.report.worth_phrases import describe_causes
from syncscope.schema.findings import NOTHING, Finding, Site
from syncscope.schema.report import Report

STYLES: dict[Level, str] = {
    "wrong": "bold red",
    "high": "bold yellow",
    "medium": "bold cyan",
    "low": "dim",
    "unknown": "bold",
}
INDENT = 2
LONG_PLACE, LONG_EXPRESSION = 30, 44
"""Characters from which a place in one line loses its folders, and after which an expression is cut."""
MOST_IN_CARD = 80
"""Characters of an expression that a card shows, unless all is asked for."""
LONG_FIX = 60
"""Characters after which a fix that a card above has told is not told again."""
MOST_LINES = 6
"""Lines of a file that are named behind the first."""
MOST_BRIEF: dict[Kind, int] = {"whole": 10, "counted": 6, "outside": 4, "small": 6}
"""Findings that have a line each, of those that have no card."""


def show_cards(cards: Sequence[Card], report: Report, console: Console, view: View, *, failing: bool = False) -> None:
    """Print the cards in their order. Those that are ``failing`` a gate are all shown in full; of others those that
    save or block under 1 %, those outside of all steps or in few of them, and those after the first five, have a line
    each, unless ``view`` asks otherwise."""
    kept = list(cards if view.top is None else cards[: view.top])
    every = failing or view.verbose or view.top is not None
    kinds: dict[int, Kind] = {id(card): "whole" if every else find_kind(card, report) for card in kept}
    if "whole" not in kinds.values():  # what was only counted is all that there is: it is told in full
        kinds = {number: "whole" if kind == "counted" else kind for number, kind in kinds.items()}
    whole = [card for card in kept if kinds[id(card)] == "whole"]
    full = {id(card) for card in (whole if every else whole[:MOST_CARDS])}
    fixes: dict[str, Site] = {}
    for card in whole:
        if id(card) in full:
            _card(card, report, console, view, failing, fixes)
    rest = [card for card in whole if id(card) not in full]
    _briefly(rest, "also:", report, console, MOST_BRIEF["whole"])
    for kind in KINDS[1:]:
        cards_of_kind = [card for card in kept if kinds[id(card)] == kind]
        heading = f"{describe_heading(kind, cards_of_kind, report)}:"
        _briefly(cards_of_kind, heading, report, console, MOST_BRIEF[kind])
    if len(kept) < len(cards):
        line(console, Text(f"… and {count(len(cards) - len(kept), 'more finding')} (--top {view.top})", style="dim"))
        console.print()


def _briefly(cards: Sequence[Card], heading: str, report: Report, console: Console, most: int) -> None:
    """A line for each card, and one for those that are one change, or differ by nothing but the line of a library."""
    if not cards:
        return
    line(console, Text(heading, style="dim"))
    alike: dict[object, list[Card]] = {}
    at_place: dict[object, list[Card]] = {}
    for card in cards:
        finding, family = card.lead, find_family(card, report)
        own = (card.tags, finding.site or id(card), finding.phase, finding.trace)
        key = own if family is None else family
        same = alike.setdefault(key, []) if key in alike or own not in at_place else at_place[own]
        same.append(card)
        at_place.setdefault(own, same)
    for same in list(alike.values())[:most]:
        line(console, _brief_line(same, report), INDENT, hang=INDENT)
    if len(alike) > most:
        line(console, Text(f"… and {len(alike) - most} more (--verbose shows all)", style="dim"), INDENT)
    console.print()


def _brief_line(cards: Sequence[Card], report: Report) -> Text:
    """One card, or several at one line. Where the saving is small or unknown, it is told how long it blocks or is
    exposed, if that is much."""
    card, finding = cards[0], cards[0].lead
    impact = describe_impact(finding, report.traces[finding.trace])
    lead = "" if find_kind(card, report) != "whole" else f"{impact.words} · "
    source = describe_source(finding) if lead else []
    told = not lead or impact.level == "unknown"
    much = describe_much(finding, report.traces) if told and finding.per_step != 0 else []
    often = describe_often(finding, report.traces, brief=True) or _idle(finding, report)
    inside = [one for one in cards[1:] if one.lead.site == finding.site]
    others = [f"{count(len(inside), 'more such wait')} inside of it"] if inside else []
    others += _same_elsewhere([one for one in cards[1:] if one.lead.site != finding.site], finding)
    others += [text for text in (name_other_phases(card),) if text]
    facts = [*source, *often, *much, *others, *describe_traces(card, report, shown=bool(much))]
    where = _without_line(finding, report) if finding.site is None else _short(format_location(finding.site))
    where = f"before {where}" if finding.work_ends_at and finding.site is not None else where
    codes = "".join(f", {terminal(rule)}" for rule, _ in card.tags[1:])
    text = Text.assemble((lead, STYLES[impact.level]), *_tags(card)[:2], codes, f"  {terminal(where)}" if where else "")
    if finding.site is not None and finding.site.expression:
        text.append(f"  {terminal(shorten_expression(finding.site.expression, LONG_EXPRESSION))}", style="cyan")
    return text.append(f"  {terminal(' · '.join(filter(None, facts)))}", style="dim")


def _same_elsewhere(cards: Sequence[Card], finding: Finding) -> list[str]:
    """The other lines of a file at which the same change is to be made."""
    line = finding.site.line if finding.site is not None else None
    numbers = [str(number) for number in list_lines(cards, line)]
    if not cards:
        return []
    if not numbers:
        return [f"{count(len(cards), 'more such wait')} at this line"]
    more = len(numbers) - MOST_LINES
    last = f"{more} more" if more > 1 else None
    shown = numbers[:MOST_LINES] if last else numbers
    *before, end = [*shown, last] if last else shown
    lines = "lines" if len(numbers) > 1 else "line"
    lead = f"{', '.join(before)} and " if before else ""
    return [f"same fix at {lines} {lead}{end}"]


def _idle(finding: Finding, report: Report) -> list[str]:
    """For how long the device is idle in its phase, of what is about that."""
    said = describe_occurrences(finding, report.traces)
    return [f"{_in_phase(finding, report)}{said}"] if said else []


def _in_phase(finding: Finding, report: Report) -> str:
    """The phase of a finding that is told by no frequency, where there are others."""
    counted = finding.occurrences is not None or finding.run_per_step is not None
    return f"in {finding.phase}: " if finding.phase and not counted and len(report.traces) > 1 else ""


def _without_line(finding: Finding, report: Report) -> str:
    """The annotation that a finding without a line is in, else its op, or that its line is unknown; of what is about
    the step as a whole the loop of the steps, or ``""`` where that is not known."""
    if finding.annotation:
        return f"in {finding.annotation}"
    if finding.op:
        return f"{finding.op}, line unknown"
    loop = name_loop(finding, report.traces[finding.trace])
    return f"the {loop}" if loop else ""


def _short(place: str) -> str:
    """A place without its folders where they are long."""
    return place if len(place) <= LONG_PLACE else f"…/{place.rsplit('/', 1)[-1]}"


def _card(
    card: Card, report: Report, console: Console, view: View, failing: bool, fixes: MutableMapping[str, Site]
) -> None:
    """Print a card. ``fixes`` are those that were told, each with its line: unless all is to be shown, a long one is
    told once."""
    finding = card.lead
    impact = describe_impact(finding, report.traces[finding.trace])
    line(console, _heading(card, impact, failing), hang=INDENT)
    most = len(finding.message) if view.verbose else MOST_IN_CARD
    if finding.site is not None:
        shown = Text("before " if finding.work_ends_at else "", style="dim")
        expression = finding.site.expression or ""
        shown.append_text(place(finding.site, shorten_expression(expression, most), "bold cyan", view.link))
        if finding.site_source == "stack":
            shown.append(" (the def)", style="dim")
        line(console, shown, INDENT, hang=INDENT)
    elif where := _without_line(finding, report):
        line(console, Text(terminal(where), style="dim"), INDENT, hang=INDENT)
    if finding.exceeds:
        line(console, Text(terminal(finding.exceeds), style="yellow"), INDENT, hang=INDENT)
    if finding.at is not None and tells_more(finding):
        at = place(finding.at, None, "", view.link)
        line(console, Text.assemble(("at ", "dim"), at), INDENT, hang=INDENT)
    facts = _facts(card, report, view)
    if any(facts):
        line(console, Text(terminal(" · ".join(filter(None, facts))), style="dim"), INDENT, hang=INDENT)
    if others := describe_other_phases(card, report):
        line(console, Text(terminal(others), style="dim"), INDENT, hang=INDENT)
    causes_said = [*describe_causes(finding, report), *([] if view.verbose else describe_work_ends(finding))]
    if view.verbose or not causes_said:  # the causes say the same, with what each is worth
        line(console, Text(terminal(shorten_message(finding, most))), INDENT)
    for causes in causes_said:
        line(console, Text(terminal(causes)), INDENT, hang=INDENT)
    for why in _explain_saving(finding) if view.verbose else ():
        line(console, Text(terminal(why), style="dim"), INDENT, hang=INDENT)
    for label, fix in _fixes(finding, report, {} if failing or view.verbose else fixes):
        line(console, Text.assemble((label, "green"), terminal(fix)), INDENT, hang=5)
    console.print()


def _fixes(finding: Finding, report: Report, told: MutableMapping[str, Site]) -> Iterator[tuple[str, str]]:
    """What to do about a finding, with a label each; of a long one that was ``told``, where."""
    for cause, fix in list_fixes(finding, report.traces[finding.trace]):
        before = told.get(fix) if len(fix) > LONG_FIX else None
        if finding.site is not None:
            told.setdefault(fix, finding.site)
        yield f"fix ({terminal(cause)}): " if cause else "fix: ", _point_to(before, finding.site) if before else fix


def _point_to(told: Site, site: Site | None) -> str:
    """What to do at a line whose fix a card above has told of another line, or of another wait at this one."""
    if site is None or (told.file, told.line) != (site.file, site.line):
        return f"Do the same as at {format_location(told)}."
    if told.expression and told.expression != site.expression:
        return f"Do the same as for {shorten_expression(told.expression, LONG_EXPRESSION)} at this line."
    return "Do the same as for the wait above at this line."


def _explain_saving(finding: Finding) -> list[str]:
    """Why a saving is not known, or only its range; nothing where there is no saving to tell."""
    high = finding.saving_high_ms_per_step
    if not finding.saving_null_why or (high is None and finding.run_saving_ms_per_step is not None):
        return []
    if high is not None and high < NOTHING:
        return []
    return [f"{'saving not known' if high is None else 'only a range'}: {finding.saving_null_why}"]


def _heading(card: Card, impact: Impact, failing: bool) -> Text:
    """``saves 2.6 % (0.371 ms) · SYN102 scalar-read``, with a mark where it fails a gate."""
    amount = f" ({impact.amount})" if impact.amount else ""
    heading = Text.assemble(("✗ ", "bold red") if failing else "", (impact.words, STYLES[impact.level]), f"{amount} · ")
    return heading.append_text(Text.assemble(*_tags(card)))


def _tags(card: Card) -> list[tuple[str, str]]:
    """``SYN101 blocking-copy, CPY201 pageable-copy``, in styled parts."""
    parts: list[tuple[str, str]] = []
    for rule, name in card.tags:
        parts += [(f"{', ' if parts else ''}{terminal(rule)} ", ""), (terminal(name), "bold")]
    return parts


def _facts(card: Card, report: Report, view: View) -> list[str]:
    """How often it occurs and how long, and on which traces; on request also the op and its bytes."""
    finding, traces = card.lead, report.traces
    occurrences = describe_occurrences(finding, traces, brief=not view.verbose)
    details = [_in_phase(finding, report) + occurrences if occurrences else ""]
    if view.verbose:
        details += [finding.op] if finding.op else []
        details += [f"{size(finding.bytes)} in all"] if finding.bytes is not None else []
    return [*details, *describe_traces(card, report, shown=True)]
