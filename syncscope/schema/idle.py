"""Which of the causes of a device's idle time a finding is about by itself."""

from __future__ import annotations

from syncscope.schema.findings import Finding, IdleCause

OWN_SHARE = 0.1
"""A finding about idle time has something of its own if a cause that no other names is at least this share of it."""

HALF_AS_LONG = 0.5
"""A cause that the host could leave out comes before one that it could not, if it is this share of it."""

BESIDE_THE_HOST = frozenset({"collective", "launch latency", "queued on device", "unknown", "warm-up"})
"""Causes that nothing this host leaves out would change."""


def main_cause(finding: Finding) -> IdleCause | None:
    """The longest cause that no other finding is about, or one that is half as long where the host could leave only
    that out; ``None`` where the others are about all that counts."""
    least = OWN_SHARE * (finding.idle_ms_per_step or 0.0)
    own = [one for one in finding.causes if not one.covered_by and one.ms_per_step >= least]
    half = HALF_AS_LONG * own[0].ms_per_step if own else 0.0
    return next(
        (one for one in own if one.cause not in BESIDE_THE_HOST and one.ms_per_step >= half), next(iter(own), None)
    )


def own_cause(finding: Finding) -> IdleCause | None:
    """``main_cause``, where the host could leave it out."""
    main = main_cause(finding)
    return None if main is None or main.cause in BESIDE_THE_HOST else main


def is_summed_up(finding: Finding) -> bool:
    """Whether a finding about idle time only sums up what others are about, and what nothing on the host changes."""
    covered_ms = sum(cause.ms_per_step for cause in finding.causes if cause.covered_by)
    return own_cause(finding) is None and covered_ms >= 0.5 * (finding.idle_ms_per_step or 0.0)
