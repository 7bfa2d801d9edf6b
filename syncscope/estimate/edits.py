"""The edits of a program that a question makes, item by item."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from syncscope.estimate.columns import FEW, OFTEN, Columns
from syncscope.estimate.dependencies import Target
from syncscope.timeline.intervals import Bools, Floats, Ints
from syncscope.timeline.row_groups import rank


class Edit(msgspec.Struct, frozen=True):
    """What a fix changes about one item. Nothing makes a step longer."""

    pre: float = 1.0
    """Share of the host's work before the call that stays; getting a batch is not part of it."""
    own: float = 1.0
    """Share of the host's work inside the call that stays."""
    free: bool = False
    """The host does not wait here."""
    joins: bool = False
    """The device waits here instead: nothing launched later begins before what the host waited for is done."""
    gone: bool = False
    """The activity does not run."""
    dur: float = np.inf
    """Nanoseconds that the activity takes, at most."""
    gap: float = np.inf
    """Nanoseconds between it and the activity before, at most."""
    early: bool = False
    """The copy has a stream of its own, and what needs it waits a step longer: to the device it starts a step earlier,
    from it, and a collective, it runs beside what follows."""
    beside: bool = False
    """The copy has a stream of its own, beside what its stream did before; what follows waits for both."""
    batch: float = np.inf
    """Nanoseconds from the batch before to this one, at most: worker processes make them at that pace."""
    pieces: tuple[Target, ...] = ()
    """The collective runs in as many equal pieces, beside its stream, each when its target is done."""

    @property
    def only_timing(self) -> bool:
        """Whether only the host's work and the gap before the activity change about a launch."""
        return not (self.gone or self.early or self.beside or self.pieces) and self.dur == self.batch == np.inf

    def combine(self, other: Edit) -> Edit:
        """Both edits of one item. The device waits only if both that take the host's wait away have it wait."""
        freeing = [edit for edit in (self, other) if edit.free]
        return Edit(
            min(self.pre, other.pre), min(self.own, other.own), bool(freeing),
            bool(freeing) and all(edit.joins for edit in freeing),
            self.gone or other.gone, min(self.dur, other.dur), min(self.gap, other.gap), self.early or other.early,
            self.beside or other.beside, min(self.batch, other.batch), self.pieces or other.pieces,
        )  # fmt: skip

    @property
    def lasts(self) -> bool:
        """Whether what it does depends on more than the present, so that its question is never only later than the
        unchanged program."""
        return bool(self.early or self.beside or self.pieces) or self.batch != np.inf


_NO_EDIT = Edit()

NO_COLUMNS = np.empty(0, dtype=np.int64)

MOST_WAYS = 10_000
"""Ways in which items are changed that are kept spread out over the columns."""

Edits = dict[int, Edit]
"""The edit of each item that something changes."""


class Question(msgspec.Struct, frozen=True, eq=False):
    """What fixing a finding changes. It changes many items in few ways."""

    items: Ints
    """Each once (n,)."""
    way: Ints
    """Of each item, its number among ``edits`` (n,)."""
    edits: tuple[Edit, ...]

    @classmethod
    def of(cls, edits: Edits | Question) -> Question:
        """The question of some edits."""
        if isinstance(edits, Question):
            return edits
        values = list(edits.values())
        objects = np.fromiter(map(id, values), np.int64, len(values))
        _, first, way = np.unique(objects, return_index=True, return_inverse=True)
        # Where objects lie differs from one time to the next, and the order in which they are first used does not.
        order, numbers = np.argsort(first), dict[Edit, int]()
        number = np.empty(len(first), dtype=np.int64)
        number[order] = [numbers.setdefault(values[place], len(numbers)) for place in first[order].tolist()]
        items = np.fromiter(edits, np.int64, len(values))
        return cls(items, number[way], tuple(numbers))

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        """Whether both change the same items in the same ways, in one order."""
        alike = isinstance(other, Question) and self.edits == other.edits
        return alike and all(map(np.array_equal, (self.items, self.way), (other.items, other.way)))  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.edits)

    def __or__(self, other: Edits | Question) -> Question:
        """Both, where that of an item of both is the ``other``'s."""
        last = Question.of(other)
        kept = ~np.isin(self.items, last.items)
        items = np.concatenate([self.items[kept], last.items])
        return Question(items, np.concatenate([self.way[kept], last.way + len(self.edits)]), self.edits + last.edits)

    def by_item(self) -> Edits:
        """The edit of each item."""
        return dict(zip(self.items.tolist(), map(self.edits.__getitem__, self.way.tolist()), strict=True))

    def are(self, wanted: Callable[[Edit], bool]) -> Bools:
        """Which items (n,) have an edit that is ``wanted``."""
        return np.array([wanted(edit) for edit in self.edits], dtype=bool)[self.way]

    def column(self, name: str) -> Floats:
        """A number of each item's edit (n,)."""
        return np.array([getattr(edit, name) for edit in self.edits], dtype=np.float64)[self.way]


