"""How long a step takes without a profiler."""

from __future__ import annotations

import pytest

from syncscope.schema.recording import Bare, RecordedLoader
from syncscope.timeline.bare import bare_step_ns


def test_where_the_host_keeps_pace_it_is_the_median() -> None:
    assert bare_step_ns(Bare(steps_ns=(10, 10, 12, 11, 40), drain_ns=3)) == 11


def test_where_the_host_runs_ahead_it_is_the_mean() -> None:
    ahead = Bare(steps_ns=(2, 2, 2, 34), drain_ns=30)
    assert ahead.runs_ahead and bare_step_ns(ahead) == 10


def test_behind_a_loader_that_works_in_bursts_it_is_the_mean() -> None:
    slow, fast = RecordedLoader(workers=2, interval_ns=11, ready=0), RecordedLoader(workers=2, ready=2)
    assert bare_step_ns(Bare(steps_ns=(2, 2, 20, 2, 2), drain_ns=1, loader=slow)) == pytest.approx(5.6)
    assert bare_step_ns(Bare(steps_ns=(2, 2, 20, 2, 2), drain_ns=1, loader=fast)) == 2


def test_of_two_kinds_of_steps_in_turn_it_is_the_mean() -> None:
    """Two networks are trained, one of them in every other step: the recorded steps are of both kinds, too."""
    assert bare_step_ns(Bare(steps_ns=(4, 10, 4, 10, 4, 10, 4), drain_ns=1)) == pytest.approx(46 / 7)
    assert bare_step_ns(Bare(steps_ns=(4, 4, 4, 10, 4, 4, 4, 4, 10, 4), drain_ns=1)) == 4


def test_recordings_that_do_not_say_how_long_the_drain_took_have_their_mean() -> None:
    assert bare_step_ns(Bare(steps_ns=(10, 10, 40))) == 20


def test_without_steps_it_is_not_known() -> None:
    assert bare_step_ns(Bare(steps_ns=())) is None
    assert bare_step_ns(Bare(steps_ns=(0, 0))) is None
