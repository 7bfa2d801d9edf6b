"""What well-known public programs want: starts that make their runs short or lend old names, sensors, signs, words."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

BEGIN = """import runpy
import sys

from torchvision.datasets import CIFAR10, CIFAR100

for dataset in (CIFAR10, CIFAR100):
    dataset.meta["md5"] = None
    for files in (dataset.train_list, dataset.test_list):
        files[:] = [[name, None] for name, _ in files]
"""
"""Of a start whose program asks for no sums of CIFAR's files."""
TERMINAL = """
import io
import os

os.popen = lambda *words: io.StringIO("24 80")
"""
"""A program asks for the size of its terminal, which it has none of."""
THREE_EPOCHS = """
from torch.optim.lr_scheduler import CosineAnnealingLR

step_once = CosineAnnealingLR.step


def step(self):
    step_once(self)
    if self.last_epoch == 3:
        sys.exit()


CosineAnnealingLR.step = step
"""
EIGHT_EPOCHS = """
from conf import settings

settings.EPOCH, settings.MILESTONES, settings.SAVE_EPOCH = 8, [2, 4, 6], 2
"""
OLD_CONVOLUTIONS = """import runpy
import sys

from torch import nn

nn.Conv1d._conv_forward = lambda self, *tensors: nn.functional.conv2d(
    *tensors, self.stride, self.padding, self.dilation, self.groups
)
"""
"""Before PyTorch 1.11, convolutions of one dimension took kernels of two."""
OLD_TIMM = """import runpy
import sys
from types import SimpleNamespace

import numpy
import timm
import torch
from timm.models import vision_transformer
from timm.optim import optim_factory, param_groups_weight_decay


class Block(vision_transformer.Block):
    def __init__(self, *sizes, qk_scale=None, **options):
        super().__init__(*sizes, **options)


numpy.float = float
timm.__version__ = "0.3.2"
sys.modules["torch._six"] = SimpleNamespace(inf=torch.inf)
optim_factory.add_weight_decay = param_groups_weight_decay
vision_transformer.Block = Block
"""
SMALL_VAE = """import torch
from torch import nn


class Noisy:
    def __init__(self, numbers):
        self.mean, self.log_variance = numbers.chunk(2, dim=1)

    def sample(self):
        return self.mean + torch.exp(self.log_variance / 2) * torch.randn_like(self.mean)


class Encoded:
    def __init__(self, numbers):
        self.latent_dist = Noisy(numbers)


class AutoencoderKL(nn.Sequential):
    @classmethod
    def from_pretrained(cls, name):
        sizes = (3, 64, 128, 256)
        halved = [nn.Conv2d(one, two, 3, 2, 1) for one, two in zip(sizes, sizes[1:])]
        return cls(*(part for layer in halved for part in (layer, nn.SiLU())), nn.Conv2d(256, 8, 3, 1, 1))

    def encode(self, pictures):
        return Encoded(self(pictures))
"""
OLD_TORCH = """import sys

from torch.optim import lr_scheduler


class ReduceLROnPlateau(lr_scheduler.ReduceLROnPlateau):
    def __init__(self, *settings, verbose=False, **options):
        super().__init__(*settings, **options)


lr_scheduler.ReduceLROnPlateau = ReduceLROnPlateau

if __name__ == "__main__":
    del sys.argv[0]
    code = compile(open(sys.argv[0]).read(), sys.argv[0], "exec", optimize=1)
    exec(code, {"__name__": "__main__", "__file__": sys.argv[0]})
"""
"""A program asserts that it is run with PyTorch 1: it is compiled without assertions."""
OLD_SUMS = """import runpy
import sys
from itertools import accumulate

import torch

torch._utils._accumulate = accumulate
"""
WALKER = """import sys

import numpy

STEPS = 12_000
STATES, ACTIONS, ENDS = 22, 6, 0.005


class Space:
    def __init__(self, size):
        self.shape = (size,)


class Walker:
    observation_space, action_space = Space(STATES), Space(ACTIONS)

    def __init__(self):
        self.numbers, self.steps = numpy.random.default_rng(0), 0

    def reset(self):
        return self.numbers.normal(size=STATES)

    def step(self, action):
        self.steps += 1
        if self.steps > STEPS:
            sys.exit()
        return self.reset(), -float(action @ action), self.numbers.random() < ENDS, {}

    def close(self):
        pass


def make(name):
    return Walker()
"""
OLD_GPT = """import torch
from torch import nn


class GPT2Config:
    n_ctx, n_inner, n_layer, n_head = 1024, None, 12, 12
    attn_pdrop = embd_pdrop = resid_pdrop = 0.1
    layer_norm_epsilon, initializer_range, activation_function = 1e-5, 0.02, "relu"
    add_cross_attention = output_attentions = output_hidden_states = False
    use_cache = use_return_dict = True

    def __init__(self, **settings):
        vars(self).update(settings)


class Conv1D(nn.Module):
    def __init__(self, size, taken):
        super().__init__()
        self.size = size
        self.weight, self.bias = nn.Parameter(torch.empty(taken, size)), nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], self.size)


class PreTrainedModel(nn.Module):
    dtype = torch.float32

    def __init__(self, config):
        super().__init__()
        self.config = config

    def init_weights(self):
        self.apply(self._init_weights)

    def get_head_mask(self, mask, layers):
        return [None] * layers


class ModelOutput(dict):
    pass


def decorator(*settings, **options):
    return lambda decorated: decorated


ACT2FN = {"relu": nn.functional.relu}
BaseModelOutputWithPastAndCrossAttentions = ModelOutput
add_code_sample_docstrings = add_start_docstrings = add_start_docstrings_to_model_forward = decorator
replace_return_docstrings = decorator
SequenceSummary = find_pruneable_heads_and_indices = prune_conv1d_layer = assert_device_map = get_device_map = None
"""
TEXTS = """import random

import torch


class Vocabulary:
    def __init__(self, words):
        self.itos, self.stoi = list(words), {word: number for number, word in enumerate(words)}

    def __len__(self):
        return len(self.itos)


class Field:
    unk_token = "<unk>"

    def __init__(self, words):
        self.vocab = Vocabulary(words)

    def process(self, sentences, device):
        longest = max(map(len, sentences))
        rows = [["<s>", *words, "</s>", *["<blank>"] * (longest - len(words))] for words in sentences]
        return torch.tensor([[self.vocab.stoi[word] for word in row] for row in rows], device=device).t_()


class Example:
    def __init__(self, src, trg):
        self.src, self.trg = src, trg


class Dataset:
    def __init__(self, examples, fields):
        self.examples, self.fields = examples, fields

    def __len__(self):
        return len(self.examples)

    def __iter__(self):
        return iter(self.examples)


class Batch:
    def __init__(self, examples, fields, device):
        for name, field in fields.items():
            setattr(self, name, field.process([getattr(one, name) for one in examples], device))


class BucketIterator:
    def __init__(self, dataset, batch_size, device, train=False):
        self.dataset, self.size, self.device, self.train = dataset, batch_size, device, train

    def __len__(self):
        return -(-len(self.dataset) // self.size)

    def __iter__(self):
        examples = sorted(self.dataset.examples, key=lambda one: len(one.src))
        batches = [examples[first : first + self.size] for first in range(0, len(examples), self.size)]
        if self.train:
            random.shuffle(batches)
        return (Batch(batch, self.dataset.fields, self.device) for batch in batches)
"""
END = """
if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
SENSORS = 207
SOLIDS = {"Airplane": 0, "Car": 1, "Chair": 2, "Lamp": 3, "Table": 4}
PIECES = 8000
"""Of the words that a small Llama reads."""


def make_classic_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that train on CIFAR, of which two are ended early, or want old names."""
    folder.mkdir()
    (folder / "terminal.py").write_text(BEGIN + TERMINAL + END)
    (folder / "three_epochs.py").write_text(BEGIN + TERMINAL + THREE_EPOCHS + END)
    (folder / "eight_epochs.py").write_text(BEGIN + EIGHT_EPOCHS + END)
    (folder / "old_convolutions.py").write_text(OLD_CONVOLUTIONS + END)
    (folder / "old_timm.py").write_text(OLD_TIMM + END)
    (folder / "old_torch.py").write_text(OLD_TORCH)
    (folder / "old_sums.py").write_text(OLD_SUMS + END)


