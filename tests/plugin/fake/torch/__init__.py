"""As much of PyTorch with a GPU as counting waits needs: a sync debug mode, entry points to wrap, and a tensor whose
``item`` warns as PyTorch's own does, with no Python frame between it and the line that calls."""

import ctypes
import functools
import os
from types import SimpleNamespace

MODE = [0]


class Tensor:
    is_cuda = True
    is_cpu = False
    item = staticmethod(
        functools.partial(
            ctypes.pythonapi.PyErr_WarnEx,
            ctypes.py_object(UserWarning),
            b"called a synchronizing CUDA operation (Triggered internally)",
            1,
        )
    )

    def to(self, *args):
        return self

    cuda = copy_ = to


class Parameter(Tensor):
    pass


class Operator:
    def __call__(self):
        pass


class Event:
    def synchronize(self):
        pass


_C = SimpleNamespace(
    _cuda_get_sync_debug_mode=lambda: MODE[0],
    _cuda_set_sync_debug_mode=lambda mode: MODE.__setitem__(0, mode),
    _cuda_synchronize=lambda: None,
    ScriptFunction=type("ScriptFunction", (Operator,), {}),
    ScriptMethod=type("ScriptMethod", (Operator,), {}),
)
_ops = SimpleNamespace(
    OpOverload=type("OpOverload", (Operator,), {}), OpOverloadPacket=type("OpOverloadPacket", (Operator,), {})
)
_library = SimpleNamespace()
compiler = SimpleNamespace(is_compiling=lambda: False)
library = SimpleNamespace(_impls=())
cuda = SimpleNamespace(
    is_available=lambda: "FAKE_NO_GPU" not in os.environ,
    init=lambda: None,
    synchronize=lambda: _C._cuda_synchronize(),
    Event=Event,
    Stream=type("Stream", (Event,), {}),
)
nn = SimpleNamespace(Parameter=Parameter)
linalg = _VF = SimpleNamespace()
autograd = SimpleNamespace(_engine_run_backward=lambda: None)
distributed = SimpleNamespace(ProcessGroup=type("ProcessGroup", (), {}))
