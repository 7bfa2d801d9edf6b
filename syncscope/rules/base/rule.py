"""What a rule is: its record, and how it finds what it looks for, in one rank's timeline or in the traces of a run."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from syncscope.advice import CHOICE, DRAWN, FIXED, FIXED_PART, GIVEN, MADE_ANEW, NO_LOSS, TRUTH, Advice, Example, choose
from syncscope.rules.base.groups import SAVING_NULL_WHY, Group, groups
from syncscope.rules.base.occurrences import Occurrences
from syncscope.rules.base.once import ONCE
from syncscope.rules.base.question import Intervention, NoQuestion
from syncscope.schema.expressions import (
    add_argument,
    called_name,
    draws_numbers,
    moves_fixed_values,
    moves_new_tensor,
    reads_choice,
    reads_truth,
    speaks_of_loss,
    takes_given_values,
)
from syncscope.schema.findings import Finding, Severity, fingerprint
from syncscope.schema.ranks import BetweenRanks
from syncscope.schema.report import NotChecked, Report, TraceInfo
from syncscope.schema.subscripts import takes_fixed_part
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.op_chains import ops_of
from syncscope.timeline.python_stacks import is_user
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits

LIBRARIES = "<site-packages>/"


class Hit(msgspec.Struct, frozen=True):
    """A finding with the rows it is about."""

    finding: Finding
    waits: frozenset[int] = frozenset()
    """Rows in ``waits``."""
    copies: frozenset[int] = frozenset()
    """Rows in ``copies``."""
    waits_outside: frozenset[int] = frozenset()
    """Rows in ``waits`` outside the steps, which the finding's figures leave out."""
    copies_outside: frozenset[int] = frozenset()
    """Rows in ``copies`` outside the steps, which the finding's figures leave out."""
    collectives: frozenset[int] = frozenset()
    """Rows in ``collectives``."""


class Inspection(msgspec.Struct):
    """One timeline while the rules look at it, one after the other."""

    timeline: Timeline
    hits: list[Hit] = msgspec.field(default_factory=list)
    """What the rules so far have found."""
    rule_of_wait: dict[int, RankRule] = msgspec.field(default_factory=dict)
    """The rule that claimed each wait."""

    def unclaimed(self, waits: Waits) -> Bools:
        """Which waits no rule has claimed."""
        return np.array([row not in self.rule_of_wait for row in waits.row.tolist()], dtype=bool)

    def part_of_read(self, waits: Ints) -> Bools:
        """Which of ``waits`` (rows, −1 none) are claimed by a rule whose waits come with a small copy of their own."""
        claimed = (self.rule_of_wait.get(row) for row in waits.tolist())
        return np.array([rule is not None and rule.brings_copy for rule in claimed], dtype=bool)


