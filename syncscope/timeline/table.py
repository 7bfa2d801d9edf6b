"""What all tables of the timeline have in common: equally long columns, of which a part can be taken."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.row_groups import number_texts
from syncscope.trace.columns import Columns
from syncscope.trace.rows import Rows

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self

Objects: TypeAlias = npt.NDArray[np.object_]
"""Texts, or tuples of texts."""


class Table(Columns):
    """Columns of one length."""

    row: Ints

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ints | Bools | list[int]) -> Self:
        """Some rows: those with these numbers, in that order, or those for which a mask is true. Each column of them is
        made when it is first asked for: most are not, and those of texts take long."""
        wanted = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=np.int64)
        part = object.__new__(type(self))
        part.__dict__["_part_of"] = self, np.flatnonzero(wanted) if wanted.dtype == bool else wanted
        return part

    if not TYPE_CHECKING:  # which would take any name for a column

        def __getattr__(self, name: str) -> Any:
            if name not in self.columns or "_part_of" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__} has no column {name}")
            whole, rows = self.__dict__["_part_of"]
            column = self.__dict__[name] = getattr(whole, name)[rows]
            return column

    def numbered(self) -> Self:
        """The same rows as a whole table of their own: ``row`` counts from 0."""
        return self.replace(row=np.arange(len(self), dtype=np.int64))

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """The rows of a table of the trace that has a column for each field."""
        names = [name for name in cls.columns if name != "row"]
        arrays: dict[str, Any] = {
            name: rows.texts[name].objects() if name in rows.texts else rows.numbers[name] for name in names
        }
        return cls(row=np.arange(len(rows), dtype=np.int64), **arrays)

    def to_pandas(self) -> pd.DataFrame:
        """A frame with a column for each field, except fields with two dimensions."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in self.columns}
        return pd.DataFrame({name: column for name, column in columns.items() if column.ndim == 1})


class TimedTable(Table):
    """Rows that last from ``ts`` to ``end``: device work on the device, calls and waits in the call itself."""

    ts: Ints
    end: Ints

    @property
    def dur(self) -> Ints:
        return self.end - self.ts


class NamedTable(TimedTable):
    """Rows with a thread and a name, of which there are few."""

    tid: Ints
    name: Objects

    def named(self, test: Callable[[str], object]) -> Bools:
        """Which rows (n,) have a name that passes a test. Each name is tested once."""
        number, names = self._names
        found: Bools = np.array([bool(test(name)) for name in names], dtype=bool)[number]
        return found

    def names(self) -> list[str]:
        """The different names of the rows."""
        number, names = self._names
        return [names[one] for one in np.flatnonzero(np.bincount(number, minlength=len(names))).tolist()]

    @classmethod
    def of(cls, rows: Rows) -> Self:
        table = super().of(rows)
        names = rows.texts["name"]
        table.__dict__["_names"] = names.codes, list(names.names)  # known, so it need not be found
        return table

    @cached_property
    def _names(self) -> tuple[npt.NDArray[np.integer], list[str]]:
        """Each row's name as a number (n,), and the names by number."""
        return number_texts(self.name)
