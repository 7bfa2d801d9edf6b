"""Libraries that come with an extra of this package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

LIBRARIES = {
    "arrow": ("pyarrow",),
    "cache": ("platformdirs",),
    "cluster": ("distributed",),
    "hta": ("hta.trace_analysis",),
    "remote": ("fsspec",),
}
"""What must be importable, by extra."""

KNOWN_AS = {"distributed": "dask.distributed", "hta": "HTA"}
"""What people call a library, where it is not the name that is imported."""


class MissingExtra(ImportError):
    """A library of an extra cannot be imported; ``str()`` is one line that says what to install."""


def require(extra: str, *, load: bool = True) -> None:
    """Import the libraries of an extra, or only look whether they are there. Raises :class:`MissingExtra`."""
    for library in LIBRARIES[extra]:
        try:
            if load:
                import_module(library)
            elif find_spec(library) is None:
                raise ModuleNotFoundError(name=library)
        except ImportError as error:
            raise MissingExtra(f"{_problem(extra, error)}: pip install 'syncscope[{extra}]'") from None


def _problem(extra: str, error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        library = error.name.partition(".")[0]
        return f"{KNOWN_AS.get(library, library)} is not installed"
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"the extra {extra} cannot be used ({reason})"
