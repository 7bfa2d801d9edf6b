"""The rows of a table as numpy arrays. pandas has more, and its import takes longer than to analyse a small trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Ints = NDArray[np.int64]


class Texts(msgspec.Struct, frozen=True):
    """A column of texts, each kept once: row ``i`` is ``names[codes[i]]``."""

    codes: NDArray[np.integer]
    """In as few bytes as hold them (n,)."""
    names: Sequence[str]
    """Each once; no row need have it."""

    @classmethod
    def of(cls, codes: NDArray[np.integer], names: Sequence[str]) -> Texts:
        """Rows of ``names`` by number; ``names`` may repeat."""
        unique = list(dict.fromkeys(names))
        if len(unique) < len(names):
            place = {name: number for number, name in enumerate(unique)}
            codes = np.array([place[name] for name in names], dtype=np.int64)[codes]
        return cls(codes.astype(np.min_scalar_type(-max(len(unique), 1))), unique)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Any) -> Texts:
        """Some rows, by number or by a mask."""
        return Texts(self.codes[rows], self.names)

    def objects(self) -> NDArray[np.object_]:
        """The texts as an array (n,); equal ones are one object."""
        return np.array(self.names, dtype=object)[self.codes] if len(self.codes) else np.empty(0, dtype=object)

    def are(self, wanted: Sequence[bool]) -> NDArray[np.bool_]:
        """Which rows (n,) have one of the ``names`` that are ``wanted`` (one for each name)."""
        return np.array(wanted, dtype=bool)[self.codes] if len(self.codes) else np.zeros(0, dtype=bool)


class Rows(msgspec.Struct, frozen=True):
    """The rows of a table of :mod:`.model`, which says what each column holds. All columns have one length."""

    numbers: dict[str, Ints]
    texts: dict[str, Texts]

    def __len__(self) -> int:
        return len(self.numbers["ts"])

    def __getitem__(self, name: str) -> Ints:
        """A column of whole numbers (n,)."""
        return self.numbers[name]

    def take(self, rows: Any) -> Rows:
        """Some rows, by number or by a mask."""
        return Rows(
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column.take(rows) for name, column in self.texts.items()},
        )

    def to_pandas(self, columns: Sequence[str]) -> pd.DataFrame:
        """A frame with these columns, which shares their data; texts are categories."""
        import pandas as pd

        def column(name: str) -> Any:
            if name in self.numbers:
                return self.numbers[name]
            texts = self.texts[name]
            return pd.Categorical.from_codes(texts.codes, categories=pd.Index(list(texts.names), dtype="str"))

        return pd.DataFrame({name: column(name) for name in columns}, copy=False)


def most_common(values: Ints) -> int:
    """The value that most rows have, of several the one that comes first. There is at least one row."""
    known, first, counts = np.unique(values, return_index=True, return_counts=True)
    return int(known[np.lexsort((first, -counts))[0]])
