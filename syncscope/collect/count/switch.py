"""Switch counting on and off in the midst of the program: PyTorch's sync debug mode, and the wrappers."""

from __future__ import annotations

import sys
from typing import Any

from syncscope.collect.count.account import Account
from syncscope.collect.count.tally import Tally
from syncscope.collect.count.wrappers import CountingWrappers
from syncscope.collect.sites.sync_debug import sync_debug_mode

MOST_OUTS = 450 if sys.version_info >= (3, 13) else sys.maxsize
"""Once wrappers were taken out so often, they stay in, except for windows. See ``sampling.FREE_OUTS``."""


class CallGate:
    """Whether the wrappers look at calls: while counting is on, but not while something is compiled."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


class Switch:
    """Lets ``tally`` see waits while ``account`` is ``on``, and books with it what switching costs.

    Switched off, the mode is the program's own. The wrappers stay in and pass calls on, until they are taken out.
    """

    def __init__(self, torch: Any, tally: Tally, account: Account) -> None:
        self._torch = torch
        self._account = account
        self._seen = tally.seen
        self._gate = CallGate()
        self._compilations = 0
        """So many are under way."""
        self._wrappers = CountingWrappers(torch, tally, self._gate, sync_debug_mode)
        self._wrappers.warnings = tally.warned
        self.wrapped = False
        """The wrappers are in."""
        self.turns = 0
        """How often counting was switched on or off."""
        self.outs = 0
        """How often the wrappers were taken out."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The entry points that this version of PyTorch lacks."""
        return tuple(self._wrappers.missing)

    def open(self) -> None:
        """Put everything in, switched on. ``close`` also undoes what of it was done before an error."""
        sync_debug_mode.listen(self._torch, self._seen)
        self._wrappers.open()
        self.wrapped = True
        self._set_on(True)

    def close(self) -> None:
        """Put everything back."""
        self.wrapped = False
        self._set_on(False)
        self._wrappers.close()
        sync_debug_mode.unlisten(self._seen)

    def forget(self) -> None:
        """In a forked child: leave its copy of the program as if we had never been there."""
        self.wrapped = False
        self._set_on(False)
        self._wrappers.close()
        sync_debug_mode.mute(self._seen)

    def turn(self, on: bool) -> None:
        """Switch counting on where it is off, or off where it is on."""
        account = self._account
        self._set_on(on)
        account.cost_ns += account.prices.switch / 2
        self.turns += 1
        self.set_mode(on)
        if on and not self.wrapped:
            self.wrapped = True
            self._wrappers.put_in()

    def compiles(self, begins: bool) -> None:
        """A compilation begins, or is over. It makes tens of thousands of calls of tensors without memory: to look at
        them in the wrappers would use up what counting may cost. Its warnings are heard."""
        self._compilations = max(self._compilations + (1 if begins else -1), 0)  # one may have begun before all this
        self._set_on(self._account.on)

    def _set_on(self, on: bool) -> None:
        self._account.on = on
        self._gate.on = on and self._compilations == 0

    def set_mode(self, on: bool) -> None:
        """Switch the mode alone."""
        (sync_debug_mode.unmute if on else sync_debug_mode.mute)(self._seen)

    def take_out(self, for_window: bool) -> None:
        """Leave nothing of ours in the way while counting is off, where passing through it would cost more than this.
        For a window that is done however often it was done before, and costs nothing that is booked."""
        account = self._account
        if self.wrapped and not account.on and (for_window or self.outs < MOST_OUTS):
            self.wrapped = False
            self.outs += 1
            account.cost_ns += account.prices.out * (not for_window)
            self._wrappers.take_out()
