"""Waits are counted by place and phase: exactly where every step counts, and at most for what it may cost."""

from __future__ import annotations

import _thread
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from syncscope.collect.annotations import expected
from syncscope.collect.count import tally
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.sampling import Draw
from syncscope.collect.features import Unsupported
from syncscope.schema.counting import MAX_BINS
from syncscope.schema.recording import SiteEvent
from tests.collect.count.program import MODE, MS, Phase, Run, make_dense_steps, only, running, wait, wrapped


def test_every_wait_of_every_step_is_counted_where_waits_are_rare() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        for step in range(50):
            wait()
            if step % 10 == 5:
                wait()
                wait()
            run.step(10 * MS)
        always, now_and_then, twin = run.counter.waits()
    assert (run.counter.counted_steps(train), run.counter.one_in(train)) == (50, 1)
    assert (always.count, always.steps, always.first_step, always.last_step) == (50, 50, 0, 49)
    assert (always.estimate, always.variance) == (50.0, 0.0)
    assert (now_and_then.count, now_and_then.steps, now_and_then.first_step, now_and_then.last_step) == (5, 5, 5, 45)
    assert twin.stack != now_and_then.stack and twin.count == 5


def test_steps_before_counting_began_are_neither_counted_nor_left_out() -> None:
    MODE[0] = 0
    run = Run()
    train = run.tracker.current = Phase(1)
    for _ in range(7):
        run.step(MS)
    run.counter.open()
    try:
        for _ in range(4):
            wait()
            run.step(MS)
        assert (run.counter.counted_steps(train), run.counter.one_in(train)) == (4, 1)
        assert (only(run).first_step, only(run).last_step) == (7, 10)
    finally:
        run.counter.close()


def test_a_loop_in_a_step_is_one_place() -> None:
    with running() as run:
        run.enter(Phase(1))
        for count in (3, 0, 1):
            for _ in range(count):
                wait()
            run.step(10 * MS)
        found = only(run)
    assert (found.count, found.steps, found.estimate, found.last_step) == (4, 2, 4.0, 2)


def test_the_step_that_is_not_over_is_in_what_is_taken_and_goes_on() -> None:
    with running() as run:
        run.enter(Phase(1))
        for turn in range(2):
            wait()
            found = only(run)
            assert (found.count, found.steps, found.estimate) == (turn + 1, 1, turn + 1)


def test_an_error_of_ours_reaches_no_operator_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(frame: object) -> Any:
        raise ValueError("ours")

    with running() as run:
        run.enter(Phase(1))
        monkeypatch.setattr(run.tracker, "at", fail)
        read()
        assert run.torch.Tensor(True).coalesce() is not None
        assert run.torch.Tensor().to("cuda", non_blocking=True).is_cuda
        run.torch.cuda.Event().synchronize()
        assert run.counter.waits() == ()
        assert run.counter.failure == "Some waits could not be counted (ValueError: ours)."


def test_a_thread_of_c_is_not_listed_because_it_waits() -> None:
    before = threading.active_count()
    with running() as run:
        _thread.start_new_thread(read, ())
        deadline = time.monotonic() + 20
        while not run.counter.waits() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert only(run).thread is None and threading.active_count() == before


def test_counting_does_not_go_on_in_a_window_whatever_another_thread_finds() -> None:
    with running() as run:
        run.enter(Phase(1))
        run.counter.suspend()
        run.counter._apply(run.counter._state)  # a tick that began before the window
        assert not run.counting and not wrapped(run)
        run.counter.resume()
        assert run.counting and wrapped(run)


def test_a_window_hands_its_events_over_and_nothing_is_counted_twice() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        for _ in range(4):
            read()
            run.step(MS)
        stack = only(run).stack
        run.counter.suspend()
        assert not run.counting
        for _ in range(3):
            read()
            run.step(MS)
        events = [event("warning", "", 15, stack), event("warning", "", 25, stack), event("warning", "", 27, stack)]
        outside = [event("warning", "", 5, stack), event("warning", "", 45, stack)]
        run.counter.add_window(train, [*events, *outside, event("call", "DataLoader", 17, stack)], [10, 20, 30, 40])
        run.counter.resume()
        read()
        run.step(MS)
        found = only(run)  # the event after the window's last boundary is in the step of the next wait
        assert (found.count, found.steps, found.estimate, found.last_step) == (4 + 3 + 2, 4 + 2 + 1, 9.0, 7)
        assert run.counter.counted_steps(train) == 8 == train.steps
        assert [each.windows for each in run.counter.bins].count(True) == 1