class Rule(ABC):
    """The record of a rule. The docstring of each is its documentation."""

    code: ClassVar[str]
    name: ClassVar[str]
    """Reads after "allow"."""
    severity: ClassVar[Severity]
    needs: ClassVar[tuple[str, ...]]
    """What a trace must hold so that the rule can be checked: entries of ``TraceInfo.has``, or ``device`` for device
    activity."""
    gated: ClassVar[bool]
    """Whether ``syncscope check`` fails on it unless the configuration says otherwise."""
    question: ClassVar[Intervention | NoQuestion]
    """What the replay tries to find the saving, or why there is nothing to try."""
    advice: ClassVar[tuple[Advice, ...]]
    """What to write instead. The first entry that fits what is known of a finding is given."""
    counted: ClassVar[bool] = False
    """Whether the count of a whole run shows what it flags, without a window (``RankRule.claims_counted``)."""
    goes_with_others: ClassVar[bool] = False
    """Whether it claims a counted wait also where another rule has claimed it."""
    counts_as_wait: ClassVar[bool] = False
    """Whether its findings count against the budget of waits a step."""
    limited_by: ClassVar[str] = ""
    """The budget of the policy that its findings count against, beside that of waits: each occurrence over the run, or
    where those are not counted, each finding. ``""`` for none."""
    breaks_graphs: ClassVar[bool] = False
    """Whether its findings are about lines where a compiled graph ends, for which a wait there may be the cause."""
    needs_async_launches: ClassVar[bool] = False
    """Whether it is about what host and device do at the same time, so that it cannot be checked where every launch
    waits for its kernel."""

    @property
    def doc(self) -> str:
        """The documentation."""
        return inspect.getdoc(type(self)) or ""

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.doc.split("\n", 1)[0]

    def advise(self, *names: str) -> str:
        """The sentence of the first advice that fits ``names``. Raises ``LookupError`` where none does."""
        return self.choose_advice(*names).sentence

    def choose_advice(self, *names: str) -> Advice:
        """The first advice that fits ``names``. Raises ``LookupError`` where none does."""
        entry = choose(self.advice, names)
        if entry is None:
            raise LookupError(f"{self.code} has no advice for {', '.join(names)}")
        return entry

    def example(self, fix: str, expression: str | None = None) -> Example | None:
        """The change of code that goes with a finding's fix, in the finding's ``expression`` where that is enough.

        For a fix that is general, and has no example of its own, it is what the documentation calls bad and good; for
        one of a single cause that would be about another.
        """
        entry = next((entry for entry in self.advice if entry.gave(fix)), None) or self._begun_by(fix)
        if entry is not None and (entry.example or entry.when):
            return _example_in(expression, entry)
        bad, good = _section(self.doc, "Bad:"), _section(self.doc, "Good:")
        return Example(bad, good) if bad and good else None

    def _begun_by(self, fix: str) -> Advice | None:
        """The advice whose sentence ``fix`` begins with, and goes on with what belongs to the finding alone."""
        begun = (entry for entry in self.advice if entry.when and fix.startswith(f"{entry.sentence} "))
        return max(begun, key=lambda entry: len(entry.sentence), default=None)

    def rewrite(self, fix: str, expression: str | None) -> str | None:
        """The finding's ``expression`` with its fix in it, ``None`` where that is not certain."""
        entry = next((entry for entry in self.advice if entry.gave(fix)), None)
        if entry is None or called_name(expression) not in entry.certain:
            return None
        return add_argument(expression, entry.argument)

    def why_unchecked(self, timeline: Timeline) -> str | None:
        """Why the rule cannot be checked on this trace, ``None`` when it can."""
        if "runtime" in self.needs and "runtime" not in timeline.has:
            return "the trace holds no runtime calls (was ProfilerActivity.CUDA on?)"
        if "device" in self.needs and timeline.device is None:
            return "the trace holds no device activity"
        return None

    def is_needless(self, timeline: Timeline) -> bool:
        """Whether nothing in a trace of others is what the rule is about, where it cannot be checked."""
        return False

    def why_partial(self, timeline: Timeline) -> str | None:
        """What the rule misses although it can be checked, ``None`` when it misses nothing."""
        return None

    def finding(self, place: Place, **fields: Any) -> Finding:
        """A finding at one place that is more than a group of occurrences; ``fields`` are the rest of ``Finding``."""
        site = place.site
        key = (site.file, site.function, site.expression) if site else ("", "", place.annotation or None)
        return Finding(
            rule=self.code, name=self.name, site=site, at=place.at, chain=place.chain,
            site_source=place.source, annotation=place.annotation or None,
            fingerprint=fingerprint(self.code, *key, place.ordinal),
            **{"severity": self.severity, "saving_null_why": SAVING_NULL_WHY, **fields},
        )  # fmt: skip


class RankRule(Rule):
    """A rule about one rank: it looks at a timeline, after the rules before it in ``RULES``."""

    brings_copy: ClassVar[bool] = False
    """Whether a small copy that one of its waits completes is part of the wait, and no copy of the program's own."""
    waits_many_times: ClassVar[bool] = False
    """Whether one occurrence waits several times, so that its waits have to be counted together."""

    @abstractmethod
    def find(self, inspection: Inspection) -> list[Hit]:
        """What the rule finds."""

    def claims_counted(self, counted: PlacedWait) -> bool:
        """Whether a counted wait that no window recorded is this rule's. The first rule that claims it keeps it, but
        for those with ``goes_with_others``."""
        return False

    def hits(self, timeline: Timeline, occurrences: Occurrences) -> list[Hit]:
        """One hit for each group of occurrences that ``reports`` keeps."""
        return [
            Hit(
                self._finding_of(group),
                _known(group.rows.wait),
                _known(group.rows.copy),
                _known(group.outside.wait),
                _known(group.outside.copy),
                _known(group.rows.collective),
            )
            for group in groups(timeline, occurrences)
            if self.reports(group)
        ]

    def _finding_of(self, group: Group) -> Finding:
        if not group.warm_up:
            severity, message, fix = self.severity_of(group), self.message(group), self.fix(group)
            found = group.finding(self.code, self.name, severity, message, fix)
            by_design = any(entry.by_design and entry.gave(fix) for entry in self.advice)
            return msgspec.structs.replace(found, by_design=True) if by_design else found
        message = f"{self.message(group)}; this is part of warm-up ({group.warm_up})"
        return group.finding(self.code, self.name, "note", message, ONCE[group.warm_up])

    def reports(self, group: Group) -> bool:
        """Whether a group is large enough for a finding."""
        return True

    def severity_of(self, group: Group) -> Severity:
        return self.severity

    def message(self, group: Group) -> str:
        """What happens there, in one sentence."""
        raise NotImplementedError

    def fix(self, group: Group) -> str:
        """What to write instead, by ``advice``."""
        ops = ops_of(group.ops)
        return self.advise(*self.names(group)).replace("{op}", ops[0] if ops else group.op or "it")

    def ops_for_advice(self, group: Group) -> tuple[str, ...]:
        """The ops that the advice may be about."""
        return group.ops

    def names(self, group: Group) -> Iterator[str]:
        """What is known of a group, from the outside in: library files and functions below the user's line, the
        function called there (``tensor()``, or ``[]``), ops, what the wait waits for, direction and memory of the
        copy, ``one-value`` where each copies no more than one, and ``many`` for many small copies."""
        tables = group.timeline
        yield from name_place(group.place)
        yield from self.ops_for_advice(group)
        wait, copy = int(group.rows.wait[0]), int(group.rows.copy[0])
        if wait >= 0:
            yield str(tables.waits.kind[wait])
        if copy >= 0:
            yield str(tables.copies.direction[copy])
            yield str(tables.copies.memory[copy])
            if group.copies_one_value:
                yield "one-value"
        if group.many_small:
            yield "many"


