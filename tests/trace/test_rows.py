import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope.trace.rows import Rows, Texts, most_common


def rows(*names: str) -> Rows:
    """A row a µs for each name."""
    numbers = {"ts": np.arange(len(names), dtype=np.int64) * 1000, "tid": np.full(len(names), 7, dtype=np.int64)}
    return Rows(numbers, {"name": Texts.of(np.arange(len(names)), names)})


@given(st.lists(st.text(max_size=3), max_size=300))
def test_texts_come_back_and_are_kept_once(names: list[str]) -> None:
    texts = rows(*names).texts["name"]
    assert texts.objects().tolist() == names
    assert sorted(texts.names) == sorted(set(names))
    assert texts.are([name == "a" for name in texts.names]).tolist() == [name == "a" for name in names]


@pytest.mark.parametrize(("many", "size"), [(1, 1), (128, 1), (129, 2), (40_000, 4)])
def test_numbers_of_texts_take_as_few_bytes_as_hold_them(many: int, size: int) -> None:
    assert Texts.of(np.arange(many), list(map(str, range(many)))).codes.itemsize == size


def test_some_rows_are_taken_by_number_and_by_mask() -> None:
    table = rows("a", "b", "c")
    for wanted in ([2, 0], np.array([True, False, True])):
        part = table.take(wanted)
        assert (len(part), sorted(part["ts"].tolist())) == (2, [0, 2000])
        assert set(part.texts["name"].objects()) == {"a", "c"}


def test_a_frame_shares_the_numbers_of_its_rows() -> None:
    table = rows("a", "b", "a")
    frame = table.to_pandas(["name", "ts"])
    assert (list(frame.columns), frame["name"].tolist()) == (["name", "ts"], ["a", "b", "a"])
    assert np.shares_memory(frame["ts"].to_numpy(), table["ts"])


def test_of_equally_common_values_the_first_counts() -> None:
    assert most_common(np.array([3, 1, 1, 3, 2])) == 3
    assert most_common(np.array([2, 1, 1])) == 1
