"""The environment variables by which the processes of one run know each other. Loaded in every Python of a run."""

VARIABLE = "SYNCSCOPE_PROFILE"
"""Says what to record: a ``children.request.Request`` as JSON."""

GUARD = "SYNCSCOPE_GUARD"
"""Arms a guard in every process: see ``live.armed``."""

GUARD_FOLDER = "SYNCSCOPE_GUARD_FOLDER"
"""Where they write what it saw, for the first of them to report. That one makes it, and sets the variable."""
