from __future__ import annotations

from syncscope.advice import Advice
from syncscope.patterns import compile_later
from syncscope.rules.base.compile_rule import CompileGroup, CompileRule, over_run
from syncscope.rules.base.groups import to_ms
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection
from syncscope.schema.compiling import WARM_STEPS
from syncscope.schema.numbers import milliseconds
from syncscope.timeline.run import turns

SORTS = (
    ("limit", compile_later(r"recompile_limit|cache_size_limit|limit reached")),
    ("size", compile_later(r"(?:size|stride|rank) mismatch|\.size\(\)|\.shape\b|\bs\d+\b|Eq\(|Ne\(|Mod\(")),
    ("dtype", compile_later(r"dtype mismatch|dispatch key|requires_grad|device index|check_tensor|type mismatch")),
    ("mode", compile_later(r"grad_mode|GRAD_MODE|autocast|inference_mode|default_device|GLOBAL_STATE|deterministic")),
    (
        "object",
        compile_later(r"___check_(?:obj|type)_id|___check_type|\bid\(|BACKEND_MATCH|weakref|is not None|is None"),
    ),
    ("length", compile_later(r"\blen\(|___dict_|keys\(\)")),
    ("value", compile_later(r"==|!=")),
)
"""What a guard is about, by PyTorch's words for it."""


UNCOMPILED = (
    "the recorded steps run it uncompiled, so nothing in them shows how long its compiled kernels take: record once "
    "with what changes kept the same, and compare the two (syncscope diff)"
)
"""Why no saving is known of a function that reached the limit."""


class Recompile(CompileRule):
    """A function is compiled again in a warm step, since a guard of what was compiled fails.

    Why it costs: torch.compile compiles for the values and shapes that it saw, and writes guards for them. Where a
    guard fails the host stops to trace and compile the function once more, for a second or for minutes, and the device
    runs dry. After eight times (`torch._dynamo.config.recompile_limit`) the function runs uncompiled for good.

    Bad:
        @torch.compile
        def forward(x, scale: float):          # compiled anew for each scale
            return x * scale

    Good:
        @torch.compile
        def forward(x, scale: torch.Tensor):   # a tensor's value is in no guard
            return x * scale

    Fine:
        model(batch)           # the first steps compile: for a second shape once more, with that dimension dynamic

    The line is the one that the guard comes from where PyTorch names it, else that of the function's `def`. Compiling
    in the first three steps of a phase is expected, and is no finding. What it costs is the host's time over the run.
    As long as the device still has work of the steps before, it loses nothing: that is taken off.
    """

    code = "CMP701"
    name = "recompile"
    severity = "warning"
    needs = ("compiled",)
    gated = False
    question = NoQuestion("a step in which the host compiles is not the steady step: see what it costs over the run")
    limited_by = "max_recompiles"
    kinds = ("recompile",)
    advice = (
        Advice(
            "uncompiled",
            "Find what changes and keep it out of the guards: pass changing numbers as tensors, mark changing "
            "dimensions with torch._dynamo.mark_dynamic. Raise torch._dynamo.config.recompile_limit only where the "
            "variants are few and known.",
        ),
        Advice(
            "size",
            "Mark the dimension that changes as dynamic (torch._dynamo.mark_dynamic(x, 0), or "
            "torch.compile(dynamic=True)), or pad to a few sizes.",
            before="step = torch.compile(step)\nloss = step(batch)",
            after="step = torch.compile(step)\ntorch._dynamo.mark_dynamic(batch, 0)\nloss = step(batch)",
        ),
        Advice("value", "Pass a number that changes as a tensor, or keep it the same: its value is part of the guard."),
        Advice(
            "length",
            "Keep the list or dictionary of one length: allocate it whole, and fill it (a static cache of keys and "
            "values).",
        ),
        Advice(
            "dtype",
            "Give the function tensors of one dtype, device and requires_grad; convert them before the call.",
        ),
        Advice(
            "mode",
            "Call it under one mode: compile a copy of its own for evaluation, and enter no_grad or autocast outside.",
        ),
        Advice(
            "object",
            "Pass the same object each time: functions, modules and other objects made anew in each step are others to "
            "the guard.",
        ),
        Advice(
            "",
            "Keep what the guard looks at the same from step to step, or out of the compiled function. "
            "TORCH_LOGS=recompiles prints each one.",
        ),
    )

    def reports_compiled(self, group: CompileGroup) -> bool:
        return group.warm > 0 or len(group.spans) > 0

    def hit(self, group: CompileGroup, inspection: Inspection) -> Hit:
        steps = len(group.timeline.steps)
        stall_ns = sum(span.end - span.ts for span in group.spans)
        run = {} if group.is_read else {"run_saving_ms_per_step": _saving_ms(group), **over_run(group)}
        why = {"saving_null_why": UNCOMPILED} if group.uncompiled and not group.spans else {}
        finding = self.make(
            group,
            self._message(group),
            self.advise(*_sorts(group)),
            stall_ms_per_step=to_ms(stall_ns, steps) if group.is_recorded else None,
            stall_ms=to_ms(stall_ns) if group.spans else None,
            **why,
            **run,
        )
        return Hit(finding)

    def _message(self, group: CompileGroup) -> str:
        if group.is_read:
            count, length_ns = len(group.spans), sum(span.end - span.ts for span in group.spans)
            said = f"{count:,} time{'s' if count != 1 else ''}, {milliseconds(to_ms(length_ns, max(count, 1)))} each"
            return f"{group.function} is compiled again in the trace: {said}"
        times, steps = f"{group.warm:,} time{'s' if group.warm != 1 else ''}", group.phase.steps
        where = f"in {steps:,} steps of {group.phase.name}" if steps else f"in {group.phase.name}"
        took = milliseconds(to_ms(group.warm_ns, max(group.warm, 1)))
        because = f" because a guard failed ({group.because})" if group.because else ""
        said = f"{group.function} is compiled again{because}: {times} {where} after the first {WARM_STEPS}, {took} each"
        return f"{said}; then it runs uncompiled" if group.uncompiled else said


def _sorts(group: CompileGroup) -> list[str]:
    """What the guard is about, for the advice."""
    if group.uncompiled:
        return ["uncompiled"]
    reason = group.reasons[0] if group.reasons else ""
    return [name for name, pattern in SORTS if pattern.search(reason)][:1]


def _saving_ms(group: CompileGroup) -> float:
    """Milliseconds a step over the run that the host compiles while the device has nothing left to do: it had the work
    that was queued at the end of the bare steps."""
    recording = group.timeline.trace.recording
    bare = recording.bare if recording is not None and group.is_recorded else None
    queued = (bare.drain_ns or 0) if bare is not None else 0
    return to_ms(max(group.warm_ns - queued * group.warm, 0), turns(group.phase))
