"""Filters of warnings that come before all others, whatever the program does to its own."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from syncscope.collect.patching import Patches
from syncscope.collect.sites.threads import current_frames

FEWEST_LISTS = 64

MUTATED = "_filters_mutated_lock_held" if hasattr(warnings, "_filters_mutated_lock_held") else "_filters_mutated"
"""What Python calls after each change of the filters."""


def current_filters() -> Any:
    """The list of filters that holds here. From Python 3.14 on a ``catch_warnings`` block may have one of its own, for
    its context alone (``sys.flags.context_aware_warnings``)."""
    get_filters = getattr(warnings, "_get_filters", None)
    return warnings.filters if get_filters is None else get_filters()


class FirstFilter:
    """Puts filters first, keeps them first, and takes them out again without a trace.

    They are put first again after every change of the filters: all changes end in ``warnings._filters_mutated``, since
    Python 3.14 in ``_filters_mutated_lock_held``.
    """

    def __init__(self, *entries: Any) -> None:
        self._entries = entries
        self._lists: dict[int, list[Any]] = {}
        """Those that ours were put into, by ``id``."""
        self._most_lists = FEWEST_LISTS
        """With so many, those that nobody else holds any more are dropped."""
        self._patches = Patches()
        self._quiet: dict[int, dict[int, threading.Thread | None]] = {}
        """Threads whose changes of the filters are put back soon, each with all that there were when it began. A new
        thread may have the number of one that has ended, so it is told by its object, where Python has one."""

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Python is not told of changes by this thread and those that it starts: it would show again what it shows only
        once."""
        thread = threading.get_ident()
        if thread in self._quiet:
            yield
            return
        listed = {one.ident: one for one in threading.enumerate()}
        self._quiet[thread] = {number: listed.get(number) for number in current_frames()}
        try:
            yield
        finally:
            del self._quiet[thread]

    def _is_quiet(self) -> bool:
        if not self._quiet:
            return False
        thread = threading.get_ident()
        listed = next((one for one in threading.enumerate() if one.ident == thread), None)
        return any(
            thread == one or thread not in before or before[thread] is not listed
            for one, before in tuple(self._quiet.items())
        )

    def open(self, on_warning: Callable[[Callable[[Any], None], Any], None]) -> None:
        """Call ``on_warning(show, message)`` for each warning. ``show(message)`` shows it as Python would have."""

        def make_show(show: Callable[[Any], None]) -> Callable[[Any], None]:
            return functools.partial(on_warning, show)

        def make_mutated(mutated: Callable[[], None]) -> Callable[[], None]:
            def filters_mutated() -> None:
                self._put_first()
                if not self._is_quiet():
                    mutated()

            return filters_mutated

        self._patches.replace(warnings, "_showwarnmsg", make_show)
        self._patches.replace(warnings, MUTATED, make_mutated)
        warnings._filters_mutated()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Put everything back, also in the lists that ``catch_warnings`` blocks still hold."""
        self._patches.restore()
        for filters in (*self._lists.values(), current_filters(), warnings.filters):
            self._take_out(filters)
        self._lists.clear()
        warnings._filters_mutated()  # type: ignore[attr-defined]

    def _put_first(self) -> None:
        filters = current_filters()
        if all(entry is ours for entry, ours in itertools.zip_longest(filters[: len(self._entries)], self._entries)):
            return
        self._take_out(filters)
        filters[:0] = self._entries
        if id(filters) not in self._lists:
            self._lists[id(filters)] = filters
            if len(self._lists) >= self._most_lists:
                self._drop_ended()

    def _take_out(self, filters: Any) -> None:
        filters[:] = [entry for entry in filters if not any(entry is ours for ours in self._entries)]

    def _drop_ended(self) -> None:
        """Drop the lists of ``catch_warnings`` blocks that have ended. Triton's compiler enters one for each node of a
        kernel's syntax tree: a hundred thousand."""
        kept = list(self._lists.values())
        self._lists.clear()
        for held, filters in zip(_references(kept), kept, strict=True):
            if held > ALONE:
                self._lists[id(filters)] = filters
        self._most_lists = max(FEWEST_LISTS, 2 * len(self._lists))


def _references(lists: Sequence[list[Any]]) -> list[int]:
    """How many references there are to each of the lists."""
    return [sys.getrefcount(one) for one in lists]


ALONE = _references([[]])[0]
"""References to a list that nobody else holds."""
