"""What ``profile`` asks of every process that it records, also of those that the program starts."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from syncscope.collect.collector import Collector
from syncscope.collect.files import FileNames, new_run_id
from syncscope.collect.naming import NO_RANK, Rank
from syncscope.collect.paths import Paths
from syncscope.collect.plan import Plan


@dataclass(frozen=True)
class Request:
    folder: str
    """Absolute."""
    plan: Plan
    root: str
    """The project's folder."""
    own: tuple[str, ...] = ()
    """Installed packages that count as the user's."""
    seconds: float | None = None
    source: bool = True
    run: str = field(default_factory=new_run_id)
    began_ns: int = field(default_factory=time.time_ns)
    top: int = field(default_factory=os.getpid)
    """The process in which ``profile`` runs the program."""
    inherited: Rank = NO_RANK
    """The rank that the environment of the parent names."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """Raises ``ValueError``, ``TypeError`` or ``KeyError`` for what another version wrote."""
        values: dict[str, Any] = json.loads(text)
        values["plan"] = Plan(**values["plan"])
        values["own"] = tuple(values["own"])
        values["inherited"] = tuple(values["inherited"])
        return cls(**values)

    def make_collector(self, *, process: str | None = None) -> Collector:
        """The collector of this process. ``process`` says how the program started it; without, it is the top one."""
        main = self.top == os.getpid()
        inherited = NO_RANK if process is None else self.inherited
        names = FileNames(Path(self.folder), self.run, main=main, inherited=inherited, began_ns=self.began_ns)
        paths = Paths(Path(self.root), self.own)
        return Collector(names, self.plan, paths, seconds=self.seconds, source=self.source, process=process)
