"""What keeps a command's start short: the libraries that it uses are imported without what it does not use of them."""

from __future__ import annotations

import os
import sys
from types import ModuleType

UNUSED_BY_HELP = {"rich.markdown": "Markdown", "rich.traceback": "Traceback", "fractions": "Fraction"}
"""What typer's writer of help imports for markdown, for tracebacks and, in rich's tables, for layouts, which we have it
write none of. With them it also imports pygments, markdown-it and decimal numbers; that is most of the time of its
import."""


def import_help_writer() -> None:
    """Import typer's writer of help with empty classes in place of those of :data:`UNUSED_BY_HELP`."""
    if "typer.rich_utils" in sys.modules:
        return
    stand_ins = {name: ModuleType(name) for name in UNUSED_BY_HELP if name not in sys.modules}
    for name, module in stand_ins.items():
        setattr(module, UNUSED_BY_HELP[name], type(UNUSED_BY_HELP[name], (), {}))
    sys.modules.update(stand_ins)
    try:
        import typer.rich_utils  # noqa: F401
    except ImportError:  # another typer uses more of them, and imports them when it writes
        pass
    finally:
        for name in stand_ins:
            del sys.modules[name]


def prepare_numpy() -> None:
    """What numpy is to do without, unless the environment says otherwise. For commands that run no program but ours.

    OpenBLAS starts no thread for each processor: their start takes longer than all else of numpy's, and nothing here
    multiplies matrices. Large arrays get no huge pages: most live for a moment, and where memory is in pieces, as on a
    virtual machine that has run for a while, finding and clearing them made the tables of 1 GB take 0.65 s, not 0.35.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
