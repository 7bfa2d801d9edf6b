"""What is written and read: findings, reports, verdicts, and the collector's part of a trace file.

Modules whose structs are many do without ``from __future__ import annotations``: msgspec evaluates each annotation that
is a text, and those of a recording took 3 ms of the 250 in which a small trace is analysed.
"""
