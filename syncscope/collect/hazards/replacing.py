"""Methods replaced for a while, and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING: Any = object()


class Replaced:
    """Puts wrappers in the place of attributes; ``restore`` puts back what was there."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace ``owner.name`` by ``make(original)``; an inherited one is shadowed, an absent one left alone."""
        original = getattr(owner, name, None)
        if original is not None:
            self._originals.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, make(original))

    def restore(self) -> None:
        while self._originals:
            owner, name, original = self._originals.pop()
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
