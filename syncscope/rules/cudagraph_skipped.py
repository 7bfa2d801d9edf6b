from __future__ import annotations

from syncscope.advice import Advice
from syncscope.rules.base.compile_rule import NOT_LOOKED_FOR, CompileGroup, CompileRule, over_run
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection
from syncscope.schema.compiling import CompileKind
from syncscope.timeline import Timeline


class CudagraphSkipped(CompileRule):
    """CUDA graphs were asked of torch.compile, and a graph runs without them or is recorded again and again.

    Why it costs: `mode="reduce-overhead"` replays all kernels of a graph with one launch. Inductor goes without where a
    graph writes to its own inputs, has tensors on the CPU, or shapes that change, and says so in one line of its log.
    The step then launches each kernel, at the pace of the host. A graph that is recorded anew waits for the device,
    and runs its kernels twice.

    Bad:
        @torch.compile(mode="reduce-overhead")
        def decode(x, cache):
            cache.add_(x)                 # writes to an input: no CUDA graph
            return cache.sum()

    Good:
        @torch.compile(mode="reduce-overhead")
        def decode(x, cache):
            cache = cache + x             # a new tensor, which the caller keeps
            return cache.sum(), cache

    Fine:
        torch.compile(step)               # no CUDA graphs asked for

    The line is the one that Inductor names, else the call that runs the graph. A graph is recorded once for each shape
    and each order of graphs: a finding are those that are recorded in warm steps. Where shapes are dynamic, each size
    that comes for the first time is only warmed up, and runs without a graph: sizes that never come again never have
    one. The saving is that of LCH501, each stretch of launches that all steps repeat as one graph, and what the host
    does in the recorded steps to record graphs.
    """

    code = "CMP703"
    name = "cudagraph-skipped"
    severity = "warning"
    needs = ("compiled",)
    gated = False
    question = Intervention.RECORD_NO_GRAPHS
    kinds = ("skip", "record", "warm")
    heard_from = "torch._inductor"
    advice = (
        Advice(
            "mutated",
            "Return a new tensor instead of writing to an input, or make the input a buffer of the module "
            "(register_buffer), whose address stays.",
        ),
        Advice(
            "cpu",
            "Move the tensor on the CPU to the device before the call: torch.arange and torch.tensor with "
            "device='cuda', scalars as device tensors.",
        ),
        Advice(
            "dynamic",
            "Pad to a few sizes, each of which is recorded once, or fill a static buffer under a mask. "
            "torch._dynamo.mark_dynamic spares compilations, but no recordings: with "
            "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True what has dynamic shapes runs without "
            "CUDA graphs, and nothing is recorded.",
        ),
        Advice(
            "recorded",
            "Keep shapes and addresses of the inputs the same: static buffers that are filled by copy_, few shapes, "
            "and torch.compiler.cudagraph_mark_step_begin() at the begin of each step.",
        ),
        Advice("", "Take out what Inductor names, or compile without CUDA graphs where that part is not launch-bound."),
    )

    def why_unchecked(self, timeline: Timeline) -> str | None:
        read = timeline.trace.recording is None  # rows of a trace say nothing of graphs that are not there
        return NOT_LOOKED_FOR if read else super().why_unchecked(timeline)

    def reports_compiled(self, group: CompileGroup) -> bool:
        return _skips(group) > 0 or _warm(group, "record") > 0 or _new_sizes(group) > 0

    def hit(self, group: CompileGroup, inspection: Inspection) -> Hit:
        skips = _skips(group)
        message = f"Inductor runs this without CUDA graphs: {group.because}" if skips else _recording(group)
        fields = over_run(group) if group.warm and not skips else {}
        return Hit(self.make(group, message, self.advise(*_sorts(group)), **fields))


def _skips(group: CompileGroup) -> int:
    return sum(one.event.count for one in group.events if one.event.kind == "skip")


def _recording(group: CompileGroup) -> str:
    """What Inductor records in warm steps, and the sizes for which it only gets ready to."""
    recorded, warmed = _warm(group, "record"), _new_sizes(group)
    because = f" ({group.because or 'for a shape not seen before'})"
    if not warmed:
        return f"a CUDA graph is recorded {_times(recorded)} in warm steps{because}"
    first = f"inputs have a size not seen before {_times(warmed)} in warm steps, and run without a CUDA graph then"
    return f"{first}{f'; one is recorded {_times(recorded)}' if recorded else ''}{because}"


def _warm(group: CompileGroup, kind: CompileKind) -> int:
    return sum(one.event.warm for one in group.events if one.event.kind == kind)


def _new_sizes(group: CompileGroup) -> int:
    """How often a graph that is compiled runs for a size for the first time, in warm steps. What has no reason is a
    graph that runs for the first time at all."""
    return sum(one.event.warm for one in group.events if one.event.kind == "warm" and one.event.reason)


def _times(count: int) -> str:
    return f"{count:,} time{'s' if count != 1 else ''}"


def _sorts(group: CompileGroup) -> list[str]:
    """Why there is no graph, for the advice."""
    reason = group.because.lower()
    words = {
        "mutated": ("mutated", "mutation"),
        "cpu": ("cpu device", "cpu ", "multiple devices"),
        "recorded": ("re-record", "recorded again"),
        "dynamic": ("dynamic", "symint", "distinct sizes", "incompatible op"),
    }
    found = [sort for sort, known in words.items() if any(word in reason for word in known)][:1]
    return found or ([] if _skips(group) else ["recorded"])
