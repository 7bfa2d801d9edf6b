"""Ranks that meet in an all-reduce in each step."""

from __future__ import annotations

from syncscope.analysis.analyze import analyze_timelines
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import line

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
READ = line(22, "loss.item()")


def rank(
    number: int | None,
    *late: float,
    wait: bool = True,
    works: bool = False,
    ends: tuple[float, ...] = (1000, 1000, 1000),
    clock: float = 0,
    first: int = 0,
    group: str = "0",
    phase: str | None = None,
    size: int = 2,
) -> TraceBuilder:
    """Steps of 2000 µs, in each of which the ranks meet in an all-reduce that ends at ``ends``. One comes to it at 410
    and ``late``, after 100 of compute, a gap of ``late`` (behind a wait, or one in which it ``works`` on), and 300 of
    compute. The clock of the rank is ahead by ``clock``; its first recorded step has number ``first``."""
    builder = TraceBuilder(rank=number, world_size=size)
    builder.recording(*(2000 * i + clock for i in range(len(late) + 1)), first=first, phase=phase)
    for step, (more, end) in enumerate(zip(late, ends, strict=False)):
        at = 2000.0 * step + clock
        comes = at + 410 + more
        builder.launch("forward", call=(at + 1, 4), runs=(at + 10, 100 + (more if works else 0)))
        if more and wait and not works:
            builder.op("aten::item", at + 6, 130).copy("DtoH", call=(at + 8, 2), runs=(at + 110, 1))
            builder.stream_sync(at + 11, 101).warning(at + 140, READ)
        builder.launch("backward", call=(comes - 305, 3), runs=(comes - 300, 300))
        builder.launch(
            ALL_REDUCE,
            call=(comes - 290, 3),
            runs=(comes, at + end - comes),
            stream=13,
            args={"Process Group Name": group},
        )
    return builder


def joined(*builders: TraceBuilder) -> Report:
    return analyze_timelines([Timeline(builder.trace(f"rank{i}.json")) for i, builder in enumerate(builders)])


def stragglers(*builders: TraceBuilder) -> list[Finding]:
    return [finding for finding in joined(*builders).findings if finding.rule == "DST601"]