def make_small_vae(folder: Path) -> None:
    """As much of diffusers as a program encodes its pictures with: an autoencoder of random weights."""
    (folder / "diffusers").mkdir(parents=True)
    (folder / "diffusers/__init__.py").write_text("")
    (folder / "diffusers/models.py").write_text(SMALL_VAE)


def make_sensors(folder: Path) -> None:
    """Windows of speeds at 207 places, some of them missing, and which places are near to each other."""
    rng = np.random.default_rng(110)
    folder.mkdir()
    for split, size in (("train", 3200), ("val", 640), ("test", 640)):
        windows = rng.random((2, size, 12, SENSORS, 2), dtype=np.float32)
        windows[..., 0] *= 70 * (windows[..., 0] > 0.05)
        np.savez(folder / f"{split}.npz", x=windows[0], y=windows[1])
    near = (rng.random((SENSORS, SENSORS)) * (rng.random((SENSORS, SENSORS)) < 0.05)).astype(np.float32)
    np.fill_diagonal(near, 1)
    names = [str(number) for number in range(SENSORS)]
    (folder / "adjacency.pkl").write_bytes(pickle.dumps((names, {name: int(name) for name in names}, near)))


def make_walker(folder: Path) -> None:
    """As much of gym and roboschool as a program uses: states of noise, and an end of all after 12,000 steps."""
    folder.mkdir()
    (folder / "gym.py").write_text(WALKER)
    (folder / "roboschool.py").write_text("")


