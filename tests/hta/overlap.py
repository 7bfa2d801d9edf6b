"""Our overlap beside HTA's: ``python -m tests.hta.overlap OUT.json TRACE…`` in a process with HTA, times unrounded."""

from __future__ import annotations

import json
import logging
import sys
import warnings

import syncscope
from syncscope.timeline import Timeline
from syncscope.timeline.overlap import overlap


def figures(path: str) -> tuple[dict[str, float], dict[str, float]]:
    """Ours and HTA's, in ms, of everything that the device of a trace ran."""
    trace = syncscope.load(path)
    device = trace.device
    assert device["device"].nunique() == 1, path
    ours = overlap(Timeline(trace).activities, (int(device["ts"].min()), int(device["end"].max())), {}, 0)
    hta = syncscope.to_hta(trace, include_last_profiler_step=True)
    rank = next(iter(hta.t.traces))
    # The last step kept, what it leaves out are rows that no recorded call launched.
    assert (hta.t.traces[rank]["stream"] >= 0).sum() == len(device) + (trace.sync["stream"] >= 0).sum(), path
    spent = hta.get_temporal_breakdown(visualize=False).iloc[0]
    found = {"compute": spent["compute_time(us)"] / 1e3}
    mine = {"compute": ours.compute_ms}
    if not (trace.sync["stream"] >= 0).any():  # HTA counts waits of a stream as busy time
        mine |= {"busy": ours.device_busy_ms, "idle": ours.idle_ms}
        found |= {
            "busy": (spent["kernel_time(us)"] - spent["idle_time(us)"]) / 1e3,
            "idle": spent["idle_time(us)"] / 1e3,
        }
    if ours.comm_ms:
        mine["overlap"] = 100 * (1 - ours.comm_exposed_ms / ours.comm_ms)
        found["overlap"] = hta.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    return mine, found


def main(out: str, *paths: str) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with open(out, "w", encoding="utf-8") as file:
        json.dump({path: figures(path) for path in paths}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
