"""As much of PyTorch with a GPU as recording a program needs, in pure Python: it loads in milliseconds.

The programs of ``tests/collect/life`` train with it where there is no GPU. Its profiler writes a trace of one launch.
"""

import collections
import contextlib
import ctypes
import functools
import json
import os
import pickle
import sys
import threading
import time
from _thread import start_new_thread
from types import ModuleType, SimpleNamespace

__version__ = "2.11.0"
MODE = [0]
QUEUED = []
USERS = []
"""Processes that use CUDA: this one, and the parents of it that forked it after they did."""


def _module(name, **names):
    module = ModuleType(f"torch.{name}")
    vars(module).update(names)
    sys.modules[module.__name__] = module
    return module


LOCK = threading.Lock()
"""Held while CUDA is being initialised, and by ``_lazy_call``: calling that then hangs."""


def _lazy_call(queued):
    with LOCK:
        if USERS:
            queued()
        else:
            QUEUED.append(queued)


def _initialise_cuda():
    if USERS and USERS[0] != os.getpid():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")
    if USERS or hasattr(cuda._tls, "is_initializing"):
        return
    with LOCK:
        cuda._tls.is_initializing = True
        try:
            for queued in QUEUED:
                queued()
        finally:
            del cuda._tls.is_initializing
        USERS.append(os.getpid())
        start_new_thread(time.sleep, (1e6,))  # the driver has threads, which Python sees when it forks


class Tensor:
    is_cuda = True

    def to(self, *args, **kwargs):
        return self

    cuda = cpu = copy_ = pin_memory = coalesce = sum = to

    def item(self):
        return 1.0

    @property
    def tolist(self):
        """Waits. PyTorch warns of it from C, with the frame that called."""
        import functools
        import warnings

        return functools.partial(warnings.warn, "called a synchronizing CUDA operation") if MODE[0] == 1 else list

    @property
    def measure(self):
        """Waits in an op that its name does not tell."""
        import functools
        import warnings

        begin = time.time_ns()
        OPS.append(("aten::nonzero", begin, time.time_ns(), threading.get_native_id()))
        return functools.partial(warnings.warn, "called a synchronizing CUDA operation") if MODE[0] == 1 else list

    def backward(self):
        pass


OPS = collections.deque(maxlen=100)
"""The last ops, as a profiler sees them: name, begin and end in ns, thread."""


class Parameter(Tensor):
    pass


class OutOfMemoryError(RuntimeError):
    pass


def randn(*shape, device=None):
    if device == "cuda":
        _initialise_cuda()
    return Tensor()


def empty(size, device=None, dtype=None):
    if size > 1 << 40:
        raise OutOfMemoryError("CUDA out of memory.")
    return Tensor()


class Module:
    training = True
    _compiled_call_impl = None

    def __init__(self, *sizes):
        pass

    def _wrapped_call_impl(self, *args):
        return self._call_impl(*args)

    def _call_impl(self, *args):
        return self.forward(*args)

    __call__ = _wrapped_call_impl

    def forward(self, x):
        return x

    def cuda(self):
        _initialise_cuda()
        return self

    def parameters(self):
        return [Parameter()]


class Linear(Module):
    pass


def save(obj, f):
    with contextlib.nullcontext(f) if hasattr(f, "write") else open(f, "wb") as file:
        pickle.dump(obj, file)


PRE_HOOKS = {}
HOOKS = {}


class Optimizer:
    """The first of a class wraps its ``step``, which calls the hooks from then on."""

    def __init__(self, parameters, lr):
        kind = type(self)
        if not hasattr(kind.step, "hooked"):
            kind.step = self.profile_hook_step(kind.step)
            kind.step.hooked = True

    @staticmethod
    def profile_hook_step(step):
        @functools.wraps(step)
        def wrapper(self, *args, **kwargs):
            for hook in tuple(PRE_HOOKS.values()):
                hook(self, args, kwargs)
            out = step(self, *args, **kwargs)
            for hook in tuple(HOOKS.values()):
                hook(self, args, kwargs)
            return out

        return wrapper

    def zero_grad(self):
        pass


class SGD(Optimizer):
    def step(self):
        pass


def register_optimizer_step_post_hook(hook):
    HOOKS[id(hook)] = hook
    return SimpleNamespace(remove=lambda: HOOKS.pop(id(hook), None))


def register_optimizer_step_pre_hook(hook):
    PRE_HOOKS[id(hook)] = hook
    return SimpleNamespace(remove=lambda: PRE_HOOKS.pop(id(hook), None))


class GradScaler:
    def step(self, optimizer):
        optimizer.step()


class Operator:
    def __call__(self):
        pass


class Event:
    def synchronize(self):
        pass


class DataLoaderIterator:
    def __init__(self, batches):
        self.batches = iter(batches)

    def __next__(self):
        return next(self.batches)


class DataLoader:
    def __init__(self, batches=()):
        self.batches = batches

    def __iter__(self):
        return DataLoaderIterator(self.batches)


ProfilerActivity = SimpleNamespace(CPU=0, CUDA=1)


