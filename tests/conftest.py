"""Property tests try the same examples every time under ``./check``; ``./check slow`` and plain pytest try new ones."""

from hypothesis import settings

settings.register_profile("same", derandomize=True)
