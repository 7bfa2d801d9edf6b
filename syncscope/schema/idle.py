"""Which of the causes of a device's idle time a finding is about by itself."""

from collections.abc import Iterable

import msgspec

from syncscope.schema.findings import Finding, IdleCause

OWN_SHARE = 0.1
"""A finding about idle time has something of its own if a cause that no other names is at least this share of it."""

HALF_AS_LONG = 0.5
"""A cause that the host could leave out comes before one that it could not, if it is this share of it, and one that a
profiler does not make longer before launches."""

BESIDE_THE_HOST = frozenset({
    "collective", "launch latency", "queued on device", "single pause", "unknown", "warm-up",
})  # fmt: skip
"""Causes that nothing this host leaves out would change."""

LAUNCHES = "launching"
"""The cause that a profiler makes longer, with each op and call that it records. Where no finding is about it, the
launches may well keep pace without a profiler."""

QUEUED = "queued on device"
"""The cause that is work which the device holds back."""

AS_LONG_ALONE = frozenset({"data loading", "host idle", "host collective"})
"""Causes that take about as long without a profiler."""


def main_cause(finding: Finding) -> IdleCause | None:
    """The longest cause that no other finding is about, or one that is half as long where the host could leave only
    that out, or only that is as long without a profiler; ``None`` where the others are about all that counts."""
    return main_of(finding.causes, finding.idle_ms_per_step or 0.0)


def main_of(causes: Iterable[IdleCause], idle_ms: float) -> IdleCause | None:
    """``main_cause`` of idle time of ``idle_ms`` with these causes."""
    own = [one for one in causes if not one.covered_by and one.ms_per_step >= OWN_SHARE * idle_ms]
    half = HALF_AS_LONG * own[0].ms_per_step if own else 0.0
    found = next(
        (one for one in own if one.cause not in BESIDE_THE_HOST and one.ms_per_step >= half), next(iter(own), None)
    )
    if found is None or found.cause != LAUNCHES:
        return found
    return next((one for one in own if one.cause in AS_LONG_ALONE and one.ms_per_step >= half), found)


def cap_causes(finding: Finding) -> Finding:
    """A finding about idle time whose causes save no more than it does at the most."""
    most = finding.saving_high_ms_per_step
    if most is None or not finding.causes:
        return finding

    def least(ms: float | None) -> float | None:
        return ms if ms is None else min(ms, most)

    causes = [
        msgspec.structs.replace(
            cause,
            saving_ms_per_step=least(cause.saving_ms_per_step),
            saving_low_ms_per_step=least(cause.saving_low_ms_per_step),
            saving_high_ms_per_step=least(cause.saving_high_ms_per_step),
            likely_saving_ms_per_step=least(cause.likely_saving_ms_per_step),
        )
        for cause in finding.causes
    ]
    return msgspec.structs.replace(finding, causes=tuple(causes))


def own_cause(finding: Finding) -> IdleCause | None:
    """``main_cause``, where the host could leave it out."""
    main = main_cause(finding)
    return None if main is None or main.cause in BESIDE_THE_HOST else main


def is_summed_up(finding: Finding) -> bool:
    """Whether a finding about idle time only sums up what others are about, and what nothing on the host changes."""
    covered_ms = sum(cause.ms_per_step for cause in finding.causes if cause.covered_by)
    return own_cause(finding) is None and covered_ms >= 0.5 * (finding.idle_ms_per_step or 0.0)


def begin_beside(cause: str) -> str:
    """How the part of a fix begins that is for another cause than the rest of it."""
    return f" Apart from that, there is {cause}"


def without_beside(fix: str, cause: str) -> str:
    """A fix without what it says of this cause beside its own."""
    return fix.partition(begin_beside(cause))[0]


def label_cause(cause: str, shared: bool = False) -> str:
    """A cause as words: identifiers come with underscores or hyphens. A device that is idle though work is queued for
    it holds that back. ``shared`` is whether other processes used the device too."""
    if cause == QUEUED:
        return "queued behind another process" if shared else "queued but held back"
    return cause.replace("_", " ")