def test_a_call_in_which_pytorch_warned_is_one_wait_in_a_window_too() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        read()
        run.step(MS)
        stack = only(run).stack
        run.counter.suspend()
        run.step(MS)
        before, inside, other = (event("warning", "", end, stack) for end in (14, 16, 18))
        call = replace(event("call", "torch.unique_consecutive", 17, stack), start_ns=15)
        unwarned = replace(call, start_ns=17, end_ns=20)
        events = [before, inside, call, replace(other, tid=2), unwarned]
        run.counter.add_window(train, events, [10, 20])
        run.counter.resume()
        found = {wait.name: wait.count for wait in run.counter.waits()}
    assert found == {"": 1 + 3, "torch.unique_consecutive": 1}


def test_waits_of_a_phase_inside_of_a_window_are_not_those_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as run:
        train, evaluate = run.enter(Phase(1)), Phase(2, "evaluate")
        read()
        run.step(MS)
        stack = only(run).stack
        now = 10
        monkeypatch.setattr(time, "time_ns", lambda: now)
        run.counter.suspend()
        run.step(MS)
        now = 14
        run.enter(evaluate)
        now = 17
        run.enter(train)
        run.step(MS)
        run.counter.add_window(train, [event("warning", "", at, stack) for at in (12, 15, 18, 25)], [10, 20, 30])
        run.counter.resume()
        found = only(run)
    assert (found.phase, found.count, found.steps) == (train.number, 1 + 3, 3)


def test_waits_of_a_checkpoint_inside_of_a_window_are_counted_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as run:
        train, checkpoint = run.enter(Phase(1)), Phase(2, "checkpoint")
        run.step(MS)
        run.enter(checkpoint)
        read()
        stack = only(run).stack
        run.enter(train)
        run.step(MS)
        now = 10
        monkeypatch.setattr(time, "time_ns", lambda: now)
        run.counter.suspend()
        run.step(MS)
        now = 14
        run.enter(checkpoint)
        now = 17
        run.enter(train)
        run.step(MS)
        run.counter.add_window(train, [event("warning", "", at, stack) for at in (15, 16)], [10, 20, 30])
        run.counter.resume()
        found = only(run)
    assert (found.phase, found.count, found.estimate, found.variance) == (checkpoint.number, 3, 3.0, 0.0)


def read() -> None:
    wait()


def read_often() -> None:
    for _ in range(20):
        wait()


def event(kind: Any, name: str, end_ns: int, stack: int) -> SiteEvent:
    return SiteEvent(kind=kind, name=name, tid=1, start_ns=end_ns - 4, end_ns=end_ns, stack=stack)


@pytest.mark.parametrize("window_first", [True, False])
def test_a_copy_that_a_window_saw_is_the_copy_that_was_counted(window_first: bool) -> None:
    with running() as run:
        train = run.enter(Phase(1))
        host = run.torch.Tensor()
        blocking = True

        def copy() -> None:
            host.to("cuda", not blocking)

        copy()
        stack = only(run).stack
        if window_first:
            run.counter.tally.phases[train.number].warned.clear()
        run.step(MS)
        run.counter.suspend()
        run.step(MS)
        run.counter.add_window(train, [event("call", "Tensor.to", 15, stack)], [10, 20])
        run.counter.resume()
        copy()
        found = only(run)
    assert (found.kind, found.direction, found.count) == ("warning", "HtoD", 2 + (not window_first))


@pytest.mark.parametrize("window_first", [True, False])
def test_a_copy_that_waits_in_another_phase_waits_in_those_that_only_a_window_saw(window_first: bool) -> None:
    """A picture is drawn behind each evaluation. In a window nobody tells that this is over by then."""
    with running() as run:
        evaluate, between = Phase(1, "evaluate"), Phase(2, "epoch end")
        device = run.torch.Tensor(is_cuda=True)

        def draw() -> None:
            run.enter(between)
            device.to("cpu")

        run.enter(between)
        draw()
        stack = only(run).stack
        if window_first:
            run.counter.tally.phases[between.number].warned.clear()
        run.enter(evaluate)
        for _ in range(2):
            run.counter.suspend()
            run.step(MS)
            run.counter.add_window(evaluate, [event("call", "Tensor.to", 15, stack)], [10, 20])
            run.counter.resume()
        draw()
        found = {each.phase: each for each in run.counter.waits()}
    assert [each.kind for each in found.values()] == ["warning"] * 2
    assert {each.direction for each in found.values()} == {"DtoH"}
    assert not any(each.may_wait for each in found.values())
    assert (found[1].count, found[2].count) == (2, 2 - window_first)