def make_hopper(folder: Path) -> None:
    """Records of a hopper that are noise, such a game, and as much of an old transformers as a program uses."""
    rng = np.random.default_rng(116)
    folder.mkdir()
    game = WALKER.replace("12_000", "10**9").replace("22, 6, 0.005", "11, 3, 0.02")
    (folder / "gym.py").write_text(game)
    for name in ("", "utils", "models", "models/gpt2"):
        (folder / "transformers" / name).mkdir(parents=True)
        (folder / "transformers" / name / "__init__.py").write_text("")
    (folder / "transformers/old.py").write_text(OLD_GPT)
    (folder / "transformers/__init__.py").write_text("from .old import GPT2Config\n")
    (folder / "transformers/utils/logging.py").write_text("from logging import getLogger as get_logger\n")
    for name in (
        "activations", "file_utils", "modeling_outputs", "modeling_utils", "utils/model_parallel_utils",
        "models/gpt2/configuration_gpt2",
    ):  # fmt: skip
        (folder / f"transformers/{name}.py").write_text("from transformers.old import *\n")
    records = [
        {
            "observations": rng.normal(size=(length, 11)).astype(np.float32),
            "actions": rng.uniform(-1, 1, (length, 3)).astype(np.float32),
            "rewards": rng.random(length).astype(np.float32),
            "terminals": np.arange(length) == length - 1,
        }
        for length in rng.integers(60, 300, 100)
    ]
    (folder / "records.pkl").write_bytes(pickle.dumps(records))


def make_solids(folder: Path) -> None:
    """Points of five kinds of things in ShapeNet's own files, each with the number of its part."""
    rng = np.random.default_rng(111)
    (folder / "train_test_split").mkdir(parents=True)
    (folder / "synsetoffset2category.txt").write_text("".join(f"{kind} {kind}0\n" for kind in SOLIDS))
    for split, size in (("train", 128), ("test", 20)):
        files = []
        for kind, shift in SOLIDS.items():
            for number in range(size):
                name = f"{split}{number}"
                for part in ("points", "points_label"):
                    (folder / f"{kind}0" / part).mkdir(parents=True, exist_ok=True)
                points = rng.normal(size=(600, 3)) * (1 + shift * np.arange(3))
                np.savetxt(folder / f"{kind}0/points/{name}.pts", points, fmt="%.4f")
                np.savetxt(folder / f"{kind}0/points_label/{name}.seg", rng.integers(1, 3, 600), fmt="%d")
                files.append(f"shape_data/{kind}0/{name}")
        (folder / f"train_test_split/shuffled_{split}_file_list.json").write_text(json.dumps(files))


def make_begun_detector(folder: Path) -> None:
    """The weights that a detector begins with."""
    import torch
    import torchvision

    folder.mkdir()
    torch.save(torchvision.models.resnet18().state_dict(), folder / "resnet18-5c106cde.pth")


