"""For pytest: ``@pytest.mark.max_syncs(0)``, the fixture ``syncscope``, limits for all tests, and a report.

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

    def test_the_loop_is_clean(trainer, batches, syncscope):
        with syncscope.profile(steps=5) as recording:
            for batch in batches:
                trainer.step(batch)
                recording.step()
        assert recording.report.findings == ()

``--max-syncs N`` (``max_syncs`` in the configuration) is the limit of every test without a mark, and
``--max-syncs-session N`` (``max_syncs_session``) that of all tests together. With either of them, or with
``--syncscope-report PATH``, the waits of every test are counted, and a summary names the lines that wait most; the
report is that as JSON. pytest-xdist's workers are added up.

``@pytest.mark.max_recompiles(0)`` and ``@pytest.mark.max_graph_breaks(0)`` limit what ``torch.compile`` does in the
test's body, with or without a GPU: each recompile counts, and each line that ends a graph. Compile in a fixture first.

The mark limits the test's body; waits in fixtures do not count. The plugin counts every wait of the thread that runs
the test, and of all threads with ``@pytest.mark.max_syncs(0, threads="all")``, in both directions of copies: what
``syncscope.guard`` sees, also under ``-W error``. Waits inside ``syncscope.expected(reason)`` do not count.

Tests that use ``max_syncs`` or the fixture are skipped where there is no PyTorch or no GPU. Loading the plugin imports
neither PyTorch nor the rest of syncscope.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from syncscope.pytest_plugin.compiling import MARKS, limited, limits_of

if TYPE_CHECKING:
    from syncscope.collect.live.record import Wait, record
    from syncscope.collect.live.watching import Threads
    from syncscope.collect.paths import Paths
    from syncscope.session import profile

MARK = "max_syncs"
SESSION = "syncscope-session"
"""The plugin that adds up the waits of all tests, where that was asked for."""
COUNTED = "syncscope_waits"
"""Attribute of a test's report: how many waits its body made at each line, as ``session.counted_lines`` has them."""

_waits = pytest.StashKey["Sequence[Wait]"]()
_profiled = pytest.StashKey[bool]()


class Syncscope:
    """The value of the fixture ``syncscope``."""

    def __init__(self, config: pytest.Config, request: pytest.FixtureRequest | None = None) -> None:
        self._config = config
        self._request = request

    def record(self, threads: Threads = "own") -> record:
        """Record the waits of a block: ``with syncscope.record() as waits: …; len(waits)``; with ``threads="all"``
        those of all threads.

        ``waits`` is a sequence that grows. Each wait has ``file``, ``line``, ``function``, ``expression``, ``at``,
        ``fix`` and ``thread``.
        """
        return _recorder(self._config, threads)

    @contextlib.contextmanager
    def max_syncs(self, limit: int, threads: Threads = "own", hold_ms: float | None = None) -> Iterator[None]:
        """Fail the test if the block waits more than ``limit`` times, on this thread or on all.

        With ``hold_ms`` also if it lasts as long as the device is held, as in ``syncscope.guard``.
        """
        if not _is_limit(limit):
            raise ValueError(f"{MARK} takes the number of waits to allow, 0 or more, not {limit!r}")
        with self.record(threads) as waits, _hold(hold_ms, threads) as slow:
            yield
        _fail_beyond(limit, waits)
        if slow:
            pytest.fail(slow[0], pytrace=False)

    def profile(self, **options: Any) -> profile:
        """Record a block with ``syncscope.profile``: ``with syncscope.profile(steps=5) as recording: …``.

        ``options`` are those of ``syncscope.profile``. The files go into a temporary folder of pytest's, which is told
        where the test fails. The profiler waits too, so such a test takes no limit, and its waits are not counted.
        """
        from syncscope.session import profile

        assert self._request is not None
        item = self._request.node
        if item.get_closest_marker(MARK) is not None:
            pytest.fail(f"a test that records with profile waits for it, and takes no {MARK}", pytrace=False)
        item.stash[_profiled] = True
        folder = self._request.getfixturevalue("tmp_path_factory").mktemp("syncscope")
        item.add_report_section("call", "syncscope", f"recorded into {folder}")
        return profile(**{"folder": folder, **options})

    def expected(self, reason: str) -> contextlib.AbstractContextManager[None]:
        """Do not count waits inside the block, for ``reason``. The same as the package's ``syncscope.expected``."""
        from syncscope.collect.annotations import expected

        return expected(reason)


