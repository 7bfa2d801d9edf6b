"""For pytest: ``@pytest.mark.max_syncs(0)`` and the fixture ``syncscope``.

::

    @pytest.mark.max_syncs(0)
    def test_a_step_does_not_wait(trainer, batch):
        trainer.step(batch)

    def test_logging_waits_once(trainer, batch, syncscope):
        trainer.warm_up()
        with syncscope.max_syncs(0):
            trainer.step(batch)
        with syncscope.record() as waits:
            trainer.log()
        assert [wait.expression for wait in waits] == ["loss.item()"]

The mark is on the test's body: what fixtures do is not counted. Counted is every wait of the thread that runs the test,
in whichever direction the data goes: those that PyTorch warns of, also under ``-W error``, and
``torch.cuda.synchronize()``, ``Stream.synchronize()`` and ``Event.synchronize()``. Not seen are waits of other threads,
those inside ``torch.ops`` operators and TorchScript, those in libraries that PyTorch does not warn of (thrust, MAGMA),
and ``non_blocking`` copies of pageable memory. Waits inside of ``syncscope.expected(reason)`` do not count.

Tests that ask for it are skipped where there is no PyTorch or no GPU. Loading the plugin imports neither.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from syncscope.collect.paths import Paths
    from syncscope.collect.record import Wait, record

MARK = "max_syncs"


class Syncscope:
    """What the fixture ``syncscope`` offers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def record(self) -> record:
        """The waits of a block, a sequence that grows: ``with syncscope.record() as waits: …; len(waits)``. Each has
        ``file``, ``line``, ``function``, ``expression``, ``at`` and ``fix``."""
        from syncscope.collect.record import record

        return record(_paths(self._config))

    @contextlib.contextmanager
    def max_syncs(self, limit: int) -> Iterator[None]:
        """Fail the test where the block waits more often than ``limit``."""
        if not _is_limit(limit):
            raise ValueError(f"{MARK} takes how many waits are allowed, 0 or more, not {limit!r}")
        with self.record() as waits:
            yield
        _hold(waits, limit)

    def expected(self, reason: str) -> contextlib.AbstractContextManager[None]:
        """Waits inside the block do not count, for ``reason``: ``syncscope.expected`` of the package."""
        from syncscope.collect.expected import expected

        return expected(reason)


@pytest.fixture
def syncscope(request: pytest.FixtureRequest) -> Syncscope:
    """Records and limits the waits for the GPU in a block; skips where there is no GPU."""
    _skip_where_nothing_waits()
    return Syncscope(request.config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(n): the test's body waits for the GPU at most n times")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _limit(item) is not None:
        _skip_where_nothing_waits()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    limit = _limit(item)
    if limit is None:
        yield
        return
    with Syncscope(item.config).max_syncs(limit):
        yield


def _limit(item: pytest.Item) -> int | None:
    """What the test's own mark, else that of its class or module, allows."""
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    given = [*mark.args, *mark.kwargs.values()]
    if len(given) != 1 or set(mark.kwargs) - {"n"} or not _is_limit(given[0]):
        pytest.fail(f"{MARK} takes how many waits are allowed, as in {MARK}(0)", pytrace=False)
    return int(given[0])


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _skip_where_nothing_waits() -> None:
    from syncscope.collect.record import unavailable

    if why := unavailable():
        pytest.skip(f"counting waits {why}")


def _paths(config: pytest.Config) -> Paths:
    from syncscope.collect.paths import Paths
    from syncscope.policy import ConfigError, own_packages

    try:
        return Paths(config.rootpath, own_packages(config.rootpath))
    except ConfigError as error:
        pytest.fail(str(error), pytrace=False)


def _hold(waits: Sequence[Wait], limit: int) -> None:
    """Fail the test where there are more waits than ``limit``, listing each line with the way out."""
    if len(waits) <= limit:
        return
    times = "time" if len(waits) == 1 else "times"
    lines = [f"waited for the GPU {len(waits)} {times}, at most {limit} allowed:"]
    for wait, number in Counter(waits).items():
        place = f"{wait.file}:{wait.line}"
        lines.append(
            f"  {place}  {wait.expression or ''}  in {wait.function}" + (f"  {number} ×" if number > 1 else "")
        )
        if wait.at != place:
            lines.append(f"      at {wait.at}")
        lines.append(f"      fix: {wait.fix}")
    pytest.fail("\n".join(lines), pytrace=False)
