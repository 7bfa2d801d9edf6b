"""``with syncscope.hazards() as found:`` looks for races without recording anything."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

from syncscope.collect.features import Unsupported
from syncscope.collect.hazards.window import HazardWindow
from syncscope.collect.paths import Paths, project_root
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.findings import Finding
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording
from syncscope.schema.report import NotChecked

NO_GPU = "there is no GPU here, so nothing was looked at"


class hazards:
    """Look for races on this thread inside the block: copies that nothing waited for, streams that nothing orders.

    ::

        with syncscope.hazards() as found:
            train_step(batch)
        assert not found.findings, found.findings[0].message

    Afterwards ``findings`` holds one finding for each line that races, and ``not_checked`` what could not be seen.
    What was launched before the block is not followed. The block runs much slower than the program alone, so this is
    for tests and debugging. Compiled functions run uncompiled inside. Without a GPU the block runs unobserved, and
    ``not_checked`` says so, as with a version of PyTorch that lacks what the hooks need. ``own`` names installed
    packages that count as the user's.
    """

    def __init__(self, *, own: tuple[str, ...] = ()) -> None:
        self.findings: tuple[Finding, ...] = ()
        self.not_checked: tuple[NotChecked, ...] = ()
        self._own = own
        self._window: HazardWindow | None = None
        self._why = NO_GPU

    def __enter__(self) -> hazards:
        import torch

        if torch.cuda.is_available():
            try:
                self._begin(torch)
            except Unsupported as error:
                self._why = str(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from syncscope.rules import RULES  # numpy: not before the program has run
        from syncscope.rules.base.race_rule import UNSEEN, RaceRule

        rules = [rule for rule in RULES if isinstance(rule, RaceRule)]
        if self._window is None:
            self.not_checked = tuple(NotChecked(rule=rule.code, why=self._why) for rule in rules)
            return
        self._window.close()
        recording = self._recording(self._window)
        self.findings = tuple(finding for rule in rules for finding in rule.find_recorded(recording, rank=None))
        self.not_checked = tuple(
            NotChecked(rule=rule.code, why=why, partial=True) for rule in rules for why in (UNSEEN, *self._window.notes)
        )

    def _begin(self, torch: Any) -> None:
        self._threads = Threads()
        self._stacks = Stacks(Paths(project_root(Path.cwd()), self._own))
        window = HazardWindow(torch, self._stacks, self._threads)
        window.open()
        self._window = window

    def _recording(self, window: HazardWindow) -> Recording:
        frames, stacks = self._stacks.resolve()
        return Recording(
            format=FORMAT,
            version="",
            pid=os.getpid(),
            thread_names=self._threads.names(),
            steps=RecordedSteps(source="none"),
            frames=frames,
            stacks=stacks,
            hazards=window.take(),
        )
