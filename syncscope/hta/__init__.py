"""HolisticTraceAnalysis (HTA) on our tables, without its parser: for notebooks, and its results for reports."""

from syncscope.hta.analyses import run_analyses
from syncscope.hta.trace_analysis import to_hta

__all__ = ["run_analyses", "to_hta"]