@pytest.mark.parametrize("heard_first", [True, False])
def test_a_copy_that_only_windows_saw_waits_where_one_of_them_heard_it(heard_first: bool) -> None:
    """A window in which nothing is timed hears PyTorch's warnings of copies."""
    with running() as run:
        train, evaluate = run.enter(Phase(1)), Phase(2, "evaluate")
        run.step(MS)
        read()
        stack = only(run).stack
        run.counter.tally.phases[train.number].warned.clear()
        heard, timed = [event("warning", "", 15, stack)], [event("call", "Tensor.cpu", at, stack) for at in (14, 25)]
        both = [(train, heard, [10, 20]), (train, timed, [10, 20, 30])]
        for phase, events, ends in [*both[:: 1 if heard_first else -1], (evaluate, timed, [10, 20, 30])]:
            run.enter(phase)
            run.counter.suspend()
            for _ in ends[1:]:
                run.step(MS)
            run.counter.add_window(phase, events, ends)
            run.counter.resume()
        found = {each.phase: each for each in run.counter.waits()}
    assert [(each.kind, each.may_wait) for each in found.values()] == [("warning", False)] * 2
    assert (found[1].count, found[1].steps, found[1].first_step, found[2].count) == (3, 3, 1, 2)


def test_copies_say_their_direction_bytes_and_memory() -> None:
    with running() as run:
        make = run.torch.Tensor
        device = make(nbytes=64).to("cuda")
        make(nbytes=32, pinned=True).to("cuda", non_blocking=True)
        make(nbytes=32).to("cuda", non_blocking=True)
        device.to("cpu")
        device.to("cuda")
        make(nbytes=16).copy_(device, non_blocking=True)
        make(nbytes=0).to("cuda", non_blocking=True)
        found = sorted(run.lines().items())
    shown = [(w.kind, w.name, w.direction, w.bytes, w.pageable, w.non_blocking) for _, w in found]
    assert shown == [
        ("warning", "", "HtoD", 64, True, False),
        ("call", "Tensor.to", "HtoD", 32, True, True),  # and none from pinned memory, which nothing waits for
        ("warning", "", "DtoH", 64, True, False),
        ("call", "Tensor.copy_", "DtoH", 16, True, True),
    ]


def test_explicit_waits_are_counted_by_name_with_the_time_in_them() -> None:
    with running() as run:
        run.torch._C._cuda_synchronize()
        run.torch.cuda.Event().synchronize()
        run.torch._C._cuda_emptyCache()
        found = run.counter.waits()
    assert [each.name for each in found] == ["torch.cuda.synchronize", "Event.synchronize", "torch.cuda.empty_cache"]
    assert all(each.kind == "call" and each.blocked_ns is not None for each in found)


def test_an_operator_may_have_waited_where_its_calls_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as run:
        frame = sys._getframe()
        now = [0]
        monkeypatch.setattr("syncscope.collect.count.tally.time.time_ns", lambda: now[0])
        for length in (500_000, 300_000, 20_000, 400_000):
            start, now[0] = now[0], now[0] + length
            run.counter.tally.may_have_waited("torch.ops", start, frame)
        found = only(run)
    assert (found.name, found.may_wait, found.count, found.blocked_ns) == ("torch.ops", True, 2, 700_000)


def test_a_phase_that_was_part_of_another_gives_it_its_waits() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        wait()
        run.step(10 * MS)
        inner = run.enter(Phase(2, "other"))
        for _ in range(3):
            read()
            run.step(MS)
        run.tracker.current = train
        run.counter.folded(inner, train)
        read()
        assert {(each.phase, each.count) for each in run.counter.waits()} == {(1, 1), (1, 4)}
        assert run.counter.counted_steps(train) == 1
        assert {each.phase for each in run.counter.bins} <= {0, 1}


