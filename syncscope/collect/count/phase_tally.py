"""What was counted in one phase: which of its steps, and what each of them stands for."""

from __future__ import annotations

import math

from syncscope.collect.count.parts import CutParts, Parts, without_cost
from syncscope.collect.count.phase import Phase
from syncscope.collect.count.places import Key, Place
from syncscope.collect.count.rests import Rests
from syncscope.collect.count.sampled import EVERY_STEP, ITSELF, Sampled
from syncscope.collect.count.sampling import Draw, Sampling
from syncscope.collect.count.stays import FEWEST, Stays
from syncscope.collect.count.unusual import Unusual
from syncscope.collect.count.visitors import AFTER, BEFORE, LATE, Visitors
from syncscope.collect.count.visits import Visits
from syncscope.collect.count.weights import Weights
from syncscope.schema.counting import STEPLESS, PhaseKind

BEGUN: frozenset[PhaseKind] = frozenset({"evaluate", "generate", "rollout"})
"""Phases whose steps are told when they begin, by a call or the first one of a batch: the last step of all has no end.
"""

MISSED = 10
"""Steps are counted where the time that was missed is at most one part in so many of that which was counted."""

HARDLY_BEGUN = 0.1
"""Where steps are told when they begin, what came before the first is none if it took less than this part of one."""

LISTEN_AFTER = 32
"""Steps of a training in a row after which the end of its loop is listened for, which takes about 0.1 ms. Where another
phase came sooner the last time, as a rollout after the update of a policy, it is only done in a long stay."""


