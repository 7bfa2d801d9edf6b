"""What a project expects of its traces, and whether a report keeps to it.

Importing this loads neither pandas nor the rules: the collector asks for ``own_packages`` before a user's script runs.
"""

from __future__ import annotations

from syncscope.policy.baseline import Baseline, BaselineError, Held, hold, read_baseline
from syncscope.policy.config import ConfigError, load_policy, own_packages
from syncscope.policy.expectations import apply
from syncscope.policy.gate import verdict
from syncscope.policy.policy import Expectation, Override, Policy, default_gate
from syncscope.policy.settings import Budgets

__all__ = [
    "Baseline",
    "BaselineError",
    "Budgets",
    "ConfigError",
    "Expectation",
    "Held",
    "Override",
    "Policy",
    "apply",
    "default_gate",
    "hold",
    "load_policy",
    "own_packages",
    "read_baseline",
    "verdict",
]