def test_a_phase_whose_steps_are_counted_anew_begins_again() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        for _ in range(5):
            wait()
            run.step(MS)
        train.steps = 0
        run.counter.begin_again(train)
        assert run.counter.counted_steps(train) == 0
        assert (only(run).count, only(run).before) == (0, 5)
        wait()
        run.step(MS)
        assert [(each.count, each.steps, each.before) for each in run.counter.waits()] == [(0, 0, 5), (1, 1, 0)]
        assert run.counter.counted_steps(train) == 1


def test_new_steps_are_not_left_out_because_the_old_ones_were_dense() -> None:
    """A policy's calls were the steps until the optimizer's turned out to be, each as long as a hundred."""
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        make_dense_steps(run)
        assert not run.counting
        train.steps = 0
        run.counter.begin_again(train)
        assert run.counting
        for _ in range(40):
            wait()
            run.step(50 * MS)
        assert run.counter.counted_steps(train) == 40


def test_no_step_stands_for_all_of_a_long_pause() -> None:
    """It may be the first of an epoch, with a wait that no other step has."""
    state = PhaseTally(phase := Phase(1), Draw())
    phase.steps, stood_for = 231, 0.0
    state.end_steps(0, 231)
    for _ in range(50):
        state.choose_weight()
        assert state.weight < 40
        stood_for += state.weight
        phase.steps += 1
        state.end_steps(1, 0)
    assert stood_for == pytest.approx(231 + 50, abs=1)
    assert state.sampled(counting=True).share == pytest.approx(1, rel=0.01)


def test_steps_that_begin_again_while_nothing_is_counted_are_no_negative_number() -> None:
    """A window ends when better steps are found: after the phase has set its number of steps back."""
    with running() as run:
        train = run.enter(Phase(1))
        for _ in range(50):
            run.step(MS)
        run.counter.suspend()
        train.steps = 0
        run.counter.resume()
        run.counter.begin_again(train)
        for _ in range(3):
            wait()
            run.step(MS)
        assert min(each.steps for each in run.counter.bins) >= 0
        assert run.counter.counted_steps(train) == 3


def test_waits_on_other_threads_are_counted_with_their_name() -> None:
    with running() as run:
        run.enter(Phase(1))
        reader = threading.Thread(target=read_often, name="reader")
        reader.start()
        reader.join()
        found = only(run)
    assert (found.thread, found.count) == ("reader", 20)


def test_a_wait_in_an_expected_block_has_its_reason() -> None:
    with running() as run:
        with expected("the log"):
            wait()
        assert only(run).expected == "the log"


def test_places_and_bins_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MAX_PLACES", 2)
    with running() as run:
        for number in range(1, 2_000):
            run.enter(Phase(number, "other" if number % 2 else "train"))
            run.step(60 * MS)
        wait()
        wait()
        wait()
        wait()
        assert (len(run.counter.waits()), run.counter.dropped) == (2, 2)
        assert len(run.stacks.resolve()[1]) == 2
        bins = run.counter.bins
    assert 50 < len(bins) <= MAX_BINS
    assert sum(each.length_ns for each in bins) == run.now
    assert sum(each.steps for each in bins) == 1_999
    assert all(a.start_ns + a.length_ns == b.start_ns for a, b in itertools.pairwise(bins))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_nothing_is_counted_in_a_forked_child() -> None:
    program = """
import os, sys
sys.path.insert(0, {root!r})
from tests.collect.count.program import Phase, running, wait, wrapped
with running() as run:
    run.enter(Phase(1))
    to = run.torch.Tensor.to
    child = os.fork()
    if child == 0:
        wait()
        same = run.torch.Tensor.to is not to and not run.counting and run.counter.waits() == ()
        os._exit(0 if same else 1)
    status = os.waitpid(child, 0)[1]
    wait()
    print(status, run.counting, len(run.counter.waits()))
"""
    program = program.format(root=str(Path(__file__).parents[3]))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 True 1\n", "")


def test_prices_are_measured_when_counting_begins_and_leave_nothing_behind() -> None:
    with running(prices=None) as run:
        prices = run.counter.prices
        assert run.counter.waits() == () and run.counter.bins == ()
        assert run.counting
    for price, most in ((prices.warning, 200_000), (prices.call, 100_000), (prices.passed, 50_000)):
        assert 0 < price < most
    assert prices.switch > 0 and prices.step > 0 and prices.settle > 0


