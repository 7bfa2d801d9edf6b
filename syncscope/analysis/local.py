"""Analyse traces on one machine: one after the other in this process, or in a pool of processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from syncscope.analysis.engine import Progress
from syncscope.analysis.rank import (
    NOTHING_KEPT,
    Job,
    Rank,
    Results,
    analyze_alone,
    analyze_rank,
    compare_rank,
    merge_results,
)
from syncscope.estimate import MOST_PEERS, peers_to_compare
from syncscope.trace.workers import available_cores

if TYPE_CHECKING:
    from syncscope.analysis.pool import Keep, Task


class Local:
    """Up to ``jobs`` processes, no more than there are processors. Several processes import the program's main module
    again."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = max(1, min(jobs, available_cores()))

    def analyze(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Results:
        if len(paths) == 1:
            if progress:
                progress(paths[0], 0, 1)
            results = analyze_alone(paths[0], job)
            if progress:
                progress(paths[0], 1, 1)
            return results
        jobs = min(self._jobs, len(paths))
        if jobs > 1:  # the processors are taken
            job = msgspec.structs.replace(job, reading=msgspec.structs.replace(job.reading, workers=1))
        encoded = msgspec.json.encode(job)
        run = _run_in_turn
        if jobs > 1:
            from syncscope.analysis.pool import Pool  # one trace does without what it imports

            run = Pool(jobs, analyze_rank.__module__).run
        ranks = _Ranks()
        run([(analyze_rank, (path, encoded)) for path in paths], paths, ranks.keep, progress)
        results = ranks.merged()
        if peers := peers_to_compare(results.peers):
            known = msgspec.json.encode(peers)
            again = [(compare_rank, (rank, known)) for rank in ranks.in_order()]
            run(again, paths, ranks.keep, None)
            results = ranks.merged()
        return results


class _Ranks:
    """The result of each rank, by number. What was kept of them is dropped once there are too many ranks to compare."""

    def __init__(self) -> None:
        self._ranks: dict[int, Rank] = {}
        self._kept = 0

    def keep(self, number: int, rank: Rank) -> None:
        self._kept += rank[1] != NOTHING_KEPT
        self._ranks[number] = rank
        if self._kept > MOST_PEERS:
            self._ranks = {number: (results, NOTHING_KEPT) for number, (results, _) in self._ranks.items()}

    def in_order(self) -> list[Rank]:
        return [self._ranks[number] for number in sorted(self._ranks)]

    def merged(self) -> Results:
        return merge_results(results for results, _ in self.in_order())


def _run_in_turn(tasks: Sequence[Task], paths: Sequence[str], keep: Keep, progress: Progress | None) -> None:
    for number, (function, arguments) in enumerate(tasks):
        if progress:
            progress(paths[number], number, len(paths))
        keep(number, function(*arguments))
    if progress:
        progress(paths[-1], len(paths), len(paths))
