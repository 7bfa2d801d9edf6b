"""HolisticTraceAnalysis on our columns, without its parser: :func:`to_hta`, and its tables for reports."""

from syncscope.hta.feed import HTAMissing, to_hta
from syncscope.hta.tables import analyses

__all__ = ["HTAMissing", "analyses", "to_hta"]
