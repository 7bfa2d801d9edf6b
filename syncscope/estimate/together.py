"""All findings together: what is asked of the replay for that, and what comes of the answers.

Of some findings only a bound is known, which nobody should count on. So what all together likely save is said of the
others, with its range; and the most that there is, with those too, is a replay of its own, in which everything is as it
is at best.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import zip_longest

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.estimate.answers import DRIFT, Saving
from syncscope.estimate.edits import Question, combine
from syncscope.estimate.items import COLLECTIVE
from syncscope.estimate.prepare import Prepared
from syncscope.estimate.program import Program
from syncscope.schema.findings import Finding


class Tried(msgspec.Struct, frozen=True, dict=True):
    """The findings for which something is replayed."""

    questions: tuple[Question, ...]
    best: tuple[Question, ...]
    """What each of them asks at best; for most the same."""
    firm: tuple[bool, ...]
    """Whether each has a saving, and not only a bound."""

    @classmethod
    def of(cls, prepared: Prepared) -> Tried:
        """Those of a trace, in their order."""
        every = zip_longest(prepared.questions, prepared.at_best, prepared.at_most)
        found = [(question, best or question, not most) for question, best, most in every if question]
        return cls(*map(tuple, zip(*found, strict=True))) if found else cls((), (), ())

    def __len__(self) -> int:
        return len(self.questions)

    @cached_property
    def whole(self) -> list[int]:
        """The numbers of those that together likely save something: all, where each has only a bound."""
        return np.flatnonzero(self.firm).tolist() if any(self.firm) else list(range(len(self)))

    @cached_property
    def better(self) -> list[int]:
        """The numbers of those that may save more than what they ask."""
        return [number for number, (one, best) in enumerate(zip(self.questions, self.best, strict=True)) if one != best]

    @property
    def mixed(self) -> bool:
        """Whether some have a saving, and others only a bound."""
        return any(self.firm) and not all(self.firm)

    @cached_property
    def bests(self) -> list[Question]:
        """What is asked besides: each of ``better`` at best, with them the ``whole``, and where they are ``mixed`` all
        at best."""
        asked = [self.best[number] for number in self.better]
        if self.better and len(self) > 1:
            asked.append(combine(self.best[number] for number in self.whole))
        return [*asked, combine(self.best)] if self.mixed else asked


class Answers(msgspec.Struct, frozen=True):
    """The savings of findings that were tried, and those of all together."""

    each: tuple[Saving, ...]
    whole: Saving
    """Of those that make up the ``Tried.whole``."""
    most: Saving | None = None
    """Of all at best; ``None`` where that is the whole."""


def reach(tried: Tried, each: Sequence[Saving], whole: Saving, bests: Sequence[Saving]) -> Answers:
    """The savings, of which those that may be more are as much as at best. ``bests`` answers ``Tried.bests``."""
    bests, most = (bests[:-1], bests[-1]) if tried.mixed else (bests, None)
    answers = list(each)
    for number, best in zip(tried.better, bests, strict=False):
        answers[number] = _up_to(answers[number], best)
    return Answers(tuple(answers), _up_to(whole, bests[-1]) if tried.better else whole, most)


def _up_to(saving: Saving, best: Saving) -> Saving:
    return replace(saving, high=max(saving.high or 0.0, best.high or 0.0), below_drift=best.below_drift)


def cap(tried: Tried, answers: Answers, limits: Sequence[float], step_ms: float) -> Answers:
    """The savings of findings that leave ``limits`` to gain, ms. All together save less by what is cut from those that
    are firm."""
    capped = tuple(one.capped(ms, step_ms) for one, ms in zip(answers.each, limits, strict=True))
    pairs = [(answers.each[number], capped[number]) for number in tried.whole] if any(tried.firm) else []

    def less(name: str) -> float | None:
        whole: float | None = getattr(answers.whole, name)
        if whole is None:
            return None
        cut = sum((getattr(one, name) or 0.0) - (getattr(other, name) or 0.0) for one, other in pairs)
        return round(max(whole - cut, *(getattr(other, name) or 0.0 for _, other in pairs), 0.0), 6)

    ms, low, high, likely = map(less, ("ms", "low", "high", "likely"))
    known = 0.0 if likely is None else likely
    low, high = None if low is None else min(low, known), None if high is None else max(high, known)
    whole = replace(answers.whole, ms=ms, low=low, high=high, likely=likely) if pairs else answers.whole
    return replace(answers, each=capped, whole=whole)


def join(tried: Tried, answers: Answers, limits: Sequence[float], step_ms: float, left_ms: float = np.inf) -> Saving:
    """What all findings save, whose own savings are capped by ``limits``, ms: at least as much as each of them.

    With those of which only a bound is known it is no more than the others' most and what each of these leaves to gain,
    and no more than the ``left_ms`` that the trace does.
    """
    if not len(tried):
        return Saving()
    greatest = [one.high or 0.0 for one in answers.each]
    bounds = sum(ms for ms, firm in zip(limits, tried.firm, strict=True) if not firm)
    if not any(tried.firm):
        high = max(min(answers.whole.high or 0.0, bounds, left_ms), *greatest)
        return _with_high(answers.whole, high, step_ms).at_most()
    likely_high = max(answers.whole.high or 0.0, *(greatest[number] for number in tried.whole))
    together = _with_high(answers.whole, likely_high, step_ms)
    if answers.most is None:
        return together
    high = max(min(answers.most.high or 0.0, likely_high + bounds, left_ms), likely_high, *greatest)
    return replace(together, high=round(high, 6), likely_high=likely_high)


def reach_causes(together: Saving, findings: Sequence[Finding], step_ms: float) -> Saving:
    """What all findings save, which is no less than what one cause of idle time likely does by itself that no other
    finding is about: a finding about several asks the replay for one of them."""
    causes = (cause for finding in findings for cause in finding.causes if not cause.covered_by)
    own = [cause for cause in causes if cause.likely_saving_ms_per_step is not None]
    high = max((one.saving_high_ms_per_step or 0.0 for one in own), default=0.0)
    if together.high is None or high <= together.high:
        return together
    likely = max(one.likely_saving_ms_per_step or 0.0 for one in own)
    if together.likely is not None:
        together = replace(together, likely=max(together.likely, likely))
    if together.likely_high is not None:
        together = replace(together, likely_high=max(together.likely_high, likely))
    return replace(_with_high(together, high, step_ms), below_drift=together.below_drift and high < DRIFT * step_ms)


def _with_high(saving: Saving, high: float, step_ms: float) -> Saving:
    return replace(saving, high=round(high, 6), below_drift=saving.below_drift or high < DRIFT * step_ms)


def computed_ms(program: Program, questions: Sequence[Question]) -> tuple[float, float]:
    """Milliseconds a step that the stream which computes for the longest does so whatever is fixed, so that no change
    makes a step shorter, and that kernels take which any of the ``questions`` changes or takes away."""
    items = program.items
    kernels = items.kernel & (items.engine != COLLECTIVE)
    changed = np.zeros(len(items), dtype=bool)
    for one in questions:
        changed[one.items[~one.are(lambda edit: edit.only_timing)]] = True
    kept, changed = kernels & ~changed, kernels & changed
    by_stream = np.bincount(items.stream[kept], weights=items.dur[kept])
    ms = 1e-6 / program.steps
    return float(by_stream.max(initial=0.0)) * ms, float(items.dur[changed].sum()) * ms
