"""Programs that train, evaluate or call modules on other threads than the main one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import X, learn, loader, model, sgd  # noqa: E402

ROOT = Path(__file__).parents[3]


def on_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Beside:
    """A thread that goes on until the block ends, once its ``work`` is done."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._done, self._over = threading.Event(), threading.Event()
        self._work = work
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self._work()
        self._done.set()
        self._over.wait()

    def __enter__(self) -> None:
        self._thread.start()
        assert self._done.wait(30)

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


def test_a_program_that_trains_on_a_worker_thread_is_followed_there(run: Any) -> None:
    net = model()
    optimizer = sgd(net)
    places: list[str] = []

    def evaluate() -> None:
        net.eval()
        with torch.no_grad():
            for x in loader(4):
                net(x)
                places.append(run.here())
        net.train()

    def train() -> None:
        for _ in range(2):
            for x in loader(5):
                learn(net, optimizer, x)
                places.append(run.here())
            evaluate()

    on_a_thread(train)
    assert run.steps == {"train": 10, "evaluate": 8}
    assert places == (["train"] * 5 + ["evaluate"] * 4) * 2


def test_a_new_thread_for_each_epoch_is_one_training(run: Any) -> None:
    net = model()
    optimizer = sgd(net)

    def epoch() -> None:
        for x in loader(5):
            learn(net, optimizer, x)

    for _ in range(3):
        on_a_thread(epoch)
    assert run.steps == {"train": 15}


def test_replicas_inside_of_a_call_are_part_of_it(run: Any) -> None:
    replica = model().eval()

    class Parallel(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            on_a_thread(lambda: [replica(x) for _ in range(5)])
            return x

    parallel = Parallel().eval()
    for _ in range(4):
        parallel(X)
    assert run.steps == {"evaluate": 4}


def test_a_thread_that_prepares_batches_leaves_the_training_to_the_main_thread(run: Any) -> None:
    encoder, net = model().eval(), model()
    optimizer = sgd(net)

    def prepare() -> None:
        for _ in range(5):
            encoder(X)

    with Beside(prepare):
        assert run.steps == {"evaluate": 5}
        for x in loader(6):
            learn(net, optimizer, x)
    assert run.steps["train"] == 6


def test_a_module_beside_the_training_is_not_told(run: Any) -> None:
    other, net = model().eval(), model()
    optimizer = sgd(net)
    for _ in range(3):
        learn(net, optimizer)
        on_a_thread(lambda: [other(X) for _ in range(3)])
    assert run.sequence == ["train"] and run.steps == {"train": 3}


def test_of_several_threads_that_train_one_is_followed(run: Any) -> None:
    def train() -> None:
        net = model()
        optimizer = sgd(net)
        for _ in range(5):
            learn(net, optimizer)

    with Beside(train), Beside(train):
        train()
    assert run.steps == {"train": 5} and run.phase("train").times == 1


def test_inference_on_a_worker_thread_is_followed(run: Any) -> None:
    net = model().eval()

    def serve() -> None:
        for _ in range(6):
            net(X)

    on_a_thread(serve)
    assert run.steps == {"evaluate": 6}


def test_each_request_of_a_pool_is_a_step(run: Any) -> None:
    net = model().eval()

    def handle(number: int) -> str:
        with torch.no_grad():
            net(X)
        return str(run.here())

    with ThreadPoolExecutor(1) as pool:
        places = list(pool.map(handle, range(8)))
    assert run.steps == {"evaluate": 8}
    assert places[2:] == ["evaluate"] * 6
    assert run.phase("evaluate").user_code is handle.__code__
    assert run.signals.note is None


def test_of_the_threads_of_a_pool_one_is_followed(run: Any) -> None:
    net, turns = model().eval(), threading.Barrier(3)

    def handle(number: int) -> int:
        turns.wait(30)  # each thread has one
        net(X)
        return threading.get_ident()

    with ThreadPoolExecutor(3) as pool:
        threads = list(pool.map(handle, range(30)))
    assert len(set(threads)) == 3
    assert run.steps == {"evaluate": 10} and run.phase("evaluate").times == 1
    assert run.signals.note is not None and "2 more call modules" in run.signals.note


def test_a_training_comes_before_the_requests_of_a_pool(run: Any) -> None:
    net, other = model(), model().eval()
    optimizer = sgd(net)
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda _: other(X), range(5)))
        for x in loader(6):
            learn(net, optimizer, x)
            pool.submit(other, X).result()
    assert run.steps == {"evaluate": 5, "train": 6}


APP = """
async def handle(net, x):
    net(x)
"""

SERVER = """
import asyncio, sys
from pathlib import Path
from tests.collect.phases.following import X, following, model

app = {}
path = Path(sys.argv[1])
exec(compile(path.read_text(), str(path), "exec"), app)
net = model().eval()

async def serve():
    for _ in range(6):
        await asyncio.create_task(app["handle"](net, X))

with following(root=path.parent) as followed:
    asyncio.run(serve())
print(followed.steps)
"""


def test_each_request_of_an_event_loop_is_a_step(tmp_path: Path) -> None:
    """A library runs the loop, with nothing of the user's around it, as in ``-m uvicorn app:app``."""
    (tmp_path / "app.py").write_text(APP)
    library = Path(torch.__file__).parent.parent / "server.py"  # as if it were installed
    code = f"exec(compile({SERVER!r}, {str(library)!r}, 'exec'))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "app.py")], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "{'evaluate': 6}\n", done.stderr
