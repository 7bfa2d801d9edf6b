"""What the rules about ``torch.compile`` share. The recording says what was compiled, where and why."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from syncscope.rules.base.groups import SAVING_NULL_WHY, key_of, to_ms
from syncscope.rules.base.program import may_be_compiled
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.schema.compiling import CompileKind, without_numbers
from syncscope.schema.counting import RecordedPhase
from syncscope.schema.findings import Finding, fingerprint
from syncscope.timeline import Place, Timeline
from syncscope.timeline.compiling import CompiledEvent, CompiledSpan
from syncscope.timeline.run import turns

NOT_LOOKED_FOR = "the trace does not say what torch.compile did: record with syncscope profile"

MOST_REASONS = 2
"""That a message names."""


class CompileGroup(msgspec.Struct, frozen=True, dict=True):
    """What was compiled, or broke, at one place in one phase."""

    timeline: Timeline
    phase: RecordedPhase
    events: tuple[CompiledEvent, ...]

    @property
    def place(self) -> Place:
        return self.events[0].place

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """In PyTorch's words, the most frequent first. Of those that differ in numbers only, one."""
        counts: dict[str, tuple[int, str]] = {}
        for one in self.events:
            if one.event.reason:
                key = without_numbers(one.event.reason)
                count, first = counts.get(key, (0, one.event.reason))
                counts[key] = count + one.event.count, first
        return tuple(reason for _, reason in sorted(counts.values(), key=lambda entry: -entry[0]))

    @property
    def because(self) -> str:
        """The reasons for a sentence, ``""`` where PyTorch gives none."""
        more = len(self.reasons) - MOST_REASONS
        return "; ".join(self.reasons[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")

    @property
    def function(self) -> str:
        """What Dynamo compiled, for a message."""
        if self.is_read:
            known = next((name for one in self.events for name in one.event.compile_ids), None)
            return f"the compiled function {known}" if known else "a compiled function"
        name = next((one.function.function for one in self.events if one.function is not None), None)
        return name or (self.place.site.function if self.place.site else None) or "a function"

    @cached_property
    def spans(self) -> tuple[CompiledSpan, ...]:
        """Those in the recorded steps."""
        return tuple(span for one in self.events for span in one.spans)

    @property
    def is_recorded(self) -> bool:
        """Whether the recorded steps are of its phase."""
        recording = self.timeline.trace.recording
        return (recording is None or recording.phase == self.phase.name) and len(self.timeline.steps) > 0

    @property
    def is_read(self) -> bool:
        """Whether it is read from the rows of another's trace, which hold no reason."""
        return self.timeline.trace.recording is None

    @property
    def count(self) -> int:
        return sum(one.event.count for one in self.events)

    @property
    def warm(self) -> int:
        """Occurrences in warm steps of the run."""
        return sum(one.event.warm for one in self.events)

    @property
    def warm_ns(self) -> int:
        return sum(one.event.warm_ns or 0 for one in self.events)

    @property
    def uncompiled(self) -> int:
        return sum(one.event.uncompiled for one in self.events)

    @property
    def runs_per_step(self) -> float | None:
        """How often a step runs what was compiled, by the attribution window; ``None`` where that is not known."""
        regions, ids = self.timeline.regions, {name for one in self.events for name in one.event.compile_ids}
        if regions is None or not regions.steps or not self.is_recorded:
            return None
        return sum(one.count for one in regions.regions if one.compile_id in ids) / regions.steps


class CompileRule(RankRule):
    """A rule about what the recording says of ``torch.compile``: one finding for each place."""

    kinds: ClassVar[tuple[CompileKind, ...]]
    """What it is about."""
    heard_from: ClassVar[str] = "torch._dynamo"
    """The part of PyTorch that says it."""

    def why_unchecked(self, timeline: Timeline) -> str | None:
        if timeline.compiled is None:
            return NOT_LOOKED_FOR
        lacking = [name for name in timeline.compiled.missing if name.startswith(self.heard_from)]
        return f"this PyTorch lacks {lacking[0]}" if lacking else None

    def is_needless(self, timeline: Timeline) -> bool:
        return not may_be_compiled(timeline)

    def why_partial(self, timeline: Timeline) -> str | None:
        compiled = timeline.compiled
        if compiled is not None and compiled.dropped:
            return f"{compiled.dropped:,} further things that torch.compile did were not kept"
        return None

    def find(self, inspection: Inspection) -> list[Hit]:
        compiled = inspection.timeline.compiled
        found = group_events(inspection.timeline, compiled.of(*self.kinds)) if compiled is not None else ()
        return [self.hit(group, inspection) for group in found if self.reports_compiled(group)]

    @abstractmethod
    def reports_compiled(self, group: CompileGroup) -> bool:
        """Whether a group is a finding."""

    @abstractmethod
    def hit(self, group: CompileGroup, inspection: Inspection) -> Hit:
        """The finding."""

    def make(self, group: CompileGroup, message: str, fix: str, **fields: Any) -> Finding:
        """A finding of the group; ``fields`` are those that differ."""
        place, steps, span = group.place, len(group.timeline.steps), group.spans
        count, why = len(span), self.question.why if isinstance(self.question, NoQuestion) else SAVING_NULL_WHY
        known = dict[str, Any](
            rule=self.code, name=self.name, severity=self.severity,
            status="unexpected" if place.expected is None else "expected", reason=place.expected,
            site=place.site, at=place.at, chain=place.chain, site_source=place.source,
            rank=group.timeline.trace.rank, thread=group.timeline.thread_name(span[0].tid) if span else None,
            count=count, per_step=count / steps if group.is_recorded else None,
            first_ns=span[0].ts if span else None, phase=group.phase.name or None, message=message, fix=fix,
            saving_null_why=why, fingerprint=fingerprint(self.code, *key_of(place)),
        )  # fmt: skip
        return Finding(**{**known, **fields})


def group_events(timeline: Timeline, events: Iterable[CompiledEvent]) -> Iterator[CompileGroup]:
    """The events that are one finding each, in the order in which they first happened."""
    recording = timeline.trace.recording
    phases = recording.run.phases if recording is not None and recording.run is not None else ()
    own = next((phase for phase in phases if recording is not None and phase.name == recording.phase), None)
    groups: dict[object, tuple[RecordedPhase, list[CompiledEvent]]] = {}
    for one in events:
        # What is compiled in the first step is compiled before anybody knows which loop it is in.
        phase = own if own is not None and one.phase.kind == "start" else one.phase
        place = one.place
        key = (phase.name, place.site, place.at, place.expected)
        groups.setdefault(key, (phase, []))[1].append(one)
    for phase, group in groups.values():
        yield CompileGroup(timeline, phase, tuple(group))


def over_run(group: CompileGroup) -> dict[str, Any]:
    """How often it happens in warm steps of the run, and what that takes of the host, for ``Finding``. Every step is
    seen."""
    steps = turns(group.phase)
    numbers = [step for one in group.events for step in one.event.steps] or [0]
    each_ms = to_ms(group.warm_ns, steps)
    return {
        "run_per_step": round(group.warm / steps, 9), "run_per_step_low": round(group.warm / steps, 9),
        "run_per_step_high": round(group.warm / steps, 9), "occurrences": group.warm,
        "run_steps": (min(numbers), max(one.event.last_step for one in group.events)) if group.phase.steps else None,
        "run_stall_ms_per_step": each_ms,
    }  # fmt: skip


def relate_breaks(hits: Sequence[Hit], breaking: set[str], waiting: set[str]) -> list[Hit]:
    """The hits, where those of rules ``breaking`` graphs are related to those of rules about ``waiting`` at their line:
    the wait is what breaks the graph."""
    lines: dict[tuple[str, int | None], list[Hit]] = {}
    for hit in hits:
        if hit.finding.site is not None and hit.finding.rule in breaking | waiting:
            lines.setdefault((hit.finding.site.file, hit.finding.site.line), []).append(hit)
    related: dict[int, set[str]] = {}
    for there in lines.values():
        breaks = [hit for hit in there if hit.finding.rule in breaking]
        waits = [hit for hit in there if hit.finding.rule in waiting]
        for hits_of, others in ((breaks, waits), (waits, breaks)):
            for hit in hits_of:
                related[id(hit)] = {other.finding.fingerprint for other in others}
    return [_related(hit, related.get(id(hit), set())) for hit in hits]


def _related(hit: Hit, others: set[str]) -> Hit:
    if not others:
        return hit
    fingerprints = tuple(sorted(others | set(hit.finding.related)))
    return replace(hit, finding=msgspec.structs.replace(hit.finding, related=fingerprints))
