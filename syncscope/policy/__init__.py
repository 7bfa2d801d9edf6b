"""Check a report against what a project expects of it: gate, expectations, baseline and budgets.

Importing this loads neither numpy nor the rules: the collector reads ``own_packages`` before a user's script runs. The
names load on first use, so that who does not compare with a baseline does not load what does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOME = {
    "baseline": ("Baseline", "BaselineCheck", "BaselineError", "check_baseline", "read_baseline"),
    "config": ("ConfigError", "load_policy", "own_packages"),
    "expectations": ("apply",),
    "gate": ("check_gate",),
    "policy": ("Expectation", "Override", "Policy", "default_gate"),
    "settings": ("Budgets",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value  # the next look-up does not come here
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
