"""The fetches of a next batch, and other stretches of host time that are found by name."""

from __future__ import annotations

import re

import numpy as np

from syncscope.timeline.places import Places
from syncscope.timeline.tables import Loads, Marks

DATA_LOADING = r"DataLoader|DataPipe"
"""Names of annotations and recorded calls that fetch a batch."""


def find_marks(pattern: str, *tables: Marks) -> Marks:
    """The rows, table by table, whose name fits ``pattern``."""
    search = re.compile(pattern).search
    fits = {name: search(name) is not None for name in {name for table in tables for name in table.name}}
    fitting = [table.take(np.array([fits[name] for name in table.name], dtype=bool)) for table in tables]
    columns = {
        column: np.concatenate([getattr(table, column) for table in fitting]) for column in ("ts", "end", "tid", "name")
    }
    return Marks(row=np.arange(len(columns["ts"]), dtype=np.int64), **columns)


def find_loads(places: Places, annotations: Marks) -> Loads:
    """The fetches of a next batch, recorded calls before annotations."""
    marks = find_marks(DATA_LOADING, places.calls, annotations)
    place = places.around(marks.ts, marks.end, marks.tid)
    return Loads(row=marks.row, ts=marks.ts, end=marks.end, tid=marks.tid, name=marks.name, place=place)
