from __future__ import annotations

from collections.abc import Iterable

from syncscope.advice import Advice
from syncscope.rules.base.compile_rule import CompileGroup, CompileRule
from syncscope.rules.base.groups import to_ms
from syncscope.rules.base.question import NoQuestion
from syncscope.rules.base.rule import Hit, Inspection
from syncscope.schema.numbers import milliseconds
from syncscope.timeline.compiling import CompiledSpan


class ColdCompile(CompileRule):
    """Functions are compiled for the first time in the recorded steps.

    Why it costs: nothing in the long run. The first call of a compiled function takes seconds to minutes, and the steps
    in which it falls tell nothing of the steady step. Their times, waits and idle time are those of the compiler.

    Bad:
        syncscope profile --warmup 0 train.py     # the first recorded step compiles

    Good:
        syncscope profile --warmup 20 train.py    # record once everything is compiled

    Fine:
        model = torch.compile(model)              # compiled in the first steps, which no window records

    There is one finding a phase, a note, at the function that takes longest. Such steps are not among the bare steps,
    and a recorded window with one in it is recorded again, three times at most. What runs meanwhile is warm-up.
    """

    code = "CMP704"
    name = "cold-compile"
    severity = "note"
    needs = ("compiled",)
    gated = False
    question = NoQuestion("it is done once, and no part of the steady step")
    kinds = ("compile",)
    advice = (
        Advice(
            "",
            "Nothing, where it happens once: record later steps (--warmup, --profile-at). Where new functions keep "
            "coming, compile what they share.",
        ),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        compiled = inspection.timeline.compiled
        events = compiled.of(*self.kinds) if compiled is not None else ()
        cold = sorted((one for one in events if one.spans), key=lambda one: -_length_ns(one.spans))
        if not cold:
            return []
        return [self.hit(CompileGroup(inspection.timeline, cold[0].phase, tuple(cold)), inspection)]

    def reports_compiled(self, group: CompileGroup) -> bool:
        return len(group.spans) > 0

    def hit(self, group: CompileGroup, inspection: Inspection) -> Hit:
        steps, length_ns = len(group.timeline.steps), _length_ns(group.spans)
        functions = "1 function is" if len(group.events) == 1 else f"{len(group.events):,} functions are"
        message = (
            f"{functions} compiled for the first time in the recorded steps, {milliseconds(to_ms(length_ns))} of the "
            "host's time in all: these steps tell nothing of the steady one"
        )
        return Hit(self.make(group, message, self.advise(), stall_ms_per_step=to_ms(length_ns, max(steps, 1))))


def _length_ns(spans: Iterable[CompiledSpan]) -> int:
    return sum(span.end - span.ts for span in spans)
