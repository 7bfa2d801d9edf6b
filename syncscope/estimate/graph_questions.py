"""What CUDA graphs would save where launches are not what bounds the step, so that no finding asks."""

from __future__ import annotations

from collections.abc import Sequence

from syncscope.estimate.edits import Question
from syncscope.estimate.questions import launch_graphs
from syncscope.estimate.study import Study
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.question import Intervention
from syncscope.timeline import Timeline

GRAPHS = "CUDA graphs"
"""What the report calls the question."""

LEAST_SHARE = 0.9
"""Of the launches that graphs would take, before it is asked: a step that is hardly more than them."""

PAUSE = 1e6
"""Nanoseconds of host work between two launches that are more than launching: a graph would not take them away."""


def ask_about_graphs(study: Study, hits: Sequence[Hit]) -> tuple[tuple[str, Question], ...]:
    """The question with what it is called, where the steps repeat nearly all of their launches and wait for nothing
    between them, and no finding asks it."""
    found = any(BY_CODE[hit.finding.rule].question is Intervention.REPLAY_GRAPHS for hit in hits)
    if found or not may_ask(study.timeline):
        return ()
    question = launch_graphs(study)
    paused = (study.program.items.pre[question.items] > PAUSE).any()
    return ((GRAPHS, question),) if question and not paused else ()


def may_ask(timeline: Timeline) -> bool:
    """Whether the steps repeat nearly all of their launches and wait for nothing between them."""
    launching = timeline.launching
    waits = timeline.launch_blocking or bool((timeline.waits.step >= 0).any())
    return not waits and launching is not None and (launching.replayable or 0) >= LEAST_SHARE * launching.launches
