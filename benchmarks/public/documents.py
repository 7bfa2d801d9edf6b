"""Texts in the formats of the public programs that train or shrink language models."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

SPECIAL = ("bos", "user_start", "user_end", "assistant_start", "assistant_end", "python_start", "python_end",
           "output_start", "output_end")  # fmt: skip
WORDS, SIZE = 6000, 100


def make_chat(folder: Path) -> None:
    """A tokenizer of one token a byte as nanochat keeps its own, how long its tokens are, and files of documents."""
    import pyarrow
    import pyarrow.parquet
    import tiktoken
    import torch

    (folder / "tokenizer").mkdir(parents=True)
    bytes_ = {bytes([number]): number for number in range(256)}
    special = {f"<|{name}|>": len(bytes_) + number for number, name in enumerate(SPECIAL)}
    encoding = tiktoken.Encoding("bytes", pat_str=r"\w+|\W", mergeable_ranks=bytes_, special_tokens=special)
    (folder / "tokenizer/tokenizer.pkl").write_bytes(pickle.dumps(encoding))
    lengths = torch.tensor([1] * len(bytes_) + [0] * len(special), dtype=torch.int32)
    torch.save(lengths, folder / "tokenizer/token_bytes.pt")
    rng = np.random.default_rng(100)
    (folder / "documents").mkdir()
    for shard in range(2):
        texts = [" ".join(f"w{number}" for number in rng.integers(0, 2000, rng.integers(20, 200))) for _ in range(4000)]
        table = pyarrow.table({"text": texts})
        pyarrow.parquet.write_table(table, folder / f"documents/shard_{shard:05d}.parquet", row_group_size=500)


def make_c4_test(folder: Path) -> None:
    """A few pages of text, a line each, where a trainer looks for those that it tests itself with."""
    rng = np.random.default_rng(178)
    folder.mkdir()
    pages = [" ".join(f"w{number}" for number in rng.integers(0, 2000, 400)) for _ in range(1000)]
    (folder / "data.json").write_text("".join(json.dumps({"text": page}) + "\n" for page in pages))


def make_small_opt(folder: Path) -> None:
    """A small OPT with random weights in half precision and a tokenizer of its own."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import OPTConfig, OPTForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    rng = np.random.default_rng(101)
    lines = [" ".join(f"w{number}" for number in rng.integers(0, 500, 20)) for _ in range(500)]
    special = ["<unk>", "<pad>", "</s>"]
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1000, special_tokens=special))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>")
    fast.save_pretrained(folder)
    config = OPTConfig(
        vocab_size=1000, hidden_size=512, word_embed_proj_dim=512, ffn_dim=1024, num_hidden_layers=10,
        num_attention_heads=8, max_position_embeddings=256, bos_token_id=2, eos_token_id=2, pad_token_id=1,
    )  # fmt: skip
    OPTForCausalLM(config).half().save_pretrained(folder)


def make_few_datasets(folder: Path) -> None:
    """As much of datasets as a program reads its texts with, which are random words whatever they are called."""
    folder.mkdir()
    (folder / "datasets.py").write_text(
        "import random\n\n\n"
        "class Texts:\n    def __init__(self, seed):\n"
        "        rng = random.Random(seed)\n"
        "        self.texts = [' '.join(f'w{rng.randrange(500)}' for _ in range(400)) for _ in range(60)]\n\n"
        "    def __len__(self):\n        return len(self.texts)\n\n"
        "    def __getitem__(self, key):\n"
        "        return self.texts if isinstance(key, str) else {'text': self.texts[key]}\n\n\n"
        "def load_dataset(*names, split, **options):\n    return Texts(split)\n"
    )


def make_tongues(folder: Path) -> None:
    """Vectors of the words of two languages, of which one is a turn of the other, and a dictionary to test with.

    The start lends a name that Python has removed.
    """
    rng = np.random.default_rng(102)
    folder.mkdir()
    vectors = rng.normal(size=(WORDS, SIZE))
    turn, _ = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))
    for language, values in (("en", vectors), ("es", vectors @ turn + rng.normal(size=vectors.shape) / 10)):
        with (folder / f"{language}.txt").open("w") as file:
            file.write(f"{WORDS} {SIZE}\n")
            for number, row in enumerate(values):
                file.write(f"{language}{number} " + " ".join(f"{value:.4f}" for value in row) + "\n")
    pairs = rng.choice(WORDS, 1000, replace=False)
    (folder / "dictionary.txt").write_text("".join(f"en{number} es{number}\n" for number in sorted(pairs)))
    (folder / "start.py").write_text(
        "import inspect\nimport runpy\n\n"
        "inspect.getargspec = inspect.getfullargspec\n"
        "runpy.run_path('unsupervised.py', run_name='__main__')\n"
    )


DOCUMENTS: dict[str, Callable[[Path], None]] = {
    "chat": make_chat,
    "c4_test": make_c4_test,
    "small_opt": make_small_opt,
    "few_datasets": make_few_datasets,
    "tongues": make_tongues,
}
