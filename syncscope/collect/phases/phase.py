"""One phase of a program: what it does in one loop, its steps and its time."""

from __future__ import annotations

import math
import random
import statistics
import weakref
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

from syncscope.collect.phases.loops import Loop, may_follow
from syncscope.schema.counting import CountedSource, PhaseKind

CallPlace = tuple[CodeType, int] | None
"""A function and where in it something is called (``f_lasti``); ``None`` where that does not matter."""


class StepPlace(NamedTuple):
    """Where in a step something is called: there, and where the function that runs the phase's loop stands. A function
    that calls a module may itself be called at several lines of the loop."""

    code: CodeType
    lasti: int
    outer: CodeType | None
    """``None`` where nothing around runs the loop."""
    outer_lasti: int

    def is_other_branch_of(self, other: StepPlace) -> bool:
        """Whether it and ``other`` cannot both come in one turn of the loop."""
        one, two = (self.outer, self.outer_lasti), (other.outer, other.outer_lasti)
        if one == two:
            one, two = (self.code, self.lasti), (other.code, other.lasti)
        code = one[0]
        if code is None or code is not two[0]:
            return False
        return not (may_follow(code, one[1], two[1]) or may_follow(code, two[1], one[1]))


IN_OTHER_TURNS = -1

FOLLOW_NS = 3_000.0
"""What following a step that passes unheard is taken to cost until one was timed."""

WHOLE = 2.7
"""What following costs, as a multiple of what can be timed: not the calls of our hooks, nor their ends, nor what they
push out of caches. On an H200 (docs/evidence.md) 1.8 gave two thirds of what short steps took longer."""

MEMORY = 0.05
"""Weight of a step that was timed in the average."""

DISTURBED = 10.0
"""A step is not taken to cost more than so many times the average: another thread ran in it."""

MUCH, LITTLE = 0.005, 0.002
"""Shares of a step at which few steps are looked at closely, and at which all of them are again."""

FEW_LOOKS = 15
"""Of 16 steps one is looked at closely: a mask. Another loop that calls the same module, in the same mode and with no
event in between, is found up to 15 steps late."""

PASSED = 0.2
"""What following costs in a step that is not looked at closely, as a share of one that is: 1 to 1.5 µs of 10 to 13 were
measured out of cold caches on a server's processor, and about twice that where several modules are called in a step."""

MOST_OWNERS = 8
"""Modules that are remembered to have ended steps."""

FAR = 3

RESERVOIR = 512
"""Lengths of steps kept of a phase."""


