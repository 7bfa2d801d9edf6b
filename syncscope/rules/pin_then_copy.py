from __future__ import annotations

import pandas as pd

from syncscope.rules.grouping import Group
from syncscope.rules.rule import Case, Hit, Rule
from syncscope.timeline import Timeline


class PinThenCopy(Rule):
    """Host memory is pinned just to be copied to the device: `x.pin_memory().to(device)`.

    Why it costs: `pin_memory` allocates page-locked memory and copies the tensor into it on the host, in the thread
    that should be launching. For small tensors that takes longer than the plain copy would have (4 MB on an H200:
    0.55 ms against 0.35 ms); for large ones whose pinned block is reused it is quicker (128 MiB: 5.6 ms against 13.3),
    and still the host copies instead of launching, every time.

    Bad:
        x = x.pin_memory().to("cuda", non_blocking=True)     # in the training loop

    Good:
        loader = DataLoader(data, pin_memory=True)           # pinned in a thread of the loader
        staging = torch.empty(shape, pin_memory=True)        # or pinned once, filled by the loading code

    Fine:
        table = table.pin_memory()                           # once, copied from many times
    """

    code = "CPY202"
    name = "pin-then-copy"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "remove the host work"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        pins = timeline.pins[(timeline.pins["copy"] >= 0).to_numpy(bool)]
        occurrences = pd.DataFrame({
            "ts": pins["ts"], "tid": pins["tid"], "step": pins["step"],
            "place": pd.Series([timeline.places[i] for i in pins["place"]], index=pins.index, dtype=object),
            "ops": pins["ops"], "call": "", "stall": pins["dur"],
            "bytes": timeline.copies["bytes"].to_numpy()[pins["copy"].to_numpy()],
            "exposed": -1, "sort": "", "wait": -1, "copy": pins["copy"], "unit": pins.index,
        })  # fmt: skip
        return self.hits(case, occurrences)

    def blind(self, timeline: Timeline) -> str | None:
        if not {"cpu_op", "sites"} & set(timeline.has):
            return "the trace holds neither PyTorch ops nor recorded calls, so pinning cannot be seen"
        return super().blind(timeline)

    def message(self, group: Group) -> str:
        return f"{group.what} pins memory in the thread that launches, only to copy it to the device at once"
