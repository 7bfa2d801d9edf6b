"""What fixing each finding would save: the recorded steps, replayed without it.

``prepare`` takes a timeline and keeps what a replay needs. ``estimate_savings`` replays it.
"""

from __future__ import annotations

from syncscope.estimate.answers import lower_severity
from syncscope.estimate.fit import find_misfit
from syncscope.estimate.peers import MOST_PEERS, Peer, peers_to_compare
from syncscope.estimate.prepare import Prepared, prepare
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.savings import Estimate, estimate_savings

__all__ = [
    "MOST_PEERS",
    "Estimate",
    "Peer",
    "Prepared",
    "Program",
    "compile_program",
    "estimate_savings",
    "find_misfit",
    "lower_severity",
    "peers_to_compare",
    "prepare",
]
