"""The rules, one a file, listed in order of precedence: the first rule that takes a wait keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from syncscope.rules.allocator_sync import AllocatorSync
from syncscope.rules.blocking_copy import BlockingCopy
from syncscope.rules.collective_wait import CollectiveWait
from syncscope.rules.comm_not_overlapped import CommNotOverlapped
from syncscope.rules.copies_serialised import CopiesSerialised
from syncscope.rules.copy_not_overlapped import CopyNotOverlapped
from syncscope.rules.cross_stream_race import CrossStreamRace
from syncscope.rules.device_starved import DeviceStarved
from syncscope.rules.dynamic_shape import DynamicShape
from syncscope.rules.explicit_sync import ExplicitSync
from syncscope.rules.launch_blocking import LaunchBlocking
from syncscope.rules.launch_bound import LaunchBound
from syncscope.rules.launch_queue_full import LaunchQueueFull
from syncscope.rules.library_sync import LibrarySync
from syncscope.rules.overwrite_in_flight import OverwriteInFlight
from syncscope.rules.pageable_copy import PageableCopy
from syncscope.rules.pin_then_copy import PinThenCopy
from syncscope.rules.read_before_arrival import ReadBeforeArrival
from syncscope.rules.round_trip import RoundTrip
from syncscope.rules.rule import Case, Hit, Rule, related
from syncscope.rules.scalar_read import ScalarRead
from syncscope.rules.small_copies import SmallCopies
from syncscope.rules.straggling_sync import StragglingSync
from syncscope.rules.tensor_print import TensorPrint
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked
from syncscope.timeline import Timeline

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
    StragglingSync(),
)

__all__ = ["RULES", "Hit", "Rule", "check", "hits", "select"]


SIDE_BY_SIDE = ("OVL", "LCH")
"""Beginnings of the codes of rules about what host and device do at the same time."""

SERIAL = "every launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1), so nothing can run side by side"


def select(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules whose code begins with one of ``select`` (all when empty) and with none of ``ignore``.

    Raises ``ValueError`` naming an entry that is no rule's code or the beginning of one.
    """
    for entry in (*select, *ignore):
        if not entry or not any(rule.code.startswith(entry) for rule in RULES):
            raise ValueError(f"unknown rule {entry!r}; rules are {', '.join(sorted(rule.code for rule in RULES))}")
    wanted = tuple(select) or ("",)
    return tuple(r for r in RULES if r.code.startswith(wanted) and not (ignore and r.code.startswith(tuple(ignore))))


def check(timeline: Timeline, rules: Sequence[Rule] = RULES) -> tuple[list[Finding], list[NotChecked]]:
    """What ``rules`` find, and which of them could not see."""
    found, blind = hits(timeline, rules)
    return [hit.finding for hit in found], blind


def hits(timeline: Timeline, rules: Sequence[Rule] = RULES) -> tuple[list[Hit], list[NotChecked]]:
    """What ``rules`` find, with the rows that each finding speaks of, and which rules could not see.

    All rules run, in order, whatever is asked for: which rule takes a wait does not depend on the selection.
    """
    case, blind = Case(timeline), []
    for rule in RULES:
        if timeline.launch_blocking and rule.code.startswith(SIDE_BY_SIDE):
            blind.append(NotChecked(rule=rule.code, why=SERIAL, rank=timeline.trace.rank))
            continue
        if why := rule.blind(timeline):
            blind.append(NotChecked(rule=rule.code, why=why, rank=timeline.trace.rank))
        if why := rule.unseen(timeline):
            blind.append(NotChecked(rule=rule.code, why=why, rank=timeline.trace.rank, partial=True))
        case.hits += rule.run(case)
    codes = {rule.code for rule in rules}
    linked = [
        replace(hit, finding=msgspec.structs.replace(hit.finding, related=others, number=number))
        for number, (hit, others) in enumerate(related(case.hits))
        if hit.finding.rule in codes
    ]
    return linked, [entry for entry in blind if entry.rule in codes]
