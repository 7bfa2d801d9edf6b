"""What a project expects of its traces, and whether a report keeps to it.

Importing this loads neither pandas nor the rules: the collector asks for ``own_packages`` before a user's script runs.
"""

from __future__ import annotations

from syncscope.policy.config import DEFAULT_GATE, ConfigError, Expectation, Policy, load_policy, own_packages
from syncscope.policy.expectations import apply
from syncscope.policy.gate import verdict

__all__ = [
    "DEFAULT_GATE",
    "ConfigError",
    "Expectation",
    "Policy",
    "apply",
    "load_policy",
    "own_packages",
    "verdict",
]
