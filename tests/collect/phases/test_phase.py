"""A phase keeps the lengths of some of its steps, and its file name."""

from __future__ import annotations

import weakref

from syncscope.collect.phases.phase import RESERVOIR, Phase, Reservoir, StepPlace
from syncscope.schema.counting import PhaseKind


def test_few_lengths_are_all_kept() -> None:
    lengths = Reservoir()
    assert (lengths.median(), lengths.p95()) == (None, None)
    for number in range(1, 101):
        lengths.add(number)
    assert lengths.median() == 50
    assert lengths.p95() == 96


def test_many_lengths_are_drawn_evenly() -> None:
    lengths = Reservoir()
    for number in range(200_000):
        lengths.add(number)
    assert len(lengths._kept) == RESERVOIR
    assert abs((lengths.median() or 0) - 100_000) < 20_000
    assert abs((lengths.p95() or 0) - 190_000) < 10_000


def test_a_slug_stays_once_it_was_read() -> None:
    phases: list[Phase] = []
    kinds: tuple[PhaseKind, ...] = ("rollout", "rollout", "epoch end")
    for number, kind in enumerate(kinds):
        phase = Phase(number, kind)
        phase.join(phases)
        phases.append(phase)
    assert [phase.slug for phase in phases] == ["rollout", "rollout2", "epoch_end"]
    phases[0].kind = "train"
    assert phases[0].slug == "rollout"


def test_the_mean_length_leaves_out_what_is_far_beyond_the_others() -> None:
    lengths = Reservoir()
    for length in [1] * 90 + [100] * 10 + [5_000]:
        lengths.add(length)
    assert (lengths.median(), lengths.p95(), lengths.mean()) == (1, 100, 10)


class Module: ...


def test_what_is_called_in_the_place_of_a_module_that_is_gone_is_a_second_caller() -> None:
    """It was called once before its loop was known to have begun again: two frames of a function had one number."""
    phase, module = Phase(1, "evaluate", None), Module()
    code = test_a_slug_stays_once_it_was_read.__code__
    place, other = StepPlace(code, 2, None, 0), StepPlace(code, 4, None, 0)
    phase.source, phase.owner, phase.owner_at = "module", weakref.ref(module), place
    for gone, kept in ((False, {}), (True, {(2, place): 1})):
        if gone:
            del module
        phase.seen["module"] = {(2, place): 1, (3, other): 1}
        phase.forget_seen()
        assert phase.seen.get("module", {}) == kept
