import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.timeline.row_groups import number_groups, number_texts, passing, rank
from syncscope.timeline.tables import objects


@given(st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62))))
def test_ranks_follow_the_order_of_values_near_and_far_apart(values: list[int]) -> None:
    place, many = rank(np.array(values, dtype=np.int64))
    known = sorted(set(values))
    assert (place.tolist(), many) == ([known.index(value) for value in values], len(known))


@given(st.lists(st.text(max_size=2)))
def test_texts_are_numbered_in_order_of_first_appearance(texts: list[str]) -> None:
    number, known = number_texts(objects(texts))
    assert [known[one] for one in number.tolist()] == texts
    assert known == list(dict.fromkeys(texts))


def test_each_text_is_tested_once() -> None:
    tested: list[str] = []

    def is_a(text: str) -> bool:
        tested.append(text)
        return text == "a"

    assert passing(objects(["a", "b", "a"]), is_a).tolist() == [True, False, True]
    assert tested == ["a", "b"]


@pytest.mark.parametrize("many", [0, 5])
def test_groups_of_several_columns_follow_the_first_column_first(many: int) -> None:
    names, numbers = objects(["b", "a", "b", "a", "b"][:many]), np.array([7, 9, 5, 9, 7][:many], dtype=np.int64)
    assert number_groups(names, numbers).tolist() == [2, 0, 1, 0, 2][:many]
    assert number_groups(numbers, names).tolist() == [1, 2, 0, 2, 1][:many]
