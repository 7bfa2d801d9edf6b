"""Steps timed without a profiler.

``window`` times them, ``moments`` stamps what the host does in them, ``steps`` tells which of them are something else
and how well their median is known, ``loader`` knows the DataLoader that feeds them.
"""