class Reservoir:
    """Numbers drawn evenly from all that were added, at most ``RESERVOIR``."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._draw = random.Random(0)  # the program's own random numbers stay as they are
        self._weight = 1.0
        self._skip = 0
        """Numbers to pass over before one is kept: drawn at once, so that most cost nothing."""

    def add(self, number: int) -> None:
        if len(self._kept) < RESERVOIR:
            self._kept.append(number)
            if len(self._kept) == RESERVOIR:
                self._draw_skip()
        elif self._skip:
            self._skip -= 1
        else:
            self._kept[self._draw.randrange(RESERVOIR)] = number
            self._draw_skip()

    def _draw_skip(self) -> None:
        """Algorithm L of Li, "Reservoir-sampling algorithms of time complexity O(n(1 + log(N/n)))", 1994."""
        self._weight *= math.exp(math.log(1 - self._draw.random()) / RESERVOIR)
        self._skip = int(math.log(1 - self._draw.random()) / math.log1p(-self._weight))

    def median(self) -> int | None:
        return int(statistics.median(self._kept)) if self._kept else None

    def p95(self) -> int | None:
        if not self._kept:
            return None
        return sorted(self._kept)[min(len(self._kept) - 1, int(0.95 * len(self._kept)))]

    def mean(self) -> int | None:
        """Of those that are not far beyond the 95th percentile: they were something else."""
        p95 = self.p95()
        return None if p95 is None else int(statistics.fmean(one for one in self._kept if one <= FAR * p95))


@dataclass(eq=False, repr=False)
class Phase:
    """One loop of the program. Changes as more is seen; the object stays.

    ``name`` may change until the end, when another phase of the same kind turns up. ``slug`` is for file names: it
    never changes once it has been read.
    """

    number: int
    kind: PhaseKind
    loop: Loop | None = None
    """The loop by which it is known; ``None`` for ``start``, ``epoch end``, ``checkpoint`` and where there is no
    loop."""
    name: str = ""
    user_code: CodeType | None = None
    """The function of the user's that runs the loop, or calls the library that does."""
    user_line: int | None = None
    called: str = ""
    """The function of a library that ``user_code`` calls there, and that runs the loop."""
    optimised: bool = False
    """An optimiser stepped in it."""
    captured: bool = False
    """A step of its optimiser was captured in a CUDA graph. Whoever replays that does not call the optimiser."""
    silent: bool = False
    """So it is: the turns of the loop that replays the graph are its steps."""
    spoken: int = 0
    """Calls of the optimiser since then, ..."""
    first_spoken_at: int = 0
    """... and how many steps it had made before the first."""
    source: CountedSource = "none"
    evaluates: bool = False
    """Its optimiser evaluates a closure many times in a step of its own, and each time is a step."""
    steps: int = 0
    one_by_one: bool = False
    """It makes one step each time, again and again, in a program that does nothing else: each request of a server, say,
    is found in a list of routes. All of them are one time."""
    times: int = 0
    made_before: int = -1
    """Steps that all phases had when the program entered this one last, where it has none itself."""
    time_ns: int = 0
    in_every_step_of: Phase | None = None
    rolls: bool = False
    """It calls modules in training, without gradients: a rollout where every step of the training has one."""
    transforms: bool = False
    """So far it has only called modules in training that have nothing to learn, such as transforms of pictures."""
    folded_into: Phase | None = None
    intruder: PhaseKind | None = None
    """The first phase that came in since the last boundary. Reset after ``Listener.stepped``."""
    lengths: Reservoir = field(default_factory=Reservoir)
    step_ns: int = 0
    """Time since the last boundary, without what intruded."""
    timed: bool = False
    """A boundary was seen, so that ``step_ns`` is the time of one step."""

    follow_ns: float = FOLLOW_NS
    """What following costs in a step that passes unheard and is looked at closely."""
    passing_ns: float = FOLLOW_NS
    """What it costs in a step that passes unheard, on average."""
    timed_steps: int = 0
    """Steps that this was timed in."""
    seldom: bool = False
    """It takes much of the step, so that few are looked at closely."""
    called_inside: bool = False
    """A further loop inside of its steps calls modules too: each step is looked at closely."""

    owner_at: StepPlace | None = None
    """Where the call of its module is that ends a step."""
    called_at_too: dict[StepPlace | None, int] = field(default_factory=dict)
    """Where else that module was called, and the number of steps when it last was; ``IN_OTHER_TURNS`` where a call
    there is another turn of the loop."""

    # How the tracker finds it and its steps.
    loops: set[Loop] = field(default_factory=set)
    around: set[Loop] = field(default_factory=set)
    """Loops that enclose it."""
    frame_id: int = 0
    """The frame that runs its outermost loop, while it runs."""
    called_from: tuple[int, int] | None = None
    """What ``Nest.called_from`` says of that frame; ``None`` where it was not asked."""
    shares: bool = False
    """It is an evaluation with the loop of a training."""
    called_at: CallPlace = None
    """Where such an evaluation first called a module that is not in training."""
    last_called_at: CallPlace = None
    """Where it did last."""
    ended: bool = False
    """Its loader was exhausted."""
    data: weakref.ref[Any] | None = None
    """The dataset that the training learned from last."""
    evaluates_data: bool = False
    """The loop of a training evaluates what it learns from, too."""
    owns_function: bool = False
    """No other phase has a loop in the same function: the rest of the function is part of the phase."""
    owner: weakref.ref[Any] | None = None
    """The optimiser or module whose call is the boundary."""
    owners: list[tuple[weakref.ref[Any], StepPlace | None]] = field(default_factory=list)
    """The latest ones, and where each was called."""
    seen: dict[CountedSource, dict[tuple[int, StepPlace | None], int]] = field(default_factory=dict)
    """How often each optimiser and module was seen, by id; where one is chosen, since that was."""
    training_calls: int = 0
    calls_a_step: int = 0
    """As many calls of modules in training, with gradients, as a step of it has, or a few more."""
    left_for_calls: int = 0
    """How often such a call was what told that the program had left the training."""
    calls_in_turns: int = 0
    """Calls of modules in it while its loop's turns are its steps, ..."""
    first_call_at: int = 0
    """... and how many of those it had made before the first."""
    since_owner: int = 0
    """Steps of other optimisers since the last of the chosen one."""
    owned: int = 0
    """How often the loop had begun when the chosen one was seen last."""
    by_batch: bool = False
    """The first call after each batch of its loader is the boundary."""
    batches: int = 0
    counted_batch: int = 0
    calls: int = 0
    """Calls since the training's last boundary."""
    few: int = 0
    many: int = 0
    """Training steps in a row with few, with many calls."""
    _slug: str | None = None
    _others: list[Phase] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = self.name or self.kind
        if self.loop is not None:
            self.loops.add(self.loop)

    @property
    def intruded(self) -> bool:
        """Whether another phase came in since the last boundary."""
        return self.intruder is not None

    @property
    def owner_lives(self) -> bool:
        """Whether the optimiser or module whose calls end steps may come again."""
        return self.owner is not None and self.owner() is not None

    def forget_seen(self) -> None:
        """Its loop begins again. What came behind the owner's last call is no second caller, but where that is gone,
        one that is called in its place."""
        seen, gone = self.seen.pop(self.source, {}), self.owner is not None and self.owner() is None
        if gone and self.owner_at is not None:
            self.seen[self.source] = {key: times for key, times in seen.items() if key[1] == self.owner_at}

    def remember_owner(self) -> None:
        """Another one is chosen."""
        if self.owner is not None:
            now = self.owner()
            kept = [(owner, place) for owner, place in self.owners if owner() is not None and owner() is not now]
            self.owners = [*kept[1 - MOST_OWNERS :], (self.owner, self.owner_at)]

    def was_owned_by(self, caller: Any, place: StepPlace | None) -> bool:
        """Whether calls of ``caller`` at ``place`` were the boundary before."""
        return any(owner() is caller and where == place for owner, where in self.owners)

    def saw_more(self, optimizer: Any, steps: int) -> None:
        """So many ``steps`` of an optimizer that is not the chosen one passed untold: they count if it is chosen."""
        self.since_owner += steps
        seen = self.seen.get("optimizer", {})
        if (id(optimizer), None) in seen:
            seen[id(optimizer), None] += steps

    def learn_from(self, loader: Any) -> None:
        """The training took a batch of the iterator ``loader``."""
        try:
            self.data = weakref.ref(loader._dataset)
        except Exception:  # a list, say, or an iterator of a class that does as it likes
            self.data = None

    def learns_from(self, loader: Any) -> bool:
        """Whether what the iterator ``loader`` gives is what the training learned from: it goes on."""
        data = self.data() if self.data is not None else None
        try:
            return data is not None and not self.evaluates_data and data is getattr(loader, "_dataset", None)
        except Exception:
            return False

    @property
    def slug(self) -> str:
        """A short name for files, fixed once it has been read."""
        if self._slug is None:
            base = self.kind.replace(" ", "_")
            taken = {other._slug for other in self._others}
            number = 1
            while (slug := base if number == 1 else f"{base}{number}") in taken:
                number += 1
            self._slug = slug
        return self._slug

    def followed(self, timed_ns: int) -> None:
        """Following took so long in one step, drawn at random."""
        self.timed_steps += 1
        seen = min(WHOLE * timed_ns, DISTURBED * max(self.follow_ns, FOLLOW_NS))
        self.follow_ns += max(MEMORY, 1 / self.timed_steps) * (seen - self.follow_ns)

    def look_seldom(self, length_ns: int) -> int:
        """The mask of steps that are not looked at closely: none, or most of them. A step takes ``length_ns``."""
        much = self.follow_ns > (LITTLE if self.seldom else MUCH) * length_ns
        self.seldom = much and self.timed_steps > 0 and not self.called_inside
        mask = FEW_LOOKS * self.seldom
        self.passing_ns = self.follow_ns * (PASSED + (1 - PASSED) / (mask + 1))
        return mask

    def join(self, phases: list[Phase]) -> None:
        """Tell it of all phases of the run: its slug differs from theirs."""
        self._others = phases

    def restart(self) -> None:
        """Begin to count its steps again."""
        self.source = "none"
        self.owner = None
        self.owners.clear()
        self.seen.clear()
        self.steps = self.step_ns = self.training_calls = self.since_owner = self.calls_in_turns = self.spoken = 0
        self.timed = self.captured = self.silent = False
        self.lengths = Reservoir()

    def __repr__(self) -> str:
        return f"<Phase {self.number} {self.name}: {self.steps} steps>"