NOTHING = Question.of({})
"""The question that changes nothing."""


def combine(questions: Iterable[Edits | Question]) -> Question:
    """One question with the edits of several."""
    parts = [part for part in map(Question.of, questions) if part]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    edits = [edit for part in parts for edit in part.edits]
    many, behind = len(edits), np.cumsum([0, *(len(part.edits) for part in parts)]).tolist()
    items = np.concatenate([part.items for part in parts])
    ways = np.concatenate([part.way + begin for part, begin in zip(parts, behind, strict=False)])
    order = np.argsort(items, kind="stable")
    items, ways = items[order], ways[order]
    first = np.flatnonzero(np.diff(items, prepend=-1))
    way, sizes = ways[first], np.diff(first, append=len(items))
    for number in range(1, int(sizes.max())):
        again = np.flatnonzero(sizes > number)
        both = way[again] * many + ways[first[again] + number]
        place, different = rank(both)
        pairs = np.empty(different, dtype=np.int64)
        pairs[place] = both
        way[again] = place + len(edits)
        edits += [edits[pair // many].combine(edits[pair % many]) for pair in pairs.tolist()]
    used = np.bincount(way, minlength=len(edits)) > 0
    return Question(items[first], (np.cumsum(used) - 1)[way], tuple(itertools.compress(edits, used)))


class Change:
    """An item's edits in all columns, each (columns,); ``None`` where no question makes that edit."""

    def __init__(self, edits: Sequence[tuple[int, Edit]], slots: int, scale: Floats) -> None:
        """The ``edits`` by slot. ``scale`` (columns,) is that of the host's work."""
        self._edits, self._width = edits, len(scale) // slots
        pre, own = self._numbers("pre", scale), self._numbers("own", scale)
        self.pre: Floats = scale if pre is None else pre * scale
        self.own: Floats = scale if own is None else own * scale
        """What the host's work before and inside the call is multiplied with."""
        self.free = self._marks("free", scale)
        self.gone = self._marks("gone", scale)
        self.dur = self._numbers("dur", scale)
        self.gap = self._numbers("gap", scale)
        self.early = self._marks("early", scale)
        self.batch = self._numbers("batch", scale)
        self.apart = either(self.early, self._marks("beside", scale))
        self.joins = self._marks("joins", scale)
        spread = self._marks("pieces", scale)
        self.spread_columns = NO_COLUMNS if spread is None else np.flatnonzero(spread)
        self.pieces = next((edit.pieces for _, edit in edits if edit.pieces), ())
        """The same for all that spread the item out."""

    def _numbers(self, name: str, scale: Floats) -> Floats | None:
        usual: float = getattr(_NO_EDIT, name)
        made = [(number, getattr(edit, name)) for number, edit in self._edits if getattr(edit, name) != usual]
        if not made:
            return None
        column = np.full(len(scale), usual)
        for number, value in made:
            column[number * self._width : (number + 1) * self._width] = value
        return column

    def _marks(self, name: str, scale: Floats) -> Bools | None:
        made = [number for number, edit in self._edits if getattr(edit, name)]
        if not made:
            return None
        column = np.zeros(len(scale), dtype=bool)
        for number in made:
            column[number * self._width : (number + 1) * self._width] = True
        return column


def either(one: Bools | None, other: Bools | None) -> Bools | None:
    """Where one of two edits is made."""
    return one if other is None else other if one is None else one | other


class TimingChange(msgspec.Struct, frozen=True):
    """What one question leaves of the host's work and of gaps, each (items,)."""

    items: Ints
    pre: Floats
    own: Floats
    gap: Floats


class Changes:
    """The edits of some items by all questions."""

    def __init__(self, questions: Sequence[Question], wanted: Bools) -> None:
        """``wanted`` (items,) are the items that are asked for."""
        # Most items are changed in one of a few ways: each way is spread out over the columns once.
        self._ways: dict[tuple[int, ...], Change] = {}
        self._of: dict[int, Change] = {}
        self._edits: dict[int, tuple[tuple[int, Edit], ...]] = {}
        alike: dict[Edit, Edit] = {}
        # By item, then by question; nobody asks for most items.
        self._numbered = [
            (number, alike.setdefault(edit, edit)) for number, one in enumerate(questions) for edit in one.edits
        ]
        behind = np.cumsum([0, *(len(one.edits) for one in questions)]).tolist()
        kept = [np.flatnonzero(wanted[one.items]) for one in questions]
        every = list(zip(questions, kept, behind, strict=False))
        items = np.concatenate([one.items[rows] for one, rows, _ in every])
        way = np.concatenate([one.way[rows] + begin for one, rows, begin in every])
        order = np.argsort(items, kind="stable")
        self._items, self._way = items[order].tolist(), way[order].tolist()  # asked for one by one

    def questions(self, item: int) -> list[int]:
        """The questions that change an item."""
        return [number for number, _ in self._edits_of(item)]

    def _edits_of(self, item: int) -> tuple[tuple[int, Edit], ...]:
        """The questions that change an item, each with its edit."""
        edits = self._edits.get(item)
        if edits is None:
            begin = bisect_left(self._items, item)
            end = bisect_left(self._items, item + 1, begin)
            edits = self._edits[item] = tuple(self._numbered[way] for way in self._way[begin:end])
        return edits

    def forget_columns(self) -> None:
        """Columns have changed: nothing that was spread out over them is true any more."""
        self._ways.clear()
        self._of.clear()

    def of(self, item: int, columns: Columns, scale: Floats) -> Change:
        """The edits of an item, whose questions have slots; ``scale`` (columns,) is that of the host's work."""
        change = self._of.get(item)
        if change is None:
            edits = self._edits_of(item)
            slots = columns.slot[[number for number, _ in edits]].tolist() if edits else []
            way = (*slots, *(id(edit) for _, edit in edits))  # of equal edits one object is kept
            if len(self._ways) > MOST_WAYS:
                self.forget_columns()
            if way not in self._ways:
                alike = [(slot, edit) for slot, (_, edit) in zip(slots, edits, strict=True)]
                self._ways[way] = Change(alike, columns.slots, scale)
            change = self._ways[way]
            if not (columns.sparse and edits):  # else the next time it is another slot
                self._of[item] = change
        return change


def timing_change(question: Question) -> TimingChange:
    """What a question changes of items of which it changes only the host's work and the gap."""
    kept = question.are(lambda edit: edit.only_timing)
    return TimingChange(question.items[kept], *(question.column(name)[kept] for name in ("pre", "own", "gap")))


def other_changes(question: Question) -> Ints:
    """The items of which a question changes more than the host's work and the gap."""
    return question.items[question.are(lambda edit: not edit.only_timing)]


def find_targets(questions: Iterable[Question]) -> frozenset[Target]:
    """What pieces of collectives wait for."""
    return frozenset(target for one in questions for edit in one.edits for target in edit.pieces)


def find_lasting(questions: Sequence[Question], items: int) -> list[int]:
    """The questions that have columns from begin to end: all where they are few, or where the first changes something;
    else the first, and those that change much or look back."""
    if len(questions) <= FEW or questions[0]:
        return list(range(len(questions)))
    many = [
        number
        for number, question in enumerate(questions)
        if len(question) >= OFTEN * items or any(edit.lasts for edit in question.edits)
    ]
    return [0, *many]
