"""The pairs: each program of ``pairs/`` at each of its sizes. Read without running them, so without PyTorch."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from syncscope import Finding

PROGRAMS = Path(__file__).parent / "pairs"
SHARED = ("parts", "models", "layers", "heavy", "feeding", "blocks")
LARGEST, MANY = 32, 8
"""On the CPU every size is at most the one, or the other where a program has more than three."""


@dataclass(frozen=True)
class Named:
    """A finding that a fix answers."""

    rule: str
    """A code or the beginning of one."""
    expression: str
    """A part of the expression at its site; empty for a finding anywhere."""
    function: str = ""
    """Where it is in a library, the function."""

    def fits(self, finding: Finding) -> bool:
        expression = (finding.site.expression if finding.site else None) or ""
        return (
            finding.rule.startswith(self.rule)
            and self.expression in expression
            and (not self.function or (finding.at is not None and finding.at.function == self.function))
        )


@dataclass(frozen=True)
class Pair:
    """One program at one size."""

    program: str
    size: str
    sizes: tuple[int, ...]
    """What ``before`` and ``after`` are called with."""
    question: str
    kind: str
    """``wait`` where the fix removes waits, ``transform`` where it changes what is done."""
    findings: tuple[Named, ...]
    ranks: int = 1
    """Processes that run it, each with a GPU."""
    held_out: bool = False
    """Written, and predicted, before the replay had been changed with its recordings in view."""
    fresh: bool = False
    """Written, recorded and predicted after the model of the power limit and of loaders was set (2026-11-22)."""
    compiled: bool = False
    """Its fix changes what ``torch.compile`` makes of it."""
    newest: bool = False
    """Written after the constants of 2026-11-22 were set, with the recordings of all others in view."""
    contact: int = 0
    """When it was first timed or recorded, after the constants had been set: on 2026-11-23, 1 from 04:26 (after those
    of 01:18), 2 from 05:44 and 3 from 07:15 (after those of 05:14), 4 from 14:16 (after those of 07:50), 5 from 23:25
    (after those of 22:40); 6 after those of 2026-11-25, 23:19; 7 after those of 2026-11-26, 12:23; 8 those
    written on 2026-11-26 from 23:50; 9 those written on 2026-11-28 from 08:04. 0 for those before."""
    patched: bool = False
    """A program of a public repository with a patch, timed whole in fresh processes."""
    backwards: float = 1.0
    """Backwards of a step, where one of them is what was timed."""
    asked: str = ""
    """The question of the report that the fix answers, where it is no finding's."""
    settle_ms: int = 0
    """Its steps run for so long before they are timed, or recorded: until the clock is where the power limit holds it,
    or what a loader had ready is used up."""
    limited: bool = False
    """Its products are made to bring a large GPU to its power limit."""

    @property
    def name(self) -> str:
        return f"{self.program}.{self.size}"

    @property
    def script(self) -> Path:
        return PROGRAMS / f"{self.program}.py"

    @property
    def sizes_on_cpu(self) -> tuple[int, ...]:
        most = LARGEST if len(self.sizes) <= 3 else MANY
        return tuple(min(size, most) for size in self.sizes)

    def load(self) -> ModuleType:
        """The program as a module; needs PyTorch and what else it imports."""
        with mock.patch.object(sys, "path", [str(PROGRAMS), *sys.path]):
            return importlib.import_module(self.program)

    def answers(self, finding: Finding) -> bool:
        """Whether the fix answers a finding."""
        return any(named.fits(finding) for named in self.findings)


FOURTH = frozenset({
    "bf16_next_labels.light", "bf16_perplexity.light", "bf16_timed_parts.light", "bf16_weight_norms.many",
    "gradients_checked.deep", "graph_convnet.wide", "graph_denoise.long", "graph_waves.deep", "hits_each_step.medium",
    "layer_means.deep", "layers_timed.medium", "loader_spectra.close",
})  # fmt: skip
"""Sizes that were timed and recorded only on 2026-11-23 from 14:16, when the model had seen another size of each."""


def pairs() -> list[Pair]:
    """All of them, by name."""
    every: list[Pair] = []
    for script in sorted(PROGRAMS.glob("*.py")):
        if script.stem not in SHARED:
            constants = _constants(script)
            fix, named = constants["FIX"], tuple(Named(*entry) for entry in constants["FIX"]["findings"])
            every += [
                Pair(
                    script.stem, size, sizes, fix["question"], fix["kind"], named,
                    fix.get("ranks", 1), fix.get("held_out", False), fix.get("fresh", False),
                    compiled=fix.get("compiled", False), asked=fix.get("asked", ""), settle_ms=fix.get("settle_ms", 0),
                    limited=fix.get("limited", False),
                    newest=fix.get("newest", False),
                    contact=4 if f"{script.stem}.{size}" in FOURTH else fix.get("contact", 0),
                )
                for size, sizes in constants["SIZES"].items()
            ]  # fmt: skip
    return every


def different_on_cpu(every: Iterable[Pair]) -> list[Pair]:
    """The pairs without those that on the CPU are another over again."""
    return list({(pair.program, pair.sizes_on_cpu): pair for pair in every}.values())


def _constants(script: Path) -> dict[str, Any]:
    """The literals that a program assigns at its top."""
    constants = {}
    for statement in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name in ("SIZES", "FIX"):
                constants[name] = ast.literal_eval(statement.value)
    return constants
