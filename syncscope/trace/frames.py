"""What a ``python_function`` row is called: file, line and function."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import NamedTuple

BUILTIN = "<built-in>"
"""The file of functions in C."""

MODULE = "<nn.Module>"
"""The file of ``nn.Module:`` rows, which have none."""


UNKNOWN = "<unknown>"
"""The file of rows whose name is of no known form."""


class PythonName(NamedTuple):
    file: str
    line: int
    function: str


_FUNCTION = re.compile(r"(.*)\((-?\d{1,9})\): (.*)", re.DOTALL)
_BUILTIN = re.compile(r"<(?:built-in (?:method|function)|method-wrapper|slot wrapper|method) '?([^' >]*)'?")
_SITE_PACKAGES = re.compile(r"(?:.*/)?(?:site|dist)-packages/(.*)", re.DOTALL)
_PYTHON = re.compile(
    r"(?:.*/)?(?:lib/python3(?:\.\d+)?t?|python3\d+/lib)/(?!lib-dynload)(.*)", re.DOTALL | re.IGNORECASE
)
_INDUCTOR = re.compile(r".*/torchinductor_[^/]*/(.*)", re.DOTALL)
_FROZEN = re.compile(r"<frozen ([\w.]+)>")

# The profiler cuts sys.path from paths, so a library's file looks like one of the program's own. These are known
# to be libraries; what is not known counts as the user's.
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
    """``file(line): function``, a built-in's repr, or ``nn.Module: Linear_0``, taken apart; line −1 when none."""
    if found := _FUNCTION.fullmatch(name):
        return PythonName(normalised(found[1]), int(found[2]), found[3])
    if found := _BUILTIN.match(name):
        return PythonName(BUILTIN, -1, found[1])
    if name.startswith("nn.Module: "):
        return PythonName(MODULE, -1, name.removeprefix("nn.Module: "))
    return PythonName(UNKNOWN, -1, name)


def normalised(file: str) -> str:
    """``<site-packages>/x``, ``<python>/x``, ``<torchinductor>/x`` for code that is not the user's, else the path."""
    path = file.replace("\\", "/")
    if found := _FROZEN.fullmatch(path):
        return f"<python>/{found[1].replace('.', '/')}.py"
    if found := _SITE_PACKAGES.fullmatch(path):
        return f"<site-packages>/{found[1]}"
    if found := _PYTHON.fullmatch(path):
        return f"<python>/{found[1]}"
    if found := _INDUCTOR.fullmatch(path):
        return f"<torchinductor>/{found[1]}"
    top = path.split("/", 1)[0].removesuffix(".py")
    if top in _LIBRARIES:
        return f"<site-packages>/{path}"
    if top in sys.stdlib_module_names:
        return f"<python>/{path}"
    return path