def make_signs(folder: Path) -> None:
    """Pictures of words in three stores of LMDB."""
    import io

    import lmdb  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from PIL import Image

    rng = np.random.default_rng(113)
    letters = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
    for name, size in (("train/MJ", 1920), ("train/ST", 1920), ("valid", 384)):
        (folder / name).mkdir(parents=True)
        store = lmdb.open(str(folder / name), map_size=1 << 28)
        with store.begin(write=True) as page:
            page.put(b"num-samples", str(size).encode())
            for number in range(1, size + 1):
                picture = io.BytesIO()
                Image.fromarray(rng.integers(0, 256, (32, 100)).astype(np.uint8)).save(picture, "JPEG")
                word = "".join(rng.choice(letters, rng.integers(3, 12)))
                page.put(f"image-{number:09d}".encode(), picture.getvalue())
                page.put(f"label-{number:09d}".encode(), word.encode())
        store.close()


def make_llama(folder: Path) -> None:
    """A small Llama 3.1 with random weights in the files of Meta's, its words, and stories in numbers."""
    import torch

    rng = np.random.default_rng(114)
    model, stories = folder / "model", folder / "stories"
    model.mkdir(parents=True)
    stories.mkdir()
    words = [bytes([number]) for number in range(256)] + [f" w{number}".encode() for number in range(PIECES - 256)]
    lines = [f"{base64.b64encode(word).decode()} {number}\n" for number, word in enumerate(words)]
    (model / "tokenizer.model").write_text("".join(lines))
    sizes = {"dim": 512, "n_layers": 24, "n_heads": 8, "n_kv_heads": 4, "vocab_size": PIECES + 256}
    (model / "params.json").write_text(json.dumps({**sizes, "rope_theta": 500_000.0}))
    torch.manual_seed(114)
    hidden, heads, shared = 1536, 512, 256
    shapes = {"tok_embeddings.weight": (PIECES + 256, 512), "output.weight": (PIECES + 256, 512)}
    for layer in range(24):
        for part, shape in {
            "attention.wq": (heads, 512), "attention.wk": (shared, 512), "attention.wv": (shared, 512),
            "attention.wo": (512, heads), "feed_forward.w1": (hidden, 512), "feed_forward.w2": (512, hidden),
            "feed_forward.w3": (hidden, 512),
        }.items():  # fmt: skip
            shapes[f"layers.{layer}.{part}.weight"] = shape
    weights = {name: (torch.randn(shape) * 0.02).bfloat16() for name, shape in shapes.items()}
    for norm in ("norm", *(f"layers.{layer}.{one}_norm" for layer in range(24) for one in ("attention", "ffn"))):
        weights[f"{norm}.weight"] = torch.ones(512).bfloat16()
    torch.save(weights, model / "consolidated.00.pth")
    tokens = rng.integers(0, PIECES, 200_000)
    head = np.zeros(256, np.int32)
    head[:3] = 20_240_801, 7, len(tokens)
    (stories / "TinyStories_val.bin").write_bytes(head.tobytes() + tokens.astype(np.uint32).tobytes())


def make_few_texts(folder: Path) -> None:
    """As much of torchtext as a program of translation uses, and sentences of the words that it has prepared."""
    import sys
    from argparse import Namespace

    rng = np.random.default_rng(115)
    (folder / "torchtext").mkdir(parents=True)
    (folder / "torchtext/__init__.py").write_text("")
    (folder / "torchtext/data.py").write_text(TEXTS)
    (folder / "torchtext/datasets.py").write_text("TranslationDataset = None\n")
    sys.path.insert(0, str(folder))
    from torchtext.data import Example, Field  # type: ignore[import-not-found]

    words = [f"w{number}" for number in range(4000)]
    field = Field(["<unk>", "<blank>", "<s>", "</s>", *words])
    content = {"settings": Namespace(max_len=100), "vocab": {"src": field, "trg": field}}
    for split, size in (("train", 4096), ("valid", 512), ("test", 40)):
        sentences = [[str(word) for word in rng.choice(words, rng.integers(6, 24))] for _ in range(size)]
        content[split] = [Example(sentence, sentence[::-1]) for sentence in sentences]
    (folder / "sentences.pkl").write_bytes(pickle.dumps(content))
    sys.path.remove(str(folder))


CLASSICS: dict[str, Callable[[Path], None]] = {
    "classic_starts": make_classic_starts,
    "sensors": make_sensors,
    "small_vae": make_small_vae,
    "walker": make_walker,
    "hopper": make_hopper,
    "solids": make_solids,
    "begun_detector": make_begun_detector,
    "signs": make_signs,
    "small_llama": make_llama,
    "few_texts": make_few_texts,
}
