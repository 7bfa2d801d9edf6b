"""Property tests try the same examples every time under ``./check``; ``./check slow`` and plain pytest try new ones.

No example has a deadline: on a busy machine any may take long, and that is no fault.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("new")