def test_without_the_sync_debug_mode_opening_says_so_and_leaves_nothing() -> None:
    run = Run()
    del run.torch._C._cuda_set_sync_debug_mode
    with pytest.raises(Unsupported, match="cannot see waits"):
        run.counter.open()
    run.counter.close()
    assert not wrapped(run) and run.counter.waits() == ()


def test_closing_twice_or_without_opening_does_nothing() -> None:
    run = Run()
    run.counter.close()
    run.counter.stepped(run.tracker.current)
    run.counter.suspend()
    run.counter.resume()
    assert run.counter.waits() == () and run.counter.overhead_share is None


def test_what_is_dear_in_the_program_is_priced_so() -> None:
    from syncscope.collect.count.account import COLDEST, Account, Prices

    account = Account(Prices(warning=1_000, seen=400))
    for _ in range(200):  # each took five times what it takes in a loop
        account.warnings, account.seen_ns = 1, 2_000
        cost = account.settle(1_000_000)
    assert cost == pytest.approx(5_000, rel=0.01)
    assert account.prices.call == pytest.approx(5 * Prices().call, rel=0.01)
    assert account.prices.out == Prices().out
    assert account.most_seen_ns == COLDEST * 400


def test_a_wait_that_another_thread_disturbed_tells_little_of_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    from syncscope.collect.count.account import COLD, DISTURBED, MOST_ONCE_NS, Prices

    run = Run(prices=Prices(seen=400))
    run.counter.open()
    ticks = itertools.count(0, 10_000_000)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(ticks))
    seen = run.counter.tally._make_seen()
    for _ in range(2):
        seen(sys._getframe())
    assert run.counter._account.seen_ns == DISTURBED * COLD * 400
    assert run.counter._account.once_ns == MOST_ONCE_NS
    run.counter.close()


def test_waits_that_other_processes_disturb_now_and_then_make_none_dearer() -> None:
    from syncscope.collect.count.account import Account, Prices

    account = Account(Prices(warning=1_000, seen=400))
    for number in range(2_000):
        account.warnings, account.seen_ns = 1, account.most_seen_ns if number % 10 == 0 else 400
        account.settle(1_000_000)
    assert account.prices.warning < 2_000


def test_a_block_whose_end_another_process_disturbed_stops_no_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as run:
        train = run.enter(Phase(1))
        apply = run.counter._apply

        def interrupted(*args: Any, **options: Any) -> None:
            run.now += 20 * MS
            apply(*args, **options)

        for number in range(12):
            with monkeypatch.context() as patch:
                if number == 1:
                    patch.setattr(run.counter, "_apply", interrupted)
                wait()
                run.step(10 * MS)
        assert only(run).count == run.counter.counted_steps(train) == 12


def test_the_first_waits_of_places_cost_what_they_take_and_tell_nothing_of_further_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from syncscope.collect.count.account import Prices

    now = 0

    def clock() -> int:
        return now

    run = Run(prices=Prices(seen=400))
    run.counter.open()
    monkeypatch.setattr(time, "perf_counter_ns", clock)
    tally, account = run.counter.tally, run.counter._account
    new_place = tally._new_place

    def slowly(*about: Any) -> Any:
        nonlocal now
        now += 100_000
        return new_place(*about)

    monkeypatch.setattr(tally, "_new_place", slowly)
    seen = tally._make_seen()
    code = "def wait():\n" + "".join("    see(getframe())\n" for _ in range(50))
    names: dict[str, Any] = {"see": seen, "getframe": sys._getframe}
    exec(compile(code, __file__, "exec"), names)
    names["wait"]()
    before = account.prices
    assert account.settle(10_000_000) == pytest.approx(50 * (before.warning + 100_000))
    names["wait"]()
    account.settle(10_000_000)
    assert account.prices.warning <= before.warning
    run.counter.close()


def test_prices_that_are_not_timed_stay() -> None:
    from syncscope.collect.count.account import Account, Prices

    account = Account(Prices(warning=1_000))
    account.warnings, account.seen_ns = 3, 900_000
    assert account.settle(1_000_000) == 3_000
