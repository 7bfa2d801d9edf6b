"""Check a report against what a project expects of it: gate, expectations, baseline and budgets.

Importing this loads neither pandas nor the rules: the collector reads ``own_packages`` before a user's script runs.
"""

from __future__ import annotations

from syncscope.policy.baseline import Baseline, BaselineCheck, BaselineError, check_baseline, read_baseline
from syncscope.policy.config import ConfigError, load_policy, own_packages
from syncscope.policy.expectations import apply
from syncscope.policy.gate import check_gate
from syncscope.policy.policy import Expectation, Override, Policy, default_gate
from syncscope.policy.settings import Budgets

__all__ = [
    "Baseline",
    "BaselineCheck",
    "BaselineError",
    "Budgets",
    "ConfigError",
    "Expectation",
    "Override",
    "Policy",
    "apply",
    "check_baseline",
    "check_gate",
    "default_gate",
    "load_policy",
    "own_packages",
    "read_baseline",
]
