"""Record the processes that a recorded program starts, in the same folder.

``announce`` tells them what to record, in an environment variable. ``startup`` looks for it when Python starts, and
waits for the first use of CUDA. ``child`` records one of them. ``request`` is what they are told.
"""
