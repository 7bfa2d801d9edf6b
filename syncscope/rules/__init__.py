"""The rules, one a file, listed in order of precedence: the first rule that claims a wait keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import msgspec
from msgspec.structs import replace

from syncscope.rules.allocator_sync import AllocatorSync
from syncscope.rules.base.compile_rule import relate_breaks
from syncscope.rules.base.counted import add_run
from syncscope.rules.base.rule import Hit, Inspection, RankRule, Rule, RunRule
from syncscope.rules.blocking_copy import BlockingCopy
from syncscope.rules.cold_compile import ColdCompile
from syncscope.rules.collective_wait import CollectiveWait
from syncscope.rules.comm_not_overlapped import CommNotOverlapped
from syncscope.rules.copies_serialised import CopiesSerialised
from syncscope.rules.copy_not_overlapped import CopyNotOverlapped
from syncscope.rules.cross_stream_race import CrossStreamRace
from syncscope.rules.cudagraph_skipped import CudagraphSkipped
from syncscope.rules.device_starved import DeviceStarved
from syncscope.rules.dynamic_shape import DynamicShape
from syncscope.rules.explicit_sync import ExplicitSync
from syncscope.rules.graph_break import GraphBreak
from syncscope.rules.launch_blocking import LaunchBlocking
from syncscope.rules.launch_bound import LaunchBound
from syncscope.rules.launch_queue_full import LaunchQueueFull
from syncscope.rules.library_sync import LibrarySync
from syncscope.rules.overwrite_in_flight import OverwriteInFlight
from syncscope.rules.pageable_copy import PageableCopy
from syncscope.rules.pin_then_copy import PinThenCopy
from syncscope.rules.read_before_arrival import ReadBeforeArrival
from syncscope.rules.recompile import Recompile
from syncscope.rules.round_trip import RoundTrip
from syncscope.rules.scalar_read import ScalarRead
from syncscope.rules.small_copies import SmallCopies
from syncscope.rules.straggling_sync import StragglingSync
from syncscope.rules.tensor_print import TensorPrint
from syncscope.rules.unexplained_wait import UnexplainedWait
from syncscope.schema.report import NotChecked
from syncscope.timeline import Timeline
from syncscope.timeline.disagreement import Disagreement

__all__ = [
    "BY_CODE", "RULES", "RUN_RULES", "Hit", "RankRule", "Rule", "RunRule", "find", "find_hits", "find_unchecked",
    "select",
]  # fmt: skip

RULES: tuple[Rule, ...] = (
    TensorPrint(),
    CollectiveWait(),
    AllocatorSync(),
    ExplicitSync(),
    DynamicShape(),
    ScalarRead(),
    BlockingCopy(),
    LibrarySync(),
    LaunchBlocking(),
    LaunchQueueFull(),
    PageableCopy(),
    UnexplainedWait(),
    PinThenCopy(),
    SmallCopies(),
    RoundTrip(),
    CopyNotOverlapped(),
    CommNotOverlapped(),
    CopiesSerialised(),
    LaunchBound(),
    DeviceStarved(),
    ReadBeforeArrival(),
    OverwriteInFlight(),
    CrossStreamRace(),
    Recompile(),
    GraphBreak(),
    CudagraphSkipped(),
    ColdCompile(),
    StragglingSync(),
)

COUNTED = tuple(rule for rule in RULES if isinstance(rule, RankRule) and rule.counted)
"""Those that may claim a counted wait, in their order."""

BY_CODE = {rule.code: rule for rule in RULES}

RUN_RULES = tuple(rule for rule in RULES if isinstance(rule, RunRule))
"""Those that compare the ranks of a run."""

BREAKING = {rule.code for rule in RULES if rule.breaks_graphs}
WAITING = {rule.code for rule in RULES if rule.counts_as_wait}

WITHOUT_STEPS = frozenset({"hazards", "compiled"})
"""What rules need that look at no recorded steps, as entries of ``TraceInfo.has``."""

ONLY_COUNTED = "no window was recorded, only the waits of the run were counted"
SERIAL = "every launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1), so nothing can run side by side"
COLLECTIVES_ALONE = "of the device the file holds collectives alone, so nobody knows what runs beside them"


def select(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules whose code begins with one of ``select`` (all when empty) and with none of ``ignore``.

    Raises ``ValueError`` naming an entry that is no rule's code or the beginning of one.
    """
    for entry in (*select, *ignore):
        if not entry or not any(rule.code.startswith(entry) for rule in RULES):
            raise ValueError(f"unknown rule {entry!r}{_suggest(entry)}")
    wanted = tuple(select) or ("",)
    return tuple(r for r in RULES if r.code.startswith(wanted) and not (ignore and r.code.startswith(tuple(ignore))))


