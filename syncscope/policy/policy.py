"""A project's policy: the gate, expectations, overrides and budgets of its configuration, with rule codes resolved."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec.structs import replace

from syncscope.compare.fingerprints import format_count, frequency_of, is_counted, is_untold
from syncscope.policy.settings import Budgets
from syncscope.schema.catalogue import read_catalogue
from syncscope.schema.findings import COMPILED, UNEXPLAINED, Finding, SiteSource

NO_BUDGETS = Budgets()

EXACT: tuple[SiteSource, ...] = ("hook", "count", COMPILED)
"""Sources of a site that give the very line."""


def default_gate() -> tuple[str, ...]:
    """What ``syncscope check`` fails on unless ``gate`` says otherwise: waits first, each in order of its code."""
    gated = (rule for rule in read_catalogue() if rule.gated)
    return tuple(rule.code for rule in sorted(gated, key=lambda rule: (not rule.counts_as_wait, rule.code)))


class Expectation(msgspec.Struct, frozen=True):
    """Findings that are fine, and why: an entry of the configuration, or a comment in the program."""

    rule: str
    """As written: a code or a prefix."""
    codes: frozenset[str]
    """The rules it means."""
    reason: str
    where: str
    """``pyproject.toml:12``: file and line of the entry, or the file alone where its line is unknown."""
    file: str | None = None
    """Glob on the whole path of the site's file, as the report shows it; ``*`` crosses folders."""
    function: str | None = None
    """Glob on the site's qualified function, or on the annotation that stands for it where there is no line."""
    line: int | None = None
    """The line of a comment. It covers only findings whose own line was recorded."""
    max_per_step: float | None = None
    """A finding that occurs more often than this is unexpected."""

    def covers(self, finding: Finding) -> bool:
        """Whether it is about the finding. A finding without a line is covered only where no glob of files is
        given."""
        if finding.rule not in self.codes and not self._may_mean(finding):
            return False
        return self._is_at(finding)

    def may_be_about(self, finding: Finding) -> bool:
        """Whether one of its rules may be about the finding although it is another's, as ``is_untold``."""
        return self._is_at(finding) and any(is_untold(code, finding) for code in self.codes)

    def _is_at(self, finding: Finding) -> bool:
        site = finding.site
        if site is None:
            named = finding.annotation is not None and fnmatchcase(finding.annotation, self.function or "*")
            return self.file is None and (self.function is None or named)
        if self.line is not None and (finding.site_source not in EXACT or site.line != self.line):
            return False
        return (self.file is None or fnmatchcase(site.file, self.file)) and (
            self.function is None or fnmatchcase(site.function, self.function)
        )

    def _may_mean(self, finding: Finding) -> bool:
        """Whether it is about a place, and about a wait there that may be the finding's: of one of the two it is not
        known why it waits."""
        if self.file is None and self.function is None:
            return False
        if finding.rule == UNEXPLAINED:
            return any(map(is_counted, self.codes))
        return UNEXPLAINED in self.codes and is_counted(finding.rule)

    def excess(self, finding: Finding) -> str | None:
        """How a finding that it covers exceeds ``max_per_step``; ``None`` when it does not."""
        if self.max_per_step is None:
            return None
        most = f"expected at most {format_count(self.max_per_step)} a step"
        frequency = frequency_of(finding)
        if frequency is None:
            return f"{most}, and the trace has no steps"
        return f"{most}, found {format_count(frequency.per_step)}" if frequency.is_above(self.max_per_step) else None


class Override(msgspec.Struct, frozen=True):
    """Another gate for some files."""

    path: str
    """Glob on the whole path, as the report shows it; ``*`` crosses folders."""
    gate: tuple[str, ...] | None
    """Codes that are gated there instead; ``None`` keeps the gate of the other files."""
    ignore: tuple[str, ...] = ()
    """Codes that are not gated there."""


class Policy(msgspec.Struct, frozen=True):
    """A project's policy. The default is the policy of a project without a configuration."""

    gate: tuple[str, ...] = msgspec.field(default_factory=default_gate)
    """Codes that ``check`` fails on."""
    expect: tuple[Expectation, ...] = ()
    own: tuple[str, ...] = ()
    """Installed packages that count as the user's code."""
    overrides: tuple[Override, ...] = ()
    budgets: Budgets = NO_BUDGETS
    phases: tuple[str, ...] | None = None
    """Kinds or names of the phases that are judged, and have to be there; ``None``: training, else the longest."""
    min_steps: int | None = None
    """Steps of each judged phase that recordings have to show, in every process."""
    allow_partial: bool = False
    """Whether rules count as checked where part of a trace, a trace or a rank was not seen."""
    folders: tuple[Path, ...] = ()
    """Folders to look in for the files that a report names, in order. Nothing outside the first, the project's root, is
    read. With no folder, comments are ignored."""

    @property
    def gated(self) -> tuple[str, ...]:
        """Codes that are gated for some file."""
        own = (code for override in self.overrides for code in override.gate or ())
        return tuple(dict.fromkeys((*self.gate, *own)))

    def gates(self, finding: Finding) -> bool:
        """Whether the finding's rule is gated for its file."""
        gate: Collection[str] = self.gate
        ignored: set[str] = set()
        for override in self.overrides:
            if finding.site is not None and fnmatchcase(finding.site.file, override.path):
                gate = override.gate if override.gate is not None else gate
                ignored.update(override.ignore)
        return finding.rule in gate and finding.rule not in ignored

    def only(self, codes: Collection[str], gate: Collection[str] = ()) -> Policy:
        """The policy that gates no rule but ``codes``. ``gate``, where given, replaces the gate of all files."""
        kept = tuple(code for code in gate or self.gate if code in codes)
        overrides = tuple(
            replace(override, gate=tuple(code for code in override.gate if code in codes))
            if override.gate is not None
            else override
            for override in self.overrides
        )
        return replace(self, gate=kept, overrides=overrides)
