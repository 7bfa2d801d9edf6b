"""Many ranks: the same function for each of them, in this process, in several, or on a cluster."""

from syncscope.engine.engine import Engine, EngineError, Progress, cores, engine
from syncscope.engine.rank import Job, Studied, judge

__all__ = ["Engine", "EngineError", "Job", "Progress", "Studied", "cores", "engine", "judge"]
