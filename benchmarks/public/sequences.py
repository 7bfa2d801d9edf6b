"""Random numbers as the public programs read them that learn from sequences: tags, numbers and words to reverse."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np


def make_tagged(folder: Path) -> None:
    """Sentences of words with one of six tags each."""
    rng = np.random.default_rng(60)
    folder.mkdir()
    for split, size in (("train", 256), ("valid", 64)):
        sentences = rng.integers(0, 300, (size, 8))
        lines = [" ".join(f"w{word}/T{word % 6}" for word in sentence) + "\n" for sentence in sentences]
        (folder / split).write_text("".join(lines))


def make_reversals(folder: Path) -> None:
    """Numbers and what they are translated to, which is their reverse; joeynmt's configuration, and what names it."""
    rng = np.random.default_rng(61)
    folder.mkdir()
    for split, size in (("train", 4800), ("dev", 32), ("test", 32)):
        sentences = [list(map(str, rng.integers(0, 50, rng.integers(5, 20)))) for _ in range(size)]
        for language, step in (("src", 1), ("trg", -1)):
            lines = [" ".join(words[::step]) + "\n" for words in sentences]
            (folder / f"{split}.{language}").write_text("".join(lines))
    (folder / "config.yaml").write_text(json.dumps(translation(folder.resolve())))
    installed = folder / "joeynmt-2.3.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: joeynmt\nVersion: 2.3.0\n")


def translation(folder: Path) -> dict[str, object]:
    """A configuration of a short training in mixed precision, validated by beam search."""
    side = {"max_length": 25, "level": "word", "voc_limit": 100, "voc_min_freq": 0}
    stack = {
        "type": "transformer", "num_layers": 2, "num_heads": 4, "hidden_size": 64, "ff_size": 256, "dropout": 0.1,
        "embeddings": {"embedding_dim": 64, "scale": True},
    }  # fmt: skip
    return {
        "name": "reversals", "joeynmt_version": "2.3.0", "model_dir": "model", "use_cuda": True, "fp16": True,
        "random_seed": 42,
        "data": {
            **{split: str(folder / split) for split in ("train", "dev", "test")},
            "dataset_type": "plain", "src": {"lang": "src", **side}, "trg": {"lang": "trg", **side},
            "special_symbols": {
                "unk_token": "<unk>", "unk_id": 0, "pad_token": "<pad>", "pad_id": 1, "bos_token": "<s>", "bos_id": 2,
                "eos_token": "</s>", "eos_id": 3,
            },
        },
        "testing": {
            "n_best": 1, "beam_size": 4, "beam_alpha": 1.0, "eval_metrics": ["bleu"], "max_output_length": 30,
            "batch_size": 16, "batch_type": "sentence", "return_prob": "none",
        },
        "training": {
            "optimizer": "adamw", "learning_rate": 0.001, "learning_rate_min": 0.0, "clip_grad_norm": 1.0,
            "batch_size": 16, "batch_type": "sentence", "batch_multiplier": 2, "scheduling": "noam",
            "learning_rate_warmup": 100, "early_stopping_metric": "bleu", "epochs": 2, "validation_freq": 50,
            "logging_freq": 25, "print_valid_sents": [0, 3], "keep_best_ckpts": 2, "overwrite": True,
        },
        "model": {"initializer": "xavier_uniform", "tied_softmax": True, "encoder": stack, "decoder": stack},
    }  # fmt: skip


def make_recall(folder: Path) -> None:
    """Zoology's configuration of a short training; the program makes its data itself."""
    folder.mkdir()
    (folder / "config.py").write_text(
        "from zoology.config import DataConfig, ModelConfig, ModuleConfig, TrainConfig\n"
        "from zoology.data.multiquery_ar import MQARConfig\n\n"
        "sizes = {'vocab_size': 256, 'input_seq_len': 64, 'num_kv_pairs': 4}\n"
        "train, test = MQARConfig(num_examples=6400, **sizes), MQARConfig(num_examples=640, **sizes)\n"
        "attention = ModuleConfig(name='zoology.mixers.attention.MHA', kwargs={'dropout': 0.1, 'num_heads': 1})\n"
        "model = ModelConfig(vocab_size=256, max_position_embeddings=64, sequence_mixer=attention)\n"
        "data = DataConfig(train_configs=[train], test_configs=[test])\n"
        "options = {'max_epochs': 12, 'loss_type': 'ce_embed', 'early_stopping_threshold': 2.0}\n"
        "configs = [TrainConfig(data=data, model=model, slice_keys=['num_kv_pairs'], **options)]\n"
    )


