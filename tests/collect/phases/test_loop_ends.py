"""The end of a loop is heard before the program does anything else, without slowing the loop down."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from syncscope.collect.phases.ends import LoopEnd  # noqa: E402
from syncscope.collect.phases.loops import loops_of  # noqa: E402
from syncscope.collect.phases.monitoring import TOOLS  # noqa: E402
from tests.collect.phases.following import Followed, following, loader, model  # noqa: E402

PLENTY = 1e9

needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells ends of loops from 3.12 on")


class Heard:
    """Watches the frame that calls ``watch``, and keeps where it hears of an end."""

    def __init__(self) -> None:
        self.end = LoopEnd()
        self.at: list[tuple[str, int]] = []
        self.said: list[str] = []

    def watch(self, most_ns: float = PLENTY) -> float:
        frame = sys._getframe(1)
        return self.end.watch(frame, loops_of(frame.f_code), self.over, most_ns)

    def over(self, frame: FrameType) -> None:
        self.at.append((frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        self.said.append("over")

    def say(self, what: str) -> None:
        self.said.append(what)


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.end.stop()
    if sys.version_info >= (3, 12):
        assert all(sys.monitoring.get_tool(tool) is None for tool in TOOLS)


def decode(heard: Heard, steps: int, most_ns: float = PLENTY) -> int:
    made = 0
    for number in range(steps):
        if number == 1:
            heard.watch(most_ns)
        heard.say("step")
        made += 1
    heard.say("behind")
    return made


@needs_monitoring
def test_the_end_of_a_loop_is_heard_before_the_line_behind_it_and_again_when_the_function_returns(heard: Heard) -> None:
    assert decode(heard, 4) == 4
    heard.say("caller")
    assert heard.said == ["step"] * 4 + ["over", "behind", "over", "caller"]
    behind, back = heard.at
    assert behind == ("decode", 7)
    assert back[0].startswith("test_the_end_of_a_loop")


@needs_monitoring
def test_a_loop_that_is_left_by_a_return_or_a_break(heard: Heard) -> None:
    def search(leave: str) -> None:
        for _ in range(9):
            heard.watch()
            if leave == "return":
                return
            if leave == "break":
                break
        heard.say("behind")

    search("return")
    assert heard.said == ["over"]
    heard.said.clear()
    search("break")
    assert heard.said == ["over", "behind", "over"]


@needs_monitoring
def test_only_the_frame_that_is_watched_is_heard(heard: Heard) -> None:
    def tree(depth: int) -> None:
        for _ in range(2):
            if depth == 1 and not heard.said:
                heard.watch()
                heard.say("watched")
            if depth < 3:
                tree(depth + 1)
        heard.say(f"behind {depth}")

    tree(0)
    assert heard.said.index("over") == heard.said.index("behind 1") - 1
    assert heard.said.count("over") == 2


@needs_monitoring
def test_lines_and_returns_are_heard_only_where_that_does_not_take_too_long(heard: Heard) -> None:
    price = 0.0

    def loop(most_ns: float) -> None:
        nonlocal price
        for _ in range(1):
            price = heard.watch(most_ns)
        heard.say("behind")

    loop(PLENTY)
    whole, said = price, heard.said.copy()
    assert said == ["over", "behind", "over"]
    heard.said.clear()
    loop(whole - 1)
    assert 0 < price < whole
    assert heard.said == ["behind", "over"]
    heard.said.clear()
    loop(price - 1)
    assert heard.said == ["behind"]


@needs_monitoring
def test_numbers_of_other_tools_are_left_alone(heard: Heard) -> None:
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009
    monitoring.use_tool_id(TOOLS[0], "another")
    try:
        decode(heard, 3)
        assert heard.said.count("over") == 2
        monitoring.use_tool_id(TOOLS[1], "yet another")
        try:
            decode(heard, 3)
            assert heard.said.count("over") == 2
            assert [monitoring.get_tool(tool) for tool in TOOLS] == ["another", "yet another"]
        finally:
            monitoring.free_tool_id(TOOLS[1])
    finally:
        monitoring.free_tool_id(TOOLS[0])


@needs_monitoring
def test_steps_are_heard_no_more_once_each_line_was(heard: Heard) -> None:
    lines = 0
    original = heard.end._heard_line

    def counted(code: Any, line: int) -> object:
        nonlocal lines
        lines += 1
        return original(code, line)

    heard.end._heard_line = counted  # type: ignore[method-assign]
    decode(heard, 500)
    assert 4 < lines < 12


def test_the_end_of_a_loader_is_heard_on_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model().eval()
    said: list[str] = []

    def evaluate(run: Followed) -> None:
        with torch.no_grad():
            for number, x in enumerate(loader(6)):
                net(x)
                said.append("step")
                if number == 3:
                    assert run.tracker.watch_end(lambda frame: said.append("over"), PLENTY) > 0
                    assert run.tracker.watch_end(lambda frame: said.append("never"), PLENTY) == 0
        said.append("behind")

    with following() as run:
        monkeypatch.setattr(run.tracker._loop_end._tool, "_monitoring", None)
        evaluate(run)
        assert said == ["step"] * 6 + ["over", "behind"]
        run.tracker.stop_watching()


@needs_monitoring
@pytest.mark.parametrize("times", [1, 3])
def test_each_stay_can_be_watched_also_in_one_frame(times: int) -> None:
    net = model().eval()
    said: list[str] = []

    with following() as run, torch.no_grad():
        for _ in range(times):
            for x in range(6):
                net(torch.ones(3, 2))
                if x == 4:
                    run.tracker.watch_end(lambda frame: said.append("over"), PLENTY)
            said.append("behind")
        run.tracker.stop_watching()
    assert said == ["over", "behind"] * times


@needs_monitoring
def test_a_compiled_function_runs_on_while_it_is_watched(heard: Heard) -> None:
    def decode(x: Any) -> Any:
        for number in range(3):
            if number == 1:
                heard.watch()
            x = torch.compile(torch.sin, backend="eager")(x)
        return x + 1

    expected = torch.ones(2)
    for _ in range(3):
        expected = expected.sin()
    assert torch.equal(decode(torch.ones(2)), expected + 1)
    assert heard.said == ["over", "over"]


@needs_monitoring
def test_an_error_of_whoever_hears_of_an_end_is_none_of_the_programs(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(frame: FrameType) -> None:
        heard.said.append("over")
        raise ValueError

    monkeypatch.setattr(heard, "over", fail)
    assert decode(heard, 3) == 3
    assert heard.said.count("over") == 2


def learn(run: Followed, epochs: int, leave: str, watched: bool = True) -> list[str]:
    """Train for eight steps an epoch, and hear of the end from the fifth step on."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def epoch() -> None:
        for number, x in enumerate(loader(8 if leave == "loader" else 20)):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
            if number == 4 and watched:
                run.tracker.watch_end(lambda frame: run.tracker.leave_training(), PLENTY)
            if number == 7 and leave == "return":
                return
            if number == 7 and leave == "break":
                break

    kinds: list[str] = []
    for _ in range(epochs):
        epoch()
        kinds.append(run.tracker.current.kind)
    run.tracker.stop_watching()
    return kinds


@needs_monitoring
@pytest.mark.parametrize("leave", ["return", "break", "loader"])
def test_a_training_whose_end_is_heard_is_left_and_goes_on_in_the_next_epoch(leave: str) -> None:
    with following() as run:
        assert learn(run, 3, leave) == ["epoch end"] * 3
    assert run.sequence == ["train", "epoch end"] * 3
    assert run.steps == {"train": 24}


def test_nobody_hears_of_the_end_of_a_training_that_is_not_watched() -> None:
    with following() as run:
        assert learn(run, 2, "return", watched=False) == ["train"] * 2


def test_a_loader_ends_a_training_once_that_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    with following() as run:
        monkeypatch.setattr(run.tracker._loop_end._tool, "_monitoring", None)
        assert learn(run, 2, "loader") == ["epoch end"] * 2
    assert run.sequence == ["train", "epoch end"] * 2
