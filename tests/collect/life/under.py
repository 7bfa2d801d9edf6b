"""``python under.py HOW PROGRAM``: a program inside a guard that lets everything pass, inside what ``max_syncs`` counts
with, or inside nothing."""

import contextlib
import runpy
import sys
from pathlib import Path

how, program = sys.argv[1:]
sys.argv = [program]
sys.path.insert(0, str(Path(program).parent))


def block():
    if how == "guard":
        import syncscope
        from syncscope.collect.live.guard import ALL

        return syncscope.guard("raise", allow=ALL)
    if how == "max_syncs":
        from syncscope.collect.live.record import record
        from syncscope.collect.paths import Paths

        return record(Paths(Path.cwd()))
    return contextlib.nullcontext()


with block():
    runpy.run_path(program, run_name="__main__")
