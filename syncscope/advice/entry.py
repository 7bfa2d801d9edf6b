"""One piece of advice, and the choice of the one that fits."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

import msgspec


class Example(msgspec.Struct, frozen=True):
    """A change of code: two pieces of Python, in general and not the reader's own lines."""

    before: str
    after: str


class Advice(msgspec.Struct, frozen=True):
    """What to write instead, and when that is the answer."""

    when: str
    """Words that all occur, in this order, among the names known of a wait or copy (``RankRule.names``); ``|``
    separates alternatives of one word. ``""`` fits everything."""
    sentence: str
    """``{op}`` stands for the outermost op."""
    before: str = ""
    """Code that waits; ``""`` where the rule's own Bad and Good say it."""
    after: str = ""
    certain: frozenset[str] = frozenset()
    """The functions in whose calls ``argument`` is right whatever the program does."""
    argument: str = ""
    """What the change adds to a call, where that is all of it: then the reader's own call can show it."""
    asks_for_more: bool = False
    """Whether it only asks to record or to sample more (``Finding.asks_for_more``)."""
    by_design: bool = False
    """Whether nothing but another algorithm leaves the wait out (``Finding.by_design``)."""

    @property
    def example(self) -> Example | None:
        """The change of code, ``None`` without one."""
        return Example(inspect.cleandoc(self.before), inspect.cleandoc(self.after)) if self.before else None

    def gave(self, sentence: str) -> bool:
        """Whether a finding's fix is this entry's sentence, of whatever op."""
        head, op, tail = self.sentence.partition("{op}")
        return sentence.startswith(head) and sentence.endswith(tail) if op else sentence == head

    def fits(self, names: Sequence[str]) -> bool:
        """Whether every word occurs among ``names``, each after the one before it."""
        rest = iter(names)
        # The iterator goes on where the last word was found, so each word is searched for after the one before it.
        return all(any(name in word.split("|") for name in rest) for word in self.when.split())


Section = tuple[Advice, ...]


def choose(advice: Iterable[Advice], names: Sequence[str]) -> Advice | None:
    """The first entry that fits ``names``, ``None`` where none does."""
    return next((entry for entry in advice if entry.fits(names)), None)
