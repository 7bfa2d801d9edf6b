"""The environment variable by which the processes of one run know each other. Loaded in every Python of a run."""

VARIABLE = "SYNCSCOPE_PROFILE"
"""Says what to record: a ``children.request.Request`` as JSON."""