def name_place(place: Place) -> Iterator[str]:
    """What is known of a place, from the outside in, as in ``RankRule.names``."""
    users = [number for number, frame in enumerate(place.chain) if is_user(frame.file)]
    for frame in place.chain[users[-1] + 1 if users else 0 :]:
        yield frame.file.removeprefix(LIBRARIES)
        yield frame.function.split(".")[-1]
    name = called_name(place.running) or place.entry
    yield name if name == "[]" else f"{name}()"
    texts = [text for text in (place.running, place.site.expression if place.site else None) if text]
    shown = next(iter(texts), None)
    if moves_new_tensor(shown):
        yield MADE_ANEW
        if draws_numbers(shown):
            yield DRAWN
    if moves_fixed_values(shown):
        yield FIXED
    if takes_fixed_part(shown):
        yield FIXED_PART
    if takes_given_values(shown):
        yield GIVEN
    if reads_choice(shown):
        yield CHOICE
    if reads_truth(shown):
        yield TRUTH
    if texts and not any(map(speaks_of_loss, texts)):
        yield NO_LOSS


class RunFindings(msgspec.Struct, frozen=True):
    """What a rule finds between the ranks of a run."""

    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    """The ranks that could not be compared."""
    between_ranks: BetweenRanks | None = None
    alone: Mapping[int, frozenset[str]] = msgspec.field(default_factory=dict)
    """The kinds of collectives of each trace that could not be compared, where ranks of its run have no trace."""
    held_ms: Mapping[int, float] = msgspec.field(default_factory=dict)
    """How long the host of each rank is held in a step, where its device waits for its host longer than for others."""
    without_meetings: frozenset[int] = frozenset()
    """The traces with nothing to compare beside those of other ranks."""


class RunRule(Rule):
    """A rule about a run: it compares what the reports of its ranks say. It runs again whenever reports are merged, and
    its new findings replace those from fewer ranks."""

    @abstractmethod
    def compare(self, traces: Sequence[TraceInfo], findings: Sequence[Finding]) -> RunFindings:
        """What the rule finds between the traces of a report, related to the other rules' ``findings``."""

    @abstractmethod
    def can_compare(self, info: TraceInfo) -> bool:
        """Whether a trace holds what the rule compares. If not, ``why_unchecked`` has said why."""

    def explain(self, findings: Sequence[Finding], compared: RunFindings) -> list[Finding]:
        """The other rules' ``findings``, saying what the comparison shows of them."""
        return list(findings)

    @abstractmethod
    def leave_out(self, report: Report) -> Report:
        """The report without the parts that only explain this rule's findings."""


def _example_in(expression: str | None, entry: Advice) -> Example | None:
    """The example of the advice, in the reader's expression where that is a call to which it adds an argument."""
    if expression and entry.argument and f"{called_name(expression)}(" in entry.after:
        after = add_argument(expression, entry.argument)
        return Example(expression, after) if after else entry.example
    return entry.example


def _known(rows: Ints) -> frozenset[int]:
    return frozenset(row for row in rows.tolist() if row >= 0)


def _section(doc: str, head: str) -> str:
    """The indented lines under a line of a docstring."""
    lines = doc.partition(f"\n{head}\n")[2].split("\n")
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return inspect.cleandoc("\n" + "\n".join(lines[:end]))
