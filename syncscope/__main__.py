"""``syncscope``, and ``python -m syncscope``."""

from __future__ import annotations

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit. Ctrl-C ends it with status 130 and no traceback, while it imports, too."""
    import signal

    from syncscope.garbage import collect_rarely
    from syncscope.interrupts import heed, interrupt

    try:
        heed()
        with collect_rarely():
            from syncscope.cli import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, interrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is left of the process ends at once, and silently


if __name__ == "__main__":
    main()
