"""Steps in the midst of which the program comes back from another phase, and those whose rest was counted by itself."""

from __future__ import annotations

from syncscope.collect.count.stays import FEWEST


class Rests:
    """Of the steps of one phase."""

    def __init__(self) -> None:
        self._ns = self._before_ns = 0
        """When the rest of a step was last counted, and that of the one before it."""
        self.begin_again()

    def begin_again(self) -> None:
        """Something else counts as a step from now on."""
        self._back_at = -FEWEST
        """The step in the midst of which the program last came back."""
        self._of = -1
        """The latest step whose rest was counted by itself."""

    def come_back(self, step: int) -> bool:
        """The program is back in the midst of ``step``. Returns whether it comes back in so many steps that such a step
        is like the others."""
        before, self._back_at = self._back_at, step
        return 0 < step - before < FEWEST

    def since_ns(self, step: int, now_ns: int) -> int:
        """How long before ``now_ns`` the rest of a step was counted by itself, other than of ``step``."""
        return now_ns - (self._before_ns if self._of == step else self._ns)

    def begin(self, step: int, now_ns: int) -> None:
        """The rest of ``step``, which is under way, is counted by itself, perhaps not for the first time."""
        if self._of != step:
            self._of, self._before_ns = step, self._ns
        self._ns = now_ns