class PhaseTally(Weights):
    """What is counted in one phase."""

    block_ns: int
    """Time of the block so far."""
    entered_at = 0
    """Steps that the phase had when the program entered it last."""
    listen_after = LISTEN_AFTER

    def __init__(self, phase: Phase, draw: Draw) -> None:
        super().__init__()
        self.phase = phase
        self.stepless = phase.kind in STEPLESS  # they are rare, and all of them is counted
        self._draw = draw
        self.sampling = Sampling(draw, self.stepless)
        self.stays = Stays()
        self._unusual, self._visits = Unusual(), Visits()
        self.times = 0
        """How often its loop had begun at the last step that was heard of."""
        self.warned: dict[int, Place] = {}
        self.called: dict[Key, Place] = {}
        self.begin()
        self.time_ns = self.counted_ns = 0
        self.cost_ns = 0.0
        self.first_cost_ns = -math.inf
        """What counting it has cost so far, and until its first step ended."""
        self.parts = self.cuts = 0
        """Steps that were counted in part, because counting stopped in the middle of them: all, ..."""
        self._cut_step = -1
        """... those since the last whole one, and the latest one."""
        self._cut_parts = CutParts()
        self._lasting_parts = Parts()
        """Of steps that last so long that they are counted by themselves, whenever that can be afforded."""
        self.lasting_step: int | None = None
        """Such a step, while it is under way."""
        self.rests = Rests()
        self.visitors = Visitors()
        self.cut = False
        """Counting stopped in the middle of a step."""

    @property
    def rare(self) -> bool:
        """What it costs to count it now is booked to what is rare, beyond its first steps."""
        return self.stepless or self.sampling.spared or self.sampling.counts_last

    @property
    def is_left_once(self) -> bool:
        """Whether what follows the loop comes once in many steps, as far as is known, and nothing else need tell that
        it begins: of a training, the next phase or the loader may."""
        if self.told_at_begin:
            return not self.stays.for_one
        return self.phase.kind == "train" and self.until_left_once <= 0

    @property
    def until_left_once(self) -> int:
        """Steps until a training is in its loop for long enough; at most 0 from then on."""
        return self.listen_after - (self.phase.steps - self.entered_at)

    def end_visit(self) -> None:
        """The program leaves the phase, which has no steps."""
        visited = self._visits.end(self.time_ns, self.counted_ns, self.cost_ns)
        for place in self.places:
            place.end_visit(visited)

    def begin_visit(self, visitor: int) -> None:
        """Another phase, with the number ``visitor``, begins in the midst of a step. What was prepared for it waited in
        no other steps than those with visits: it is told by how many there were."""
        if self.stepless or self.lasting_step is not None or self.tail is not None:
            return
        if self.told_at_begin:
            seldom = self.phase.steps - self.entered_at >= FEWEST  # what came behind its loop is part of its last step
        else:
            self._end_visited(self.phase.steps - self.since, self.counts)
            seldom = self.visitors.begin(self.phase.steps, visitor)
        if seldom:
            self._tell_by_visits(self.phase.steps, visitor, BEFORE, self.counts)

    def _end_visited(self, steps: int, counted: bool) -> None:
        """So many ``steps`` are over, which were ``counted``. What came after another phase in the midst of one of them
        is told by how often the program came back from that."""
        visited = self.visitors.end_step(self.since, steps)
        if visited is not None and self.lasting_step is None:
            counted &= self._cut_step != visited[0]
            self._tell_by_visits(*visited, AFTER if self.visitors.heard_end or not counted else LATE, counted)

    def _tell_by_visits(self, step: int, visitor: int, part: int, counted: bool) -> None:
        if counted and self._step_weight == 1:
            return  # all steps are counted
        where = self._unusual.visit(visitor, counted, part)
        for place in self._waiting_in(step) if counted else ():
            place.set_apart(where, self.counted_steps)

    def begin(self) -> None:
        """Counting begins with the step that the phase is in."""
        self.first = self.since = self.phase.steps
        self._at_first = 0
        """Steps that were told at once with the first one: where the phase was found in their midst, their waits all
        count as that one's."""
        self._before_ns = 0
        """How long the phase took before the first of them was told."""
        self._in_window = False
        """A window recorded all of the step that nobody has told the end of: the program left the phase in it."""
        self.begin_block()

    def begin_again(self) -> None:
        """Something else counts as a step from now on. What was counted tells a number, and has no frequency. The steps
        are new: those before may have been a tenth as long."""
        sampled = self.told(self.since - self.first, 0, 0) if not self.stepless else EVERY_STEP
        self.sampling = Sampling(self._draw, self.stepless)
        self.parts = self.cuts = 0
        self._unusual = Unusual()
        self._cut_parts, self._lasting_parts, self.lasting_step = CutParts(), Parts(), None
        self.forget_weights()
        self.stays.begin_again(self.phase.steps)
        self.rests.begin_again()
        self.visitors = Visitors()
        self.begin()
        for place in self.places:
            place.begin_again(sampled)

    def sampled(self, counting: bool) -> Sampled:
        """What the counted steps tell of all. ``counting`` is whether those since the last block are counted."""
        if self.stepless:
            return Sampled(visited=self._visits.so_far(self.time_ns, self.counted_ns, self.cost_ns))
        here = max(self.phase.steps - self.since, 0)
        told = self.told(
            self.phase.steps - self.first, here * counting, here * (not counting), self.lacking,
            int(self.told_at_begin and self.counts and not self._in_window),
        )  # fmt: skip
        lasting_ns = self._without_cost() if self.lasting_step is not None else (0.0, 0.0)
        return told._replace(
            of_cut=self._cut_parts.scale(),
            tried=max(self.counted_steps + here * counting - self._alone, 0) + self.parts,
            cut=self.parts,
            of_lasting=self._lasting_parts.scale(*lasting_ns),
            of_long=self._unusual.scale,
            lasting_step=self.lasting_step,
            of_seen=self._of_seen(here * counting),
            first=self.first if self.counted_steps + here * counting - self.lacking > max(self._at_first, 1) else None,
        )

    def _of_seen(self, here: int) -> float:
        """How many times as many steps there are as were seen, where none that was counted stands for those that were
        missed: they are like the ones that were seen. So many are ``here`` since the last block, and counted."""
        alone = self._alone + here * (self._step_weight == ITSELF)
        seen = self.parts + alone + (self.lasting_step is not None and not here)
        unlike = self.told_at_begin and seen and self.counted_steps + here <= alone
        return max((self.phase.steps - self.first) / seen, 1.0) if unlike else 1.0

    def _without_cost(self) -> tuple[float, float]:
        """The time of the block, and the part of it that was counted, had that cost nothing."""
        return without_cost(self.block_ns, self.block_counted_ns, self.block_cost_ns)

    @property
    def counts(self) -> bool:
        """Whether the steps since the last one that ended are counted: hardly anything of them was missed."""
        return self.counted_of(1) > 0

    def counted_of(self, steps: int) -> int:
        """How many of the ``steps`` that are over were counted. Where the loop was over in the first of them, others
        are of its next time, and told late."""
        hears = self.sampling.on and self.heard_ns > 0 and MISSED * self.missed_ns <= self.heard_ns
        first = True if self._in_window else self.tail
        return steps * hears if first is None else first + (steps - 1) * hears

    def _alone_of(self, counted: int, steps: int) -> int:
        """How many of these ``counted`` ones stand for themselves."""
        if self.tail is None or self._in_window:
            return counted * self._in_window
        return max(counted - self.tail, 0) * (steps > 1)

    @property
    def told_at_begin(self) -> bool:
        """Whether its steps are told when they begin. While the program is in another phase, the last one of them is
        likely to be over."""
        return self.phase.kind in BEGUN

    @property
    def lacking(self) -> int:
        """1 where the last step, which has no end, is among the phase's steps and was not counted, else 0."""
        # What follows the loop is a block of its own.
        counted = 2 * self.block_counted_ns >= self.block_ns if self.tail is None else self.tail
        if not self.told_at_begin or self.counted_steps < 2 or counted:
            return 0
        usual = self.time_ns / (self.phase.steps + 1)
        ended = self.phase.steps - self.block_first
        before_ns = self._before_ns - (self._at_first - 1) * usual
        left_out = self.phase.steps - self.first > self.counted_steps
        begun = (self.phase.source == "module" and not self.first) or before_ns < HARDLY_BEGUN * usual
        if left_out and self._at_first and begun:
            return 1  # a counted one is but the moment before the first step, also where two were told at once
        return int(self.tail is None and self.block_ns - ended * usual >= usual / 2)

    def choose_weight(self) -> None:
        """A block of steps begins."""
        sampling = self.sampling
        self.begin_weight(max(sampling.left, 1) if sampling.on else 0, sampling.one_in - 1)

    def stand_for_itself(self) -> None:
        """A step begins, or the rest of one, that stands for no other one. Nor does what was counted of it so far."""
        self._set_apart()
        self.weigh_itself()

    def _set_apart(self) -> None:
        for place in self._waiting_in(self.phase.steps):
            place.weight = ITSELF

    def _waiting_in(self, step: int) -> list[Place]:
        return [place for place in self.places if place.step == step]

    def begin_lasting(self, step: int, ns: int) -> None:
        """``step`` is under way since ``ns`` ago or up to twice as long. It is unlike the others, and counted by itself
        from now on."""
        others_ns = (step - self.block_first) * self.sampling.averages.length
        before_ns = min(max(self.block_ns - others_ns, ns), 2 * ns)
        before = before_ns, min(max(self.block_counted_ns - others_ns, 0.0), before_ns)
        self.end_steps(0, step - self.since)
        cut = self._cut_parts.take(self.block_ns)
        self.parts -= cut is not None
        self._lasting_parts.add(*(cut or before))
        self.begin_block(step)
        self.lasting_step = step
        self.sampling.count_this()
        for place in self._waiting_in(step):
            place.begin_lasting()
        self.weigh_itself()

    def judge_block(self, steps: int) -> None:
        """A block of so many ``steps`` is over. Where one that was drawn turns out to last much longer than others, it
        stands for those alone that may have been as long."""
        sampling, first = self.sampling, self.since
        if steps <= 0 or self.stepless or self.told_at_begin or self.block_first != first:
            return
        if self.lasting_step is not None or self.tail is not None or sampling.counts_last:
            return
        length_ns, one_in = self.block_ns - self.block_cost_ns, sampling.one_in
        if one_in > 1 and not self.block_counted_ns:
            self._unusual.miss(steps, length_ns)
        elif one_in > 1 and steps == 1 and self._step_weight > 1:
            where = self._unusual.take(length_ns, one_in)
            if where is not None:
                self._stand_out(where)
        self._unusual.learn(steps, length_ns)

    def _stand_out(self, where: int) -> None:
        """The step that is over, of which at least a part was counted, lasted much longer than others."""
        cut = self._cut_parts.take(self.block_ns)
        self.parts -= cut is not None
        scale = cut[0] / cut[1] if cut is not None and cut[1] > 0 else 1.0
        for place in self._waiting_in(self.since):
            place.begin_lasting()
            place.end_long(where, self.counted_steps, scale)
        self._unusual.stands_out = True
        self.weigh_itself()

    def end_window(self) -> None:
        """A window of its steps is over, because the program left the phase."""
        self._in_window = self.told_at_begin and self.since == self.phase.steps > self.first
        if self._in_window:
            self._set_apart()

    def enter(self) -> None:
        """The program enters the phase. Where its loop was over, the step that was under way is, too. Nobody tells that
        before a call of the next time, which may be the second one: the first one's waits stand for themselves."""
        self.entered_at = self.phase.steps
        if self.told_at_begin and (self._in_window or self.tail is not None):
            self.weight = ITSELF
            for place in self.places:
                if place.step == self.phase.steps and place.now and not place.last_cut:
                    place.end_step()

    def cut_step(self) -> None:
        """Counting stops in the middle of a step. It is not among those that were counted, unless none is whole."""
        if self._in_counted_step() and self.lasting_step != self.phase.steps:
            self._cut(self.phase.steps)

    def _cut(self, step: int) -> None:
        begun = [place for place in self._waiting_in(step) if place.now]
        if not begun:
            return
        for place in begun:
            place.cut_step()
        self._cut_step = step
        if self.tail is not None:
            self.tail = False
        self.parts += 1
        self.cuts += 1
        whole = max(step - self._on_first, 0)
        counted_ns = self.on_ns - whole * self.sampling.averages.length
        self._cut_parts.cut(max(counted_ns, self.on_ns / (whole + 1)), self.block_ns)

    def _mend(self, steps: int) -> None:
        """So many ``steps`` are over, and were counted. Where counting stopped in one of them, hardly anything was
        missed behind that: it was the last wait that came to cost too much, or the next phase began."""
        if self._cut_step >= self.since + steps or self._cut_parts.take(self.block_ns) is None:
            return
        self.parts -= 1
        for place in self._waiting_in(self._cut_step):
            place.mend_step()

    def go_on(self) -> None:
        """Counting goes on with the step that begins, or with what is left of one that is under way."""
        self._on_first, self.on_ns = self.phase.steps, 0.0

    def go_on_elsewhere(self) -> None:
        """Counting goes on while the program is in another phase. The last step was missed, as far as it was."""
        self._on_first, self.on_ns = self.phase.steps + 1, 0.0

    def skip_step(self) -> None:
        """Counting goes on, in the middle of a step of this phase: it is counted from the next one on."""
        if self._in_counted_step():
            self.begin_block()
            self.sampling.postpone(1)

    def _in_counted_step(self) -> bool:
        """Whether a step is under way that is to be counted. A phase whose first step has not ended may have none,
        unless it begins with one."""
        return not self.stepless and (self.phase.steps > 0 or self.told_at_begin) and self.sampling.on

    def end_steps(self, counted: int, left_out: int) -> None:
        """Steps are over, of which some were counted."""
        if self.first_cost_ns < 0:
            self.first_cost_ns = self.cost_ns
        steps = counted + left_out
        counted = max(counted, int(self._in_window and steps > 0))
        left_out, alone = steps - counted, self._alone_of(counted, steps)
        if self.since == self.first:
            self._at_first = counted
            self._before_ns = self.block_ns
        if counted:
            if self._cut_step >= self.since:
                self._mend(counted)
            self.cuts = 0
        elif steps and self.told_at_begin and self.sampling.on and self.lasting_step is None and self.tail is None:
            self._cut(self.since)  # counting stopped in it or behind it, in another phase
        self._end_visited(steps, counted > 0)
        self.since += steps
        unlike = self.lasting_step is not None or self._unusual.stands_out
        self._unusual.stands_out = False
        if unlike and not counted:  # it is told by what was counted of it
            counted, left_out = 1, steps - 1
        self.weigh(counted - alone, left_out, alone)
        if not steps:
            return
        self._in_window = False
        self._set_weight(self._step_weight)
        self.heard_ns = self.missed_ns = 0
        self._cut_parts.end(steps, self.block_ns)
        if self.lasting_step is not None:
            self._lasting_parts.add(*self._without_cost())
            for place in self._waiting_in(self.lasting_step):
                place.end_lasting()
            self.lasting_step = None

    def begin_block(self, step: int | None = None) -> None:
        """Counting begins anew, with ``step``, or the one that is known to be under way."""
        self.block_first = self.phase.steps if step is None else step
        self.block_ns = self.block_counted_ns = self.heard_ns = self.missed_ns = 0
        self._on_first, self.on_ns = self.block_first, 0.0
        self.block_followed_ns = 0.0
        self.block_cost_ns = self.block_gate_ns = 0.0

    @property
    def places(self) -> list[Place]:
        return [*self.warned.values(), *self.called.values()]
