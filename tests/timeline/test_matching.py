"""Warnings belong to the last waits of their thread that have none; recorded calls to what ran inside them."""

from __future__ import annotations

import numpy as np

from syncscope.timeline.matching import Warned, match_calls, match_warnings
from syncscope.timeline.tables import Marks

US = 1000
Wait = tuple[float, float] | tuple[float, float, int]


def warned(event: int, at: float, stack: int = 0, tid: int = 1, backward: bool = False) -> Warned:
    return Warned(event, int(at * US), tid, stack, backward)


def match(waits: list[Wait], warnings: list[Warned], engine: tuple[int, ...] = ()) -> list[int]:
    """The event of each wait (begin, end, thread = 1) in µs; ``engine`` are threads of autograd."""
    ts, end, tid = (
        np.array([int(w[i] * US) if i < 2 else (w[2] if len(w) > 2 else 1) for w in waits]) for i in range(3)
    )
    return match_warnings(warnings, ts, end, tid, np.isin(tid, engine)).tolist()


def test_a_warning_belongs_to_the_wait_before_it():
    assert match([(10, 20), (100, 110)], [warned(0, 45), warned(1, 135)]) == [0, 1]


def test_two_warnings_of_one_return_belong_to_its_two_waits():
    assert match([(10, 20), (40, 50)], [warned(0, 80, stack=5), warned(1, 83, stack=5)]) == [0, 1]


def test_a_loop_over_one_line_gives_each_wait_its_own_warning():
    waits: list[Wait] = [(100 * i, 100 * i + 10) for i in range(5)]
    assert match(waits, [warned(i, 100 * i + 30, stack=5) for i in range(5)]) == [0, 1, 2, 3, 4]


def test_a_wait_without_a_warning_is_left_behind_not_swallowed_by_the_next():
    # The wait at 10 is inside a custom operator: no warning ever comes for it.
    assert match([(10, 20), (100, 110)], [warned(0, 140)]) == [-1, 0]


def test_orphans_do_not_shift_a_later_loop():
    waits: list[Wait] = [(10, 20), (30, 40), (100, 110), (200, 210)]
    assert match(waits, [warned(0, 140, stack=5), warned(1, 240, stack=5)]) == [-1, -1, 0, 1]


def test_a_call_back_into_python_takes_its_own_wait_and_leaves_the_outer_one():
    # The outer call waits at 10, calls Python that waits at 40 and returns at 60, and returns itself at 200.
    assert match([(10, 20), (40, 50)], [warned(0, 60, stack=1), warned(1, 200, stack=2)]) == [1, 0]


def test_a_warning_may_seem_to_come_a_little_before_its_wait_ends():
    assert match([(10, 50)], [warned(0, 47)]) == [0]
    assert match([(10, 50)], [warned(0, 30)]) == [-1]


def test_threads_keep_their_warnings_apart():
    assert match([(10, 20, 1), (12, 25, 2)], [warned(0, 40, tid=2), warned(1, 41, tid=1)]) == [1, 0]


def test_a_wait_in_backward_is_warned_of_on_the_thread_that_called_it():
    waits: list[Wait] = [(10, 20, 1), (50, 60, 9), (70, 80, 9)]
    warnings = [warned(0, 30), warned(1, 300, backward=True), warned(2, 302, backward=True)]
    assert match(waits, warnings, engine=(9,)) == [0, 1, 2]


def test_a_python_backward_is_warned_of_on_its_own_thread():
    waits: list[Wait] = [(50, 60, 9), (70, 80, 9)]
    assert match(waits, [warned(0, 85, tid=9), warned(1, 300, backward=True)], engine=(9,)) == [1, 0]


def test_backward_does_not_reach_back_behind_the_backward_before_it():
    # The first step's second wait went unseen; the second step's backward warns once, of its own wait.
    waits: list[Wait] = [(50, 60, 9), (70, 80, 9)]
    warnings = [warned(0, 200, backward=True), warned(1, 4000, backward=True)]
    assert match(waits, warnings, engine=(9,)) == [-1, 0]


def test_backward_leaves_waits_of_threads_outside_autograd_alone():
    assert match([(50, 60, 7)], [warned(0, 200, backward=True)], engine=(9,)) == [-1]


def calls(*rows: tuple[float, float] | tuple[float, float, int]) -> Marks:
    ts, end = (np.array([int(row[i] * US) for row in rows], dtype=np.int64) for i in range(2))
    tid = np.array([row[2] if len(row) > 2 else 1 for row in rows], dtype=np.int64)
    return Marks(row=np.arange(len(rows)), ts=ts, end=end, tid=tid, name=np.full(len(rows), "call", dtype=object))


def around(recorded: Marks, start: float, end: float, tid: int = 1) -> int:
    return int(match_calls(recorded, np.array([int(start * US)]), np.array([int(end * US)]), np.array([tid]))[0])


def test_a_call_covers_what_its_thread_did_inside_it():
    recorded = calls((0, 100), (200, 300))
    assert around(recorded, 10, 20) == 0
    assert around(recorded, 250, 290) == 1
    assert around(recorded, 120, 180) == -1
    assert around(recorded, 10, 20, tid=2) == -1


def test_the_innermost_call_wins():
    assert around(calls((0, 100), (20, 60)), 30, 40) == 1


def test_clocks_may_disagree_at_the_edges_but_order_is_kept():
    recorded = calls((0, 30), (40, 70))
    assert around(recorded, -5, 28) == 0
    assert around(recorded, 38, 68) == 1
    assert around(recorded, 31, 39) == -1
