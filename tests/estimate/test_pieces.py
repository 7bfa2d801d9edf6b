"""Collectives in pieces beside the compute that makes what each of them reduces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.estimate.dependencies import Target
from syncscope.estimate.edits import Question
from syncscope.estimate.machine import Machine
from syncscope.estimate.pieces import run_pieces
from syncscope.estimate.replay import Scenario, replay
from syncscope.estimate.replay_rows import Meeting
from syncscope.estimate.runs import Block
from syncscope.timeline.intervals import Floats
from tests.estimate.test_gradients import STEPS, spread, training
from tests.estimate.test_replay import usually

COLUMNS = 3


def one_by_one(
    pieces: Sequence[Target], meeting: Meeting, ends: dict[Target, Floats], streams: Floats, slowed: Floats,
    slowdown: Floats, done: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """What ``run_pieces`` does in all columns, as it is said: ``slowed`` and ``done``; ``streams`` changes."""
    length = meeting.length / len(pieces)
    for target in pieces:
        ready = ends.get(target, np.full(COLUMNS, -np.inf)) + slowed + meeting.late
        theirs = -np.inf if meeting.theirs is None else meeting.theirs
        begin = np.maximum(np.maximum(ready, theirs), done)
        done = begin + length
        beside = slowdown * np.clip(streams[target.stream] - begin, 0.0, length)
        slowed, streams[target.stream] = slowed + beside, streams[target.stream] + beside
    return slowed, done


times = st.lists(st.integers(0, 300).map(float), min_size=COLUMNS, max_size=COLUMNS).map(np.array)


@given(st.data(), st.integers(1, 8), st.integers(1, 2))
@usually
def test_pieces_run_as_one_by_one(data: st.DataObject, many: int, streams: int) -> None:
    pieces = [Target(data.draw(st.integers(0, streams - 1)), number) for number in range(many)]
    ready = np.maximum.accumulate([data.draw(times) for _ in pieces])
    ends = {target: end for target, end in zip(pieces, ready, strict=True) if data.draw(st.integers(0, 9))}
    theirs = data.draw(st.sampled_from([np.full(COLUMNS, -np.inf), np.array([150.0, -np.inf, 40.0])]))
    meeting = Meeting(theirs, data.draw(st.one_of(st.sampled_from([0.0, 30.0]), times)), 20.0 * many)
    until = np.array([data.draw(times) for _ in range(streams)])
    slowed, done = data.draw(times), data.draw(times)
    slowdown = data.draw(st.sampled_from([np.zeros(COLUMNS), np.array([0.0, 0.5, 1.0])]))
    expected = until.copy()
    slowed_after, done_after = one_by_one(pieces, meeting, ends, expected, slowed, slowdown, done)
    run_pieces(pieces, meeting, np.arange(COLUMNS), ends, until, slowed, slowdown, done)
    for found, wanted in ((until, expected), (slowed, slowed_after), (done, done_after)):
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_only_the_columns_of_the_question_change():
    ends, streams = {Target(0, 4): np.full(COLUMNS, 10.0)}, np.full((1, COLUMNS), 60.0)
    slowed, done = np.zeros(COLUMNS), np.zeros(COLUMNS)
    meeting = Meeting(np.full(COLUMNS, -np.inf), 0.0, 20.0)
    run_pieces([Target(0, 4)], meeting, np.array([1]), ends, streams, slowed, np.full(COLUMNS, 0.5), done)
    assert done.tolist() == [0, 30, 0]
    assert slowed.tolist() == [0, 10, 0]
    assert streams.tolist() == [[60, 70, 60]]


def test_what_pieces_wait_for_is_part_of_blocks():
    timeline, program = training(800)
    changes = spread(timeline, program)
    questions = [Question.of({}), Question.of(changes)]
    assert len({piece for edit in changes.values() for piece in edit.pieces}) == 4 * STEPS
    machine = Machine(program, questions, np.array([Scenario()]), frozenset(range(STEPS)), True, (), frozenset())
    for step in machine._steps:  # forward and backward, the collective, the optimizer, the step's end
        assert [isinstance(part, Block) for part in step] == [True, False, True, False]


@pytest.mark.parametrize("reduces", [(200,), (50, 50, 50, 50), (800,)], ids=str)
def test_blocks_remember_what_items_do_one_by_one(reduces: tuple[float, ...], monkeypatch: pytest.MonkeyPatch):
    timeline, program = training(*reduces)
    questions, scenarios = [{}, spread(timeline, program)], [Scenario(), Scenario(0.7, slowdown=0.2)]
    order = [number % STEPS for number in range(3 * STEPS)]
    together = replay(program, questions, scenarios, order, profiled=True, drawn=True)
    monkeypatch.setattr(Machine, "_apart", lambda _, items, __: np.ones(len(items), dtype=bool))
    apart = replay(program, questions, scenarios, order, profiled=True, drawn=True)
    np.testing.assert_allclose(together.host, apart.host)
    np.testing.assert_allclose(together.device, apart.device)
    assert len(together.last) == len(apart.last)
    for one, other in zip(together.last[1:5], apart.last[1:5], strict=True):  # backward, which is remembered
        assert one.stream == other.stream
        np.testing.assert_allclose(np.array(one[1:]), np.array(other[1:]))
