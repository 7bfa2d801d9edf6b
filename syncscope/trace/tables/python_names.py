"""The names of ``python_function`` rows, taken apart into file, line and function."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import NamedTuple

from syncscope.patterns import compile_later

BUILTIN = "<built-in>"
"""The file of functions in C."""

MODULE = "<nn.Module>"
"""The file of ``nn.Module:`` rows, which have none."""

UNKNOWN = "<unknown>"
"""The file of rows whose name has no known form."""


class PythonName(NamedTuple):
    file: str
    line: int
    function: str


_FUNCTION = compile_later(r"(.*)\((-?\d{1,9})\): (.*)", re.DOTALL)
_BUILTIN = compile_later(r"<(?:built-in (?:method|function)|method-wrapper|slot wrapper|method) '?([^' >]*)'?")
_SITE_PACKAGES = compile_later(r"(?:.*/)?(?:site|dist)-packages/(.*)", re.DOTALL)
_PYTHON = compile_later(
    r"(?:.*/)?(?:lib/python3(?:\.\d+)?t?|python3\d+/lib)/(?!lib-dynload)(.*)", re.DOTALL | re.IGNORECASE
)
_INDUCTOR = compile_later(r".*/torchinductor_[^/]*/(.*)", re.DOTALL)
_FROZEN = compile_later(r"<frozen ([\w.]+)>")

# The profiler cuts sys.path from paths, so a library's file looks like one of the program's own. These are known
# libraries; any other file counts as the user's.
_LIBRARIES = frozenset({
    "_pytest", "accelerate", "aiter", "apex", "bitsandbytes", "botorch", "colab_kernel_launcher", "cv2", "datasets",
    "deepspeed", "diffusers", "einops", "fastai", "flash_attn", "flashinfer", "functorch", "gpytorch",
    "huggingface_hub", "hydra", "ignite", "ipykernel", "ipykernel_launcher", "IPython", "lightning",
    "lightning_fabric", "megatron", "numpy", "omegaconf", "pandas", "peft", "PIL", "pluggy", "pytest",
    "pytorch_lightning", "ray", "safetensors", "scipy", "sglang", "sklearn", "tensorboard", "tensordict", "timm",
    "tokenizers", "torch", "torch_geometric", "torchaudio", "torchdata", "torchmetrics", "torchrec", "torchrl",
    "torchtext", "torchvision", "tornado", "tqdm", "traitlets", "transformers", "triton", "trl", "typing_extensions",
    "vllm", "wandb", "xformers",
})  # fmt: skip


@lru_cache(maxsize=65536)
def python_name(name: str) -> PythonName:
    """Take apart ``file(line): function``, a built-in's repr, or ``nn.Module: Linear_0``. The line is −1 where there is
    none."""
    if match := _FUNCTION.fullmatch(name):
        return PythonName(normalise(match[1]), int(match[2]), match[3])
    if match := _BUILTIN.match(name):
        return PythonName(BUILTIN, -1, match[1])
    if name.startswith("nn.Module: "):
        return PythonName(MODULE, -1, name.removeprefix("nn.Module: "))
    return PythonName(UNKNOWN, -1, name)


def normalise(file: str) -> str:
    """``<site-packages>/x``, ``<python>/x`` or ``<torchinductor>/x`` for code that is not the user's, else the path."""
    path = file.replace("\\", "/")
    if match := _FROZEN.fullmatch(path):
        return f"<python>/{match[1].replace('.', '/')}.py"
    if match := _SITE_PACKAGES.fullmatch(path):
        return f"<site-packages>/{match[1]}"
    if match := _PYTHON.fullmatch(path):
        return f"<python>/{match[1]}"
    if match := _INDUCTOR.fullmatch(path):
        return f"<torchinductor>/{match[1]}"
    top = path.split("/", 1)[0].removesuffix(".py")
    if top in _LIBRARIES:
        return f"<site-packages>/{path}"
    if top in sys.stdlib_module_names:
        return f"<python>/{path}"
    return path
