"""When a program's optimizers stepped, by a clock that knows nothing of syncscope.

On ``PYTHONPATH``, with ``CLOCK=DIR``, every Python process of a program writes ``DIR/PID.json``: how many steps its
optimizers made, how long it was from the first to the last, and the median time from one to the next.
"""

from __future__ import annotations

import atexit
import json
import os
import statistics
import sys
import time
from importlib.machinery import PathFinder
from pathlib import Path


class Clock:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.times: list[float] = []

    def tick(self, *step: object) -> None:
        self.times.append(time.perf_counter())

    def write(self) -> None:
        if len(self.times) > 1:
            intervals = [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]
            content = {"steps": len(self.times), "loop_s": sum(intervals), "step_s": statistics.median(intervals)}
            self.folder.mkdir(exist_ok=True)
            (self.folder / f"{os.getpid()}.json").write_text(json.dumps(content))

    def listen(self) -> None:
        leave = os._exit

        def write_and_leave(status: int) -> None:
            self.write()
            leave(status)

        os._exit = write_and_leave  # type: ignore[assignment]
        atexit.register(self.write)
        os.register_at_fork(after_in_child=self.times.clear)
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self.tick)


class WhenTorchIsThere:
    """A finder that starts the clock when the program has imported torch."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch":
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_listen(module) -> None:  # type: ignore[no-untyped-def]
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            execute(module)
            self.clock.listen()

        spec.loader.exec_module = execute_and_listen  # type: ignore[method-assign]
        return spec


if "CLOCK" in os.environ:
    sys.meta_path.insert(0, WhenTorchIsThere(Clock(Path(os.environ["CLOCK"]))))  # type: ignore[arg-type]
