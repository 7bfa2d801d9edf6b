"""Questions that change many items in few ways, and what comes of several together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.estimate.columns import Columns
from syncscope.estimate.edits import Changes, Edit, Ways, combine

EDITS = (Edit(pre=0.5), Edit(own=0.0, free=True), Edit(gone=True), Edit(dur=7.0), Edit(gap=3.0, pre=0.5))
QUESTIONS = st.dictionaries(st.integers(0, 9), st.sampled_from(EDITS))


@given(QUESTIONS)
def test_a_question_is_the_same_by_its_ways(question: dict[int, Edit]) -> None:
    ways = Ways.of(question)
    assert ways.question() == question
    assert len(ways.edits) <= len(EDITS)
    assert ways.column("pre").tolist() == [edit.pre for edit in question.values()]
    assert ways.are(lambda edit: edit.gone).tolist() == [edit.gone for edit in question.values()]


@given(st.lists(QUESTIONS, max_size=3))
def test_an_item_of_several_questions_has_all_their_edits(questions: list[dict[int, Edit]]) -> None:
    whole = combine(questions)
    assert set(whole) == {item for question in questions for item in question}
    for item, edit in whole.items():
        expected = Edit()
        for question in questions:
            expected = expected.combine(question.get(item, Edit()))
        assert edit == expected


@given(st.lists(QUESTIONS, min_size=1, max_size=3))
def test_changes_of_timing_are_told_from_others(questions: list[dict[int, Edit]]) -> None:
    changes = Changes(list(map(Ways.of, questions)))
    others = {item for question in questions for item, edit in question.items() if not edit.only_timing}
    assert changes.items == others
    for question, timing in zip(questions, changes.timing_changes, strict=True):
        kept = {item: edit for item, edit in question.items() if edit.only_timing}
        assert dict(zip(timing.items.tolist(), timing.pre.tolist(), strict=True)) == {
            item: edit.pre for item, edit in kept.items()
        }


def test_the_change_of_an_item_has_a_column_a_question() -> None:
    questions = [{}, {3: Edit(gone=True)}, {3: Edit(pre=0.5)}]
    changes, scale = Changes(list(map(Ways.of, questions))), np.ones(3)
    columns = Columns(1, 3, 1, range(3))
    change = changes.of(3, columns, scale)
    assert change.gone is not None
    assert (change.gone.tolist(), change.pre.tolist()) == ([False, True, False], [1.0, 1.0, 0.5])
    assert changes.of(4, columns, scale).gone is None
