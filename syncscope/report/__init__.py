"""Renderers, each named after its output. ``*_phrases.py`` and ``numbers.py`` hold what several outputs write alike."""
