"""Metrics for Weights & Biases: in the program's own run, or in a run of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscope.collect.watch.measures import Measures

STEP = "syncscope/step"


class WeightsAndBiases:
    """Logs ``syncscope/…``.

    Without a project it waits for the run that the program starts, and what it logs goes out with the program's next
    row, whose number stays the program's. With one, it starts a run in that project beside those of the program.
    """

    def __init__(self, project: str | None, rank: int | None) -> None:
        import wandb

        self._wandb: Any = wandb
        self._own: Any = None
        self._known: Any = None
        if project:
            name = None if rank is None else f"rank {rank}"
            self._own = wandb.init(project=project, name=name, job_type="syncscope", reinit="create_new")
            self._own.define_metric("syncscope/*", step_metric=STEP)

    def export(self, measures: Measures) -> None:
        row = {f"syncscope/{name}": value for name, value in measures.scalars().items()}
        row[STEP] = measures.step
        if self._own is not None:
            self._own.log(row)
            return
        run = self._wandb.run
        if run is None:
            return
        if run is not self._known:
            self._known = run
            run.define_metric("syncscope/*", step_metric=STEP)
        run.log(row, commit=False)

    def close(self) -> None:
        if self._own is not None:
            self._own.finish()


def make(target: str, rank: int | None) -> WeightsAndBiases:
    return WeightsAndBiases(target or None, rank)
