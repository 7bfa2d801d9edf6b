"""``syncscope`` as its users start it, with PyTorch for the CPU in the place of one that uses a GPU: windows record ops
alone, and nothing waits."""

from __future__ import annotations

from typing import Any

from syncscope.collect import counting, gpu
from syncscope.collect.profiler import KinetoWindow

gpu.gpu_count = lambda: 1
_open, _init = counting.RunCount.open, KinetoWindow.__init__


def use_cuda(count: counting.RunCount, torch: Any) -> None:
    mode = torch.sync_debug_mode = [0]  # for programs that wait nowhere else
    torch.cuda._lazy_call = lambda call, **_: call()
    torch.cuda.is_initialized = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: False
    torch._C._cuda_synchronize = torch._C._cuda_emptyCache = lambda: None
    torch._C._cuda_set_sync_debug_mode = lambda new: mode.__setitem__(0, new)
    torch._C._cuda_get_sync_debug_mode = lambda: mode[0]
    _open(count, torch)


def record_ops(window: KinetoWindow, torch: Any, *, cpu: bool, on_foreign: Any, cuda: bool = True) -> None:
    _init(window, torch, cpu=True, on_foreign=on_foreign, cuda=False)


counting.RunCount.open = use_cuda  # type: ignore[assignment, method-assign]
KinetoWindow.__init__ = record_ops  # type: ignore[assignment, method-assign]

if __name__ == "__main__":
    from syncscope.cli import main

    main()