@pytest.fixture
def syncscope(request: pytest.FixtureRequest) -> Syncscope:
    """Records and limits the waits for the GPU in a block. Skips the test where there is no GPU."""
    _skip_without_gpu()
    return Syncscope(request.config, request)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("syncscope", "waits for the GPU")
    limits = {MARK: "each test without a mark of its own", f"{MARK}_session": "all tests together"}
    for name, what in limits.items():
        text = f"the most waits for the GPU of {what}"
        group.addoption(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
        parser.addini(name, text)
    group.addoption("--syncscope-report", metavar="PATH", help="write which lines of the tests wait, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    each, together = _option(config, MARK), _option(config, f"{MARK}_session")
    report = config.getoption("syncscope_report")
    if each is not None or together is not None or report:
        from syncscope.pytest_plugin.session import Session

        if report and (os.path.isdir(report) or not os.path.isdir(os.path.dirname(report) or ".")):
            raise pytest.UsageError(f"--syncscope-report {report}: is a folder, or in one that does not exist")
        config.pluginmanager.register(Session(together, report), SESSION)
    config.addinivalue_line(
        "markers",
        f'{MARK}(n, threads="own"): the test\'s body waits for the GPU at most n times, on its thread or on "all"',
    )
    for name, (_, _, meaning) in MARKS.items():
        config.addinivalue_line("markers", f"{name}(n): in the test's body {meaning}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _limit(item) is not None:
        _skip_without_gpu()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    compiling = limits_of(item)
    with limited(compiling, _paths(item.config)) if compiling else contextlib.nullcontext():
        yield from _count_waits(item)


def _count_waits(item: pytest.Item) -> Generator[None, None, None]:
    limit = _limit(item)
    if limit is None and (_session(item.config) is None or _unavailable()):
        yield
        return
    limit = _option(item.config, MARK) if limit is None else limit
    # Of the whole thread: tests of asyncio run in tasks that plugins and unittest prepare before.
    waits = _recorder(item.config, _threads(item), tasks="all")
    if _waits in item.stash:  # of an earlier run of the test
        del item.stash[_waits]
    try:
        with waits:
            yield
    finally:
        item.stash[_waits] = waits  # not before: subtests have reports of their own, which would tell waits twice
    if limit is not None and _profiled not in item.stash:
        _fail_beyond(limit, waits)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and _session(item.config) is not None and _waits in item.stash:
        from syncscope.pytest_plugin.session import counted_lines

        # As plain data, since pytest-xdist sends it to another process.
        setattr(report, COUNTED, None if _profiled in item.stash else counted_lines(item.stash[_waits]))
    return report


def _limit(item: pytest.Item) -> int | None:
    """The limit of the test's own mark, else of its class's or module's, ``None`` without a mark."""
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    given = [*mark.args, *(value for name, value in mark.kwargs.items() if name != "threads")]
    if len(given) != 1 or set(mark.kwargs) - {"n", "threads"} or not _is_limit(given[0]):
        pytest.fail(f"{MARK} takes the number of waits to allow, as in {MARK}(0)", pytrace=False)
    return int(given[0])


def _option(config: pytest.Config, name: str) -> int | None:
    """The limit of the command line, else of the configuration, else ``None``. Raises ``pytest.UsageError``."""
    given = config.getoption(name)
    text = config.getini(name) if given is None else str(given)
    if text == "" or text is None:
        return None
    if not str(text).isdecimal():
        raise pytest.UsageError(f"{name}: takes the number of waits to allow, 0 or more, not {text}")
    return int(text)


def _session(config: pytest.Config) -> object | None:
    found: object | None = config.pluginmanager.get_plugin(SESSION)
    return found


def _threads(item: pytest.Item) -> Threads:
    """The threads that the test's mark counts."""
    mark = item.get_closest_marker(MARK)
    threads: Threads = mark.kwargs.get("threads", "own") if mark is not None else "own"
    if threads not in ("own", "all"):
        pytest.fail(f'{MARK} counts the waits of threads="own" or "all", not {threads!r}', pytrace=False)
    return threads


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _unavailable() -> str | None:
    from syncscope.collect.live.record import unavailable

    return unavailable()


def _skip_without_gpu() -> None:
    if why := _unavailable():
        pytest.skip(f"counting waits {why}")


def _recorder(config: pytest.Config, threads: Threads, tasks: Threads = "own") -> record:
    from syncscope.collect.live.record import record

    return record(_paths(config), threads, tasks)


def _hold(hold_ms: float | None, threads: Threads) -> contextlib.AbstractContextManager[Sequence[str]]:
    from syncscope.collect.live.hold import held

    return contextlib.nullcontext(()) if hold_ms is None else held(hold_ms, threads)


def _paths(config: pytest.Config) -> Paths:
    from syncscope.collect.paths import Paths
    from syncscope.policy import ConfigError, own_packages

    try:
        return Paths(config.rootpath, own_packages(config.rootpath))
    except ConfigError as error:
        pytest.fail(str(error), pytrace=False)


def _fail_beyond(limit: int, waits: Sequence[Wait]) -> None:
    """Fail the test if there are more than ``limit`` waits, and list each line with its fix."""
    if len(waits) <= limit:
        return
    times = "time" if len(waits) == 1 else "times"
    lines = [f"waited for the GPU {len(waits)} {times}, at most {limit} allowed:"]
    for wait, number in Counter(waits).items():
        place = f"{wait.file}:{wait.line}"
        more = (f"  on {wait.thread}" if wait.thread else "") + (f"  {number} ×" if number > 1 else "")
        lines.append(f"  {place}  {wait.expression or ''}  in {wait.function}{more}")
        if wait.at != place:
            lines.append(f"      at {wait.at}")
        lines.append(f"      fix: {wait.fix}")
    pytest.fail("\n".join(lines), pytrace=False)
