"""Weights of random numbers, tokenizers and a font, where the public programs look for them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.public.pictures import write_picture


def make_sentence_model(folder: Path) -> None:
    """A tiny BERT with random weights and a tokenizer of its own."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(500))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256
    )
    BertModel(config).save_pretrained(folder)


def make_style_model(folder: Path) -> None:
    """The layers of VGG19 that pictures are compared by, with random weights."""
    import torch
    import torchvision

    folder.mkdir()
    weights = torchvision.models.vgg19().features.state_dict()
    torch.save({f"features.{name}": value for name, value in weights.items()}, folder / "vgg19.pth")


def make_language_model(folder: Path) -> None:
    """A tiny Llama with random weights and a tokenizer of its own."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    special = ["<unk>", "<s>", "</s>"]
    rng = np.random.default_rng(13)
    lines = [" ".join(f"w{number}" for number in rng.integers(0, 500, 20)) for _ in range(500)]
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1000, special_tokens=special))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=512, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def make_torch_home(folder: Path) -> None:
    """Weights, and an empty repository that ``dino`` lists, where torch.hub looks for what it has downloaded."""
    import torch
    import torchvision

    (folder / "hub/facebookresearch_xcit_main").mkdir(parents=True)
    (folder / "hub/facebookresearch_xcit_main/hubconf.py").write_text("dependencies = []\n")

    checkpoints = folder / "hub/checkpoints"
    checkpoints.mkdir(parents=True)
    torch.save(torchvision.models.resnet18().state_dict(), checkpoints / "resnet18-f37072fd.pth")
    torch.save(torchvision.models.mobilenet_v2().state_dict(), checkpoints / "mobilenet_v2-b0353104.pth")
    torch.save(torchvision.models.vgg16(init_weights=False).state_dict(), checkpoints / "vgg16-397923af.pth")


def make_font(folder: Path) -> None:
    import matplotlib

    folder.mkdir()
    font = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
    (folder / "Arial.ttf").write_bytes(font.read_bytes())


def make_hub_home(folder: Path) -> None:
    """Weights where huggingface_hub looks for what it has downloaded."""
    import timm
    from safetensors.torch import save_file

    repository = folder / "hub/models--timm--resnet50d.ra2_in1k"
    commit = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text(commit)
    (repository / "snapshots" / commit).mkdir(parents=True)
    weights = timm.create_model("resnet50d").state_dict()
    save_file({name: value.contiguous() for name, value in weights.items()},
              repository / "snapshots" / commit / "model.safetensors")  # fmt: skip


def make_reader(folder: Path) -> None:
    """What a BERT that reads titles is made from: its vocabulary and size. Its weights are random."""
    import torch

    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(0x4E00, 0x4E00 + 400))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    config = {
        "vocab_size": len(words), "hidden_size": 768, "num_hidden_layers": 2, "num_attention_heads": 12,
        "intermediate_size": 1024, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 64, "type_vocab_size": 2,
        "initializer_range": 0.02,
    }  # fmt: skip
    (folder / "bert_config.json").write_text(json.dumps(config))
    torch.save({}, folder / "pytorch_model.bin")


def make_checkpoint(folder: Path, programs: Path) -> None:
    """A checkpoint of gpt-fast's smallest model, with the tokenizer of llama2.c."""
    import torch

    sys.path.insert(0, str(programs / "gpt-fast"))
    from model import Transformer  # type: ignore[import-not-found]

    folder = folder / "stories15M"
    folder.mkdir(parents=True)
    weights = Transformer.from_name("stories15M").state_dict()
    torch.save({name: value.bfloat16() for name, value in weights.items()}, folder / "model.pth")
    (folder / "tokenizer.model").write_bytes((programs / "llama2.c/tokenizer.model").read_bytes())


def make_sam(folder: Path, programs: Path) -> None:
    """A checkpoint of segment-anything's smallest model with random weights, and three pictures."""
    import torch

    sys.path.insert(0, str(programs / "segment-anything"))
    from segment_anything import sam_model_registry  # type: ignore[import-not-found]

    rng = np.random.default_rng(26)
    for number in range(3):
        write_picture(folder / f"pictures/{number}.jpg", 192, 128, rng)
    torch.save(sam_model_registry["vit_b"]().state_dict(), folder / "vit_b.pth")


def make_stylist(folder: Path, programs: Path) -> None:
    """The layers of VGG19 as AdaIN's own file has them, with random weights."""
    import torch

    sys.path.insert(0, str(programs / "pytorch-AdaIN"))
    from net import vgg  # type: ignore[import-not-found]

    folder.mkdir()
    torch.save(vgg.state_dict(), folder / "vgg_normalised.pth")


def make_crnn(folder: Path, programs: Path) -> None:
    """A reader of words with random weights, and sure of what it reads, as one that was trained."""
    import torch

    sys.path.insert(0, str(programs / "crnn-pytorch/src"))
    from model import CRNN  # type: ignore[import-not-found, unused-ignore]

    folder.mkdir()
    torch.manual_seed(80)
    weights = CRNN(1, 32, 100, 37).state_dict()
    weights["dense.weight"] *= 3000
    torch.save(weights, folder / "crnn_synth90k.pt")


def make_designer(folder: Path, programs: Path) -> None:
    """ProteinMPNN's model with random weights."""
    import torch

    sys.path.insert(0, str(programs / "ProteinMPNN"))
    from protein_mpnn_utils import ProteinMPNN  # type: ignore[import-not-found]

    folder.mkdir()
    torch.manual_seed(83)
    model = ProteinMPNN(num_letters=21, node_features=128, edge_features=128, hidden_dim=128, k_neighbors=48)
    content = {"num_edges": 48, "noise_level": 0.2, "model_state_dict": model.state_dict()}
    torch.save(content, folder / "v_48_020.pt")


def make_gpt2_weights(folder: Path, programs: Path) -> None:
    """GPT-2's smallest model with random weights, in half precision."""
    import torch

    sys.path.insert(0, str(programs / "gpt-2-Pytorch"))
    from GPT2.config import GPT2Config  # type: ignore[import-not-found]
    from GPT2.model import GPT2LMHeadModel  # type: ignore[import-not-found]

    folder.mkdir()
    torch.manual_seed(81)
    weights = GPT2LMHeadModel(GPT2Config()).state_dict()
    torch.save({name: value.half() for name, value in weights.items()}, folder / "gpt2-pytorch_model.bin")


def make_transcriber(folder: Path, programs: Path) -> None:
    """A model of Whisper's with random weights, as much of numba as it imports, and a reader of its wave files."""
    import torch

    folder.mkdir()
    (folder / "numba.py").write_text("def jit(*args, **options):\n    return lambda function: function\n")
    reader = folder / "ffmpeg"
    reader.write_text('#!/bin/sh\nexec tail -c +45 "$5"\n')
    reader.chmod(0o755)
    sys.path[:0] = [str(folder), str(programs / "whisper")]
    from whisper.model import ModelDimensions, Whisper  # type: ignore[import-not-found]

    torch.manual_seed(82)
    sizes = {
        "n_mels": 80, "n_audio_ctx": 1500, "n_audio_state": 256, "n_audio_head": 4, "n_audio_layer": 4,
        "n_vocab": 51_865, "n_text_ctx": 448, "n_text_state": 256, "n_text_head": 4, "n_text_layer": 4,
    }  # fmt: skip
    model = Whisper(ModelDimensions(**sizes))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    torch.save({"dims": sizes, "model_state_dict": model.state_dict()}, folder / "small.pt")
