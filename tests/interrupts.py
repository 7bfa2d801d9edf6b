"""Programs that tests interrupt."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """Runs in a child before its program. Jobs that a script's shell runs in the background ignore SIGINT, and so does
    what they start; Python then raises no KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
