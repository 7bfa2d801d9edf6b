"""The picture of a step: how busy each bin of each lane is."""

import numpy as np

from syncscope.estimate.replay import Replayed
from syncscope.estimate.replay_rows import HOST, Interval
from syncscope.estimate.sketches import BINS, draw_steps


def times(*questions: float) -> np.ndarray:
    return np.array(questions, dtype=np.float64)


def replayed(last: list[Interval], host: tuple[float, float], device: tuple[float, float]) -> Replayed:
    """Two steps of two questions: the first 100 ns, the second as given; one scenario."""
    ended, drained = (np.array([[[100.0], [100.0]], [[one], [other]]]) for one, other in (host, device))
    return Replayed(ended, drained, tuple(last))


def test_bins_of_one_length_tell_how_much_of_each_is_taken() -> None:
    blocked = Interval(HOST, times(110, 110), times(130, 110), times(20, 0))
    half = Interval(0, times(100, 100), times(160, 130), times(30, 30))
    before, after = draw_steps(replayed([blocked, half], (160, 130), (160, 130)), ["stream 7"])
    assert [lane.label for lane in before.lanes] == ["host blocked", "stream 7"]
    assert before.lanes[0].busy == "0" * 10 + "9" * 20 + "0" * 30
    assert before.lanes[1].busy == "4" * BINS
    assert after.lanes[0].busy == "0" * 30
    assert after.lanes[1].busy == "9" * 30
    assert (before.step_ms, after.step_ms) == (0.00006, 0.00003)


def test_a_host_that_runs_ahead_is_drawn_in_its_own_step() -> None:
    blocked = Interval(HOST, times(105, 105), times(115, 115), times(10, 10))
    running = Interval(0, times(300, 300), times(360, 360), times(60, 60))
    ends = replayed([blocked, running], (120, 120), (360, 360))
    device = np.array([[[300.0], [300.0]], [[360.0], [360.0]]])
    (before, _) = draw_steps(Replayed(ends.host, device, ends.last), ["stream 7"])
    assert before.lanes[0].busy == "0" * 5 + "9" * 10 + "0" * 45
    assert before.lanes[1].busy == "9" * 60


def test_only_the_busiest_streams_are_drawn() -> None:
    last = [Interval(n, times(100, 100), times(110 + n, 110 + n), times(10 + n, 10 + n)) for n in range(5)]
    (before, _) = draw_steps(replayed(last, (160, 160), (160, 160)), [f"stream {n}" for n in range(5)])
    assert [lane.label for lane in before.lanes] == ["host blocked", "stream 2", "stream 3", "stream 4"]
