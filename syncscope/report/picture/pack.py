"""Pack columns of whole numbers into few bytes, for a page that holds a million of them.

A column is zigzagged (so that small negative numbers are small), cut into planes of equal significance (all lowest
bytes first), of which only those in use are kept, and compressed in the zlib format: what a browser reads back without
a library. ``unpacked`` is the inverse, and what the page's ``unpack.js`` does.
"""

from __future__ import annotations

import numpy as np
from isal import isal_zlib

from syncscope.report.picture.lanes import Column
from syncscope.timeline.intervals import Ints

LEVEL = 3
"""Of isal's compression: the best it has, and as fast as writing."""


def packed(values: Ints, steps: bool = False) -> Column:
    """``values`` (n,). ``steps`` is for columns that grow slowly. A browser rounds what lies beyond 2**53."""
    numbers = np.diff(values, prepend=0) if steps else values.astype(np.int64)
    zigzag = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    planes = (int(zigzag.max(initial=0)).bit_length() + 7) // 8
    cut = np.ascontiguousarray(zigzag.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :planes].T)
    return Column(count=len(values), planes=planes, steps=steps, data=isal_zlib.compress(cut.tobytes(), LEVEL))


def unpacked(column: Column) -> Ints:
    """The numbers (n,) of a column."""
    cut = np.frombuffer(isal_zlib.decompress(column.data), np.uint8).reshape(column.planes, column.count)
    whole = np.zeros((column.count, 8), np.uint8)
    whole[:, : column.planes] = cut.T
    zigzag = whole.view("<u8").reshape(-1)
    numbers: Ints = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)
    return np.cumsum(numbers) if column.steps else numbers