class Cupti:
    """Attached by a profile. What is forked meanwhile waits when C ends it, for threads that only its parent has."""

    attached = False

    @classmethod
    def follow(cls):
        if cls.attached:
            library = ctypes.CDLL(None)
            getattr(library, "__cxa_atexit")(ctypes.cast(library.pause, ctypes.c_void_p), None, None)


os.register_at_fork(after_in_child=Cupti.follow)


class Profile:
    """Writes a trace of one launch in the middle of what it recorded."""

    def __init__(self, activities=None, experimental_config=None):
        self.begin = self.end = 0
        self.cpu = ProfilerActivity.CPU in (activities or ())
        self.cuda = ProfilerActivity.CUDA in (activities or ())

    def prepare_trace(self):
        Cupti.attached = Cupti.attached or self.cuda
        autograd.profiler._prepare_profiler()

    def start_trace(self):
        autograd.profiler._enable_profiler()
        self.begin = time.time_ns()

    def stop_trace(self):
        cuda.synchronize()
        self.end = time.time_ns()
        Cupti.attached = Cupti.attached and os.environ.get("TEARDOWN_CUPTI") != "1"

    def __enter__(self):
        self.prepare_trace()
        self.start_trace()
        return self

    def __exit__(self, *error):
        self.stop_trace()

    def events(self):
        return ["launch"]

    def export_chrome_trace(self, path):
        middle = (self.end - self.begin) / 2000
        args = {"correlation": 1, "device": 0, "stream": 7}
        common = {"ph": "X", "pid": 0, "dur": 1, "args": args}
        events = [
            {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": middle},
            {**common, "cat": "kernel", "name": "gemm", "tid": 7, "ts": middle + 2},
        ]
        if not self.cuda:
            events = []
        if self.cpu:
            events += [
                {"ph": "X", "cat": "cpu_op", "name": name, "pid": 0, "tid": tid, "ts": (begin - self.begin) / 1000,
                 "dur": (end - begin) / 1000}
                for name, begin, end, tid in OPS
                if self.begin <= begin and end <= self.end
            ]  # fmt: skip
        document = {"schemaVersion": 1, "baseTimeNanoseconds": self.begin, "traceEvents": events}
        with open(path, "w") as file:
            json.dump(document, file)


_C = _module(
    "_C",
    _autograd=SimpleNamespace(_profiler_enabled=lambda: False),
    _cuda_get_sync_debug_mode=lambda: MODE[0],
    _cuda_set_sync_debug_mode=lambda mode: MODE.__setitem__(0, mode),
    _cuda_synchronize=lambda: None,
    _cuda_emptyCache=lambda: None,
    ScriptFunction=type("ScriptFunction", (Operator,), {}),
    ScriptMethod=type("ScriptMethod", (Operator,), {}),
)
_C._profiler = _module("_C._profiler", _ExperimentalConfig=lambda **options: None)
_VF = SimpleNamespace()
_ops = SimpleNamespace(
    OpOverload=type("OpOverload", (Operator,), {}), OpOverloadPacket=type("OpOverloadPacket", (Operator,), {})
)
_library = SimpleNamespace()
library = SimpleNamespace(_impls=())
linalg = SimpleNamespace()
version = SimpleNamespace(cuda="13.0")
nn = _module("nn", Module=Module, Linear=Linear, Parameter=Parameter)
optim = _module("optim", Optimizer=Optimizer, SGD=SGD)
optim.optimizer = _module(
    "optim.optimizer",
    Optimizer=Optimizer,
    register_optimizer_step_pre_hook=register_optimizer_step_pre_hook,
    register_optimizer_step_post_hook=register_optimizer_step_post_hook,
)
amp = _module("amp", GradScaler=GradScaler)
compiler = _module("compiler", is_compiling=lambda: False)
GROUP = []


def init_process_group(backend, init_method, rank, world_size):
    GROUP.append((rank, world_size))


distributed = _module(
    "distributed",
    is_available=lambda: True,
    is_initialized=lambda: bool(GROUP),
    init_process_group=init_process_group,
    destroy_process_group=GROUP.clear,
    get_rank=lambda: GROUP[0][0],
    ProcessGroup=type("ProcessGroup", (), {}),
    get_world_size=lambda: GROUP[0][1],
)
utils = _module("utils")
serialization = _module("serialization", save=save)
utils.data = _module("utils.data")
utils.data.dataloader = _module("utils.data.dataloader", _BaseDataLoaderIter=DataLoaderIterator, DataLoader=DataLoader)
autograd = _module("autograd")
autograd.profiler = _module(
    "autograd.profiler", _prepare_profiler=lambda *args: None, _enable_profiler=lambda *args: None
)
profiler = _module(
    "profiler",
    profile=Profile,
    ProfilerActivity=ProfilerActivity,
    record_function=lambda name: contextlib.nullcontext(),
)
cuda = _module(
    "cuda",
    is_available=lambda: True,
    is_initialized=lambda: [os.getpid()] == USERS,
    _lazy_call=_lazy_call,
    _tls=threading.local(),
    init=_initialise_cuda,
    current_device=lambda: 0,
    get_device_name=lambda: "stand-in",
    synchronize=lambda: _C._cuda_synchronize(),
    max_memory_allocated=lambda: 0,
    Event=Event,
)


def is_grad_enabled():
    return True
