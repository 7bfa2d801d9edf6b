from __future__ import annotations

from syncscope.advice import Advice
from syncscope.patterns import compile_later
from syncscope.rules.base.compile_rule import CompileGroup, CompileRule
from syncscope.rules.base.groups import to_ms
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection
from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Timeline
from syncscope.timeline.steps import step_of

NO_ROW = "a break behind which nothing is compiled leaves no row in a trace that syncscope did not record"

FORWARD = compile_later(r"CompiledFunction$")
"""AOTAutograd's name for a graph that it compiled."""

JUMP = "generic_jump TensorVariable()"
"""Dynamo's words for a branch on a tensor's value."""


class GraphBreak(CompileRule):
    """A compiled graph ends at a line that torch.compile cannot trace, and Python runs on.

    Why it costs: each break ends a graph. What is before and behind the line is compiled apart, so it is not fused, and
    every step pays for guards, Python and launches between the parts. CUDA graphs (`mode="reduce-overhead"`) cannot
    span a break either. A break inside of a loop, or of a `with` that Dynamo does not know, leaves the whole function
    uncompiled.

    Bad:
        @torch.compile
        def step(x):
            y = net(x)
            if y.sum().item() > 0:        # a value of the device is needed to go on
                y = y * 2
            return y

    Good:
        @torch.compile
        def step(x):
            y = net(x)
            return torch.where(y.sum() > 0, y * 2, y)

    Fine:
        log(loss.item())                  # outside of the compiled function

    The line is the innermost of the user's in PyTorch's own account of the break. A wait at the line that breaks the
    graph is related to this finding. The saving is a bound: the replay launches the stretches of the step that repeat
    as one graph each, with neither the wait at the line nor the Python around it, and leaves the kernels as they are.
    What fusing them anew would change nobody knows before it is done. Breaks are seen when a function is compiled, so
    each counts once, however many steps run it. A trace that syncscope did not record holds neither line nor reason.
    There the finding is a compiled function that runs inside of another, which happens behind a break only. It says
    what the host does outside of the graphs.
    """

    code = "CMP702"
    name = "graph-break"
    severity = "warning"
    needs = ("compiled",)
    gated = False
    question = Intervention.JOIN_GRAPHS
    limited_by = "max_graph_breaks"
    breaks_graphs = True
    kinds = ("break",)
    advice = (
        Advice(
            "item",
            "Keep the value on the device (torch.where, masks), read it behind the compiled function, or set "
            "torch._dynamo.config.capture_scalar_outputs where the graph only passes it on.",
        ),
        Advice(
            "branch",
            "Compute both sides and choose with torch.where, or use torch.cond: a branch on a tensor's value ends the "
            "graph.",
        ),
        Advice(
            "shape",
            "Give the operator a fixed size (a mask instead of nonzero, output_size), or set "
            "torch._dynamo.config.capture_dynamic_output_shape_ops.",
        ),
        Advice(
            "print",
            "Move printing and logging out of the compiled function, or name the logger in "
            "torch._dynamo.config.reorderable_logging_functions.",
        ),
        Advice(
            "",
            "Move what Dynamo cannot trace out of the compiled function, or register it as an operator "
            "(torch.library.custom_op). torch.compile(fullgraph=True) raises at the line, so that it cannot come back.",
        ),
    )

    def why_unchecked(self, timeline: Timeline) -> str | None:
        return None if _is_read(timeline) else _count_graphs(timeline) or super().why_unchecked(timeline)

    def why_partial(self, timeline: Timeline) -> str | None:
        return NO_ROW if _is_read(timeline) else super().why_partial(timeline)

    def reports_compiled(self, group: CompileGroup) -> bool:
        return True

    def hit(self, group: CompileGroup, inspection: Inspection) -> Hit:
        timeline, site = group.timeline, group.place.site
        runs, steps = group.runs_per_step, len(timeline.steps)
        waits = [
            other.waits
            for other in inspection.hits
            if site is not None and other.finding.site is not None and other.waits
            and (other.finding.site.file, other.finding.site.line) == (site.file, site.line)
        ]  # fmt: skip
        finding = self.make(
            group,
            self._message(group),
            self.advise(*_sorts(group)),
            count=group.count if group.is_read else round(runs * steps) if runs else 0,
            per_step=round(runs, 6) if runs else None,
        )
        return Hit(finding, waits=frozenset().union(*waits))

    def _message(self, group: CompileGroup) -> str:
        if group.is_read:
            parts = max(one.event.graphs for one in group.events)
            ends = f"{group.function} runs in {parts:,} parts, one inside of the other, since its graph breaks"
            return f"{ends}{_outside_of_graphs(group)}"
        because = group.because.replace(JUMP, "a branch on the value of a tensor")
        because = f" ({because})" if because else ""
        if group.uncompiled:
            ends = f"{group.function} runs uncompiled: Dynamo cannot go on behind this line{because}"
        else:
            ends = f"the compiled graph of {group.function} ends here{because}"
        return f"{ends}{_in_a_step(group)}"


def _is_read(timeline: Timeline) -> bool:
    """Whether a trace of others has rows of compiled functions, whatever else it does not mark."""
    return timeline.trace.recording is None and timeline.compiled is not None


def _count_graphs(timeline: Timeline) -> str | None:
    """Why graphs alone do not tell, in a trace of others from before their functions had marks (torch 2.2)."""
    graphs = timeline.ops.take(timeline.ops.named(FORWARD.match))
    if timeline.trace.recording is not None or not len(graphs):
        return None
    steps = timeline.steps
    if len(steps):
        number = int((step_of(steps, graphs.ts) >= 0).sum()) / len(steps)
        said = f"a step runs {number:,.3g} compiled graph{'s' if number != 1 else ''}"
    else:
        said = f"the trace has {len(graphs):,} runs of compiled graphs"
    return f"{said}, and nothing says which of them are parts of one function: record with syncscope profile"


def _outside_of_graphs(group: CompileGroup) -> str:
    """What one run does outside of its graphs, where its rows tell."""
    between = group.events[0].between
    if between is None:
        return ""
    launches = f" and makes {_launches(between.launches)}" if between.launches else ""
    return f"; outside of its graphs the host takes {milliseconds(to_ms(between.host_ns))} a run{launches}"


def _launches(number: float) -> str:
    return f"{number:,.3g} launch{'es' if number != 1 else ''}"


def _in_a_step(group: CompileGroup) -> str:
    """How many graphs a step is."""
    regions = group.timeline.regions if group.is_recorded else None
    if regions is None or not regions.steps:
        return ""
    graphs = sum(one.count for one in regions.regions) / regions.steps
    said = f"; a step runs {graphs:,.3g} compiled part{'s' if graphs != 1 else ''}"
    if regions.launches_between is None:
        return said
    between = regions.launches_between / regions.steps
    return f"{said}, with {_launches(between)} between their graphs"


def _sorts(group: CompileGroup) -> list[str]:
    """What breaks the graph, for the advice."""
    reason = " ".join((*group.reasons, *(one.event.detail or "" for one in group.events))).lower()
    words = {
        "print": ("print", "logg", "warnings"),
        "shape": ("dynamic shape operator", "nonzero", "data-dependent operator", "data dependent operator"),
        "branch": ("data-dependent branching", "data-dependent jump", "generic_jump", "data dependent branch"),
        "item": ("item()", "tensor.item", "local_scalar_dense", "tolist", "scalar"),
    }
    return [sort for sort, known in words.items() if any(word in reason for word in known)][:1]
