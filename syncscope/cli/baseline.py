"""``syncscope check --baseline``: read the file, hold it against the report, and write it where that was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from syncscope.policy import Baseline, BaselineCheck
    from syncscope.schema.verdict import RatchetOutcome, Verdict

LOCK = ".lock"
"""Added to the name of a baseline while a run writes it."""


def read_saved(path: Path | None, write: bool, update: bool) -> Baseline | None:
    """The baseline to hold the report against, ``None`` where there is none or it is yet to be written.

    Raises ``CommandError`` where the options contradict each other or what is there.
    """
    from syncscope.policy import read_baseline

    if path is None:
        if write or update:
            raise CommandError(f"{'--write-baseline' if write else '--update'} needs --baseline", USAGE)
        return None
    if write and update:
        raise CommandError("--write-baseline and --update exclude each other", USAGE)
    if not os.path.isdir(path.parent):
        raise CommandError(f"{path}: its folder does not exist", USAGE)
    saved = read_baseline(path)
    if saved is None and not write:
        raise CommandError(f"{path}: there is no such baseline; --write-baseline writes it", USAGE)
    if saved is not None and write:
        raise CommandError(f"{path}: exists; --update removes what is fixed, and nothing adds to it", USAGE)
    return saved


def with_baseline(
    verdict: Verdict, compared: BaselineCheck, path: Path, saved: Baseline | None, update: bool
) -> Verdict:
    """Write the baseline where it is new or to be updated, and add the result to the verdict. The file stays unchanged
    when something is worse or could not be checked, or when the recordings show less than those of the baseline."""
    import msgspec

    from syncscope.schema.verdict import Ratchet

    outcome: RatchetOutcome = "held"
    removed: tuple[str, ...] = ()
    if saved is None or (update and compared.tightened.findings != saved.findings):
        outcome = "not written"
        if not verdict.unexpected and not verdict.not_checked and not verdict.unread:
            _write(path, compared.tightened, saved)
            outcome = "written" if saved is None else "tightened"
            removed = compared.removed if saved is not None else ()
    ratchet = Ratchet(
        path=str(path), outcome=outcome, covered=compared.covered, fixed=compared.fixed, differs=compared.differs,
        removed=removed,
    )  # fmt: skip
    return msgspec.structs.replace(verdict, baseline=ratchet)


def _write(path: Path, tightened: Baseline, saved: Baseline | None) -> None:
    """Put ``tightened`` in the place of ``saved``. Raises ``CommandError`` where another run writes the file, or has
    changed it since it was read, so that neither undoes what the other did."""
    from syncscope.cli.output import write
    from syncscope.policy import read_baseline

    if path.exists() and not os.access(path, os.W_OK):
        raise CommandError(f"{path}: may not be written", USAGE)
    with _alone(path):
        if read_baseline(path) != saved:
            raise CommandError(f"{path}: was changed by another run meanwhile; run this one again", USAGE)
        write(path, [tightened.to_json().encode()])


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other runs from writing the file at ``path``, by a file beside the one that it stands for. Raises
    ``CommandError`` where one of them does."""
    target = os.path.realpath(path)
    lock = Path(target + LOCK)
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        gone = f"if none is running, delete {lock.name}"
        raise CommandError(f"{path}: is being written by another run; run this one again, or {gone}", USAGE) from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", USAGE) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