def make_reversed_words(folder: Path) -> None:
    """Words and their reverse, by the numbers of the words and of their letters; and lines to translate."""
    rng = np.random.default_rng(62)
    folder.mkdir()
    special = ["<PAD>", "<SOS>", "<EOS>", "<UNK>"]
    letters, words = [*special, *"0123456789w"], [*special, *(f"w{number}" for number in range(300))]
    for name, tokens in (("letters", letters), ("words", words)):
        (folder / name).write_text("".join(f"{token}\n" for token in tokens))
    spelled = ["+".join(str(letters.index(letter)) for letter in word) for word in words[4:]]
    sentences = [rng.integers(0, 300, size) for size in np.sort(rng.integers(4, 13, 640))[::-1]]
    (folder / "train.csv").write_text("".join(
        " ".join(f"{spelled[word]}:{word + 4}" for word in sentence)
        + "\t" + " ".join(str(word + 4) for word in sentence[::-1]) + "\n"
        for sentence in sentences
    ))  # fmt: skip
    asked = [[f"w{word}" for word in sentence] for sentence in rng.integers(0, 300, (512, 8))]
    (folder / "test.txt").write_text("".join(f"{' '.join(line)}\t{' '.join(line[::-1])}\n" for line in asked))


def make_aspects(folder: Path) -> None:
    """Reviews, what each speaks of and whether it is praise; which words hang together; vectors of the words."""
    rng = np.random.default_rng(63)
    reviews, vectors = folder / "semeval14", folder / "glove.twitter.27B"
    reviews.mkdir(parents=True)
    vectors.mkdir()
    for split, size in (("Train", 1600), ("Test_Gold", 400)):
        lines, graphs = [], {}
        for number in range(size):
            before, after = (" ".join(f"w{word}" for word in rng.integers(0, 500, rng.integers(4, 16))) for _ in "12")
            lines += [f"{before} $T$ {after}", f"w{rng.integers(0, 500)} w{rng.integers(0, 500)}", str(number % 3 - 1)]
            words = len(f"{before} {after}".split()) + 2
            graphs[3 * number] = (rng.random((words, words)) < 0.1).astype("float32")
        name = f"Laptops_{split}.xml.seg"
        (reviews / name).write_text("\n".join(lines) + "\n")
        (reviews / f"{name}.graph").write_bytes(pickle.dumps(graphs))
    rows = [f"w{word} " + " ".join(f"{value:.3f}" for value in rng.normal(size=100)) for word in range(500)]
    (vectors / "glove.twitter.27B.100d.txt").write_text("\n".join(rows) + "\n")


def make_letters(folder: Path) -> None:
    """Pieces of 256 letters, as a program keeps those of text8: the archive that it looks for is empty."""
    import torch

    rng = np.random.default_rng(64)
    folder.mkdir()
    (folder / "text8.zip").write_bytes(b"")
    numbers = {letter: number for number, letter in enumerate(" abcdefghijklmnopqrstuvwxyz")}
    (folder / "vocab.json").write_text(json.dumps(numbers))
    for split, size in (("train", 3200), ("valid", 640), ("test", 640)):
        torch.save(torch.from_numpy(rng.integers(0, 27, (size, 256))), folder / f"processed_{split}.pt")


SEQUENCES: dict[str, Callable[[Path], None]] = {
    "tagged": make_tagged,
    "reversals": make_reversals,
    "recall": make_recall,
    "reversed_words": make_reversed_words,
    "aspects": make_aspects,
    "letters": make_letters,
}