def _suggest(entry: str) -> str:
    """What was likely meant by an unknown code, else where they are listed."""
    known = {rule.name: rule.code for rule in RULES} | {rule.code: rule.code for rule in RULES}
    if entry and any(code.startswith(entry.upper()) for code in BY_CODE):
        return f", did you mean {entry.upper()}?"
    close = get_close_matches(entry.lower(), known, n=1) or get_close_matches(entry.upper(), known, n=1)
    return f", did you mean {known[close[0]]}?" if close else "; `syncscope rules` lists them"


def find(timeline: Timeline) -> tuple[list[Hit], list[NotChecked]]:
    """What the rules find in one rank's trace, and which rules could not be checked on it."""
    return find_hits(timeline), find_unchecked(timeline)


def find_hits(timeline: Timeline) -> list[Hit]:
    """What the rules find in one rank's trace, with the rows that each finding is about. All rules run, in order: which
    rule claims a wait does not depend on what is reported. Where the run was counted, the findings say how often they
    occur in it, and lines that no window recorded are among them."""
    inspection = Inspection(timeline)
    for rule in RULES:
        if isinstance(rule, RankRule) and not _says_nothing(rule, timeline) and not _why_blind(rule, timeline):
            inspection.hits += rule.find(inspection)
    hits = relate_breaks(add_run(inspection.hits, timeline, COUNTED), BREAKING, WAITING)
    return _related_by_copies(hits)


def find_unchecked(timeline: Timeline) -> list[NotChecked]:
    """Which rules could not be checked on one rank's trace, or only in part, and why."""
    return list(_unchecked(timeline))


def _unchecked(timeline: Timeline) -> Iterator[NotChecked]:
    rank = timeline.trace.rank
    for rule in RULES:
        if _says_nothing(rule, timeline):
            if not rule.counted:
                yield NotChecked(rule=rule.code, why=ONLY_COUNTED, rank=rank)
            continue
        if why := _why_blind(rule, timeline):
            yield NotChecked(rule=rule.code, why=why, rank=rank)
            continue
        doubt = _find_doubt(rule, timeline)
        why = rule.why_unchecked(timeline)
        if why or doubt:
            # A recording's run goes on beyond its window.
            needless = True if timeline.trace.recording is None and rule.is_needless(timeline) else msgspec.UNSET
            rest = True if not why and doubt and doubt.at_start else msgspec.UNSET
            said = why or (doubt.text if doubt else "")
            yield NotChecked(rule=rule.code, why=said, rank=rank, needless=needless, rest=rest)
        if why := rule.why_partial(timeline):
            yield NotChecked(rule=rule.code, why=why, rank=rank, partial=True)


def _says_nothing(rule: Rule, timeline: Timeline) -> bool:
    """Whether no window was recorded, and the rule is one of waits, for which the count speaks, or needs steps."""
    return timeline.only_counted and (rule.counted or not WITHOUT_STEPS.intersection(rule.needs))


def _why_blind(rule: Rule, timeline: Timeline) -> str | None:
    """Why a rule that needs launches that return at once is not run."""
    if not rule.needs_async_launches or not (timeline.launch_blocking or timeline.holds_collectives_alone):
        return None
    return SERIAL if timeline.launch_blocking else COLLECTIVES_ALONE


def _find_doubt(rule: Rule, timeline: Timeline) -> Disagreement | None:
    """Why what the rule finds cannot be trusted: the first contradiction about rows that it needs, one that is about
    the whole trace before one about its start. Where part of the file was lost, that explains them all, and
    ``Trace.lost`` says so."""
    if timeline.trace.lost:
        return None
    doubts = (one for one in timeline.disagreements if one.lost in rule.needs or _needs_steps(rule, one.lost))
    return min(doubts, key=lambda one: one.at_start, default=None)


def _needs_steps(rule: Rule, lost: str) -> bool:
    """Whether ``lost`` are the steps, and the rule's findings are counted in them."""
    return lost == "steps" and not WITHOUT_STEPS.intersection(rule.needs)


def _related_by_copies(hits: list[Hit]) -> list[Hit]:
    """The hits, numbered, each related to those about the same copies."""
    by_copy: dict[int, list[str]] = {}
    for hit in hits:
        for row in hit.copies:
            by_copy.setdefault(row, []).append(hit.finding.fingerprint)
    related = []
    for number, hit in enumerate(hits):
        others = {other for row in hit.copies for other in by_copy[row]} - {hit.finding.fingerprint}
        fingerprints = tuple(sorted(others | set(hit.finding.related)))
        related.append(replace(hit, finding=msgspec.structs.replace(hit.finding, related=fingerprints, number=number)))
    return related
