"""Questions that change many items in few ways, and what comes of several together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscope.estimate.columns import Columns
from syncscope.estimate.edits import Changes, Edit, Edits, Question, combine, other_changes, timing_change

EDITS = (Edit(pre=0.5), Edit(own=0.0, free=True), Edit(gone=True), Edit(dur=7.0), Edit(gap=3.0, pre=0.5))
QUESTIONS = st.dictionaries(st.integers(0, 9), st.sampled_from(EDITS))


@given(QUESTIONS)
def test_a_question_is_the_same_by_its_ways(edits: Edits) -> None:
    one = Question.of(edits)
    assert one.by_item() == edits and len(one) == len(edits)
    assert len(one.edits) == len(set(edits.values()))
    assert one.column("pre").tolist() == [edit.pre for edit in edits.values()]
    assert one.are(lambda edit: edit.gone).tolist() == [edit.gone for edit in edits.values()]


def test_ways_come_in_the_order_in_which_they_are_used() -> None:
    edits = [Edit(pre=share / 8) for share in range(8)]
    for many in (edits, edits[::-1]):  # wherever in memory each of them lies
        assert Question.of(dict(enumerate(many))).edits == tuple(many)


@given(QUESTIONS, QUESTIONS)
def test_of_two_questions_the_last_may_have_the_say(one: Edits, other: Edits) -> None:
    assert (Question.of(one) | other).by_item() == one | other


@given(st.lists(QUESTIONS, max_size=4))
def test_an_item_of_several_questions_has_all_their_edits(questions: list[Edits]) -> None:
    whole = combine(questions).by_item()
    assert set(whole) == {item for question in questions for item in question}
    for item, edit in whole.items():
        expected = Edit()
        for question in questions:
            expected = expected.combine(question.get(item, Edit()))
        assert edit == expected


@given(QUESTIONS)
def test_changes_of_timing_are_told_from_others(edits: Edits) -> None:
    question = Question.of(edits)
    assert set(other_changes(question).tolist()) == {item for item, edit in edits.items() if not edit.only_timing}
    timing = timing_change(question)
    kept = {item: edit.pre for item, edit in edits.items() if edit.only_timing}
    assert dict(zip(timing.items.tolist(), timing.pre.tolist(), strict=True)) == kept


def test_the_change_of_an_item_has_a_column_a_question() -> None:
    questions = [{}, {3: Edit(gone=True)}, {3: Edit(pre=0.5)}]
    changes, scale = Changes(list(map(Question.of, questions)), np.ones(5, dtype=bool)), np.ones(3)
    columns = Columns(1, 3, 1, range(3))
    change = changes.of(3, columns, scale)
    assert change.gone is not None
    assert (change.gone.tolist(), change.pre.tolist()) == ([False, True, False], [1.0, 1.0, 0.5])
    assert changes.of(4, columns, scale).gone is None
