"""Does what the wheel's ``.pth`` file does, where syncscope runs from its sources. Python imports it when it starts.

``announce`` puts this folder first on ``PYTHONPATH``. The program's own ``sitecustomize`` is imported in its place.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _here]
if "SYNCSCOPE_PROFILE" in os.environ or "SYNCSCOPE_GUARD" in os.environ:
    _root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(_here))))
    sys.path.insert(0, _root)
    try:
        import syncscope.collect.children.startup

        syncscope.collect.children.startup.arm()
    except Exception:  # another Python
        pass
    if sys.path[:1] == [_root]:
        del sys.path[0]
del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401  # the program's: else the error is expected
