"""Programs of public repositories with a patch each that mends one thing, and how a patch is applied.

The patches are files in ``patches/``, named after their pair. The programs are those of ``benchmarks.public.table``,
some with more data or other arguments, so that an epoch is long enough to time steps in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from benchmarks.public.table import PROGRAMS, Program
from benchmarks.savings.catalogue import Named, Pair

PATCHES = Path(__file__).parent / "patches"
WORKERS, FIRST_WORKERS = "two more workers", "two workers"
"""What a report calls the question whether two more workers would help, and that of a loader without any."""

SEEN = frozenset({"makemore", "llama2.c", "gat", "acgan", "super-resolution", "word-language-model"})
"""Those that were recorded, or timed, before the constants of 2026-11-22 were set, ..."""

RECORDED = SEEN | {"gan-tutorial", "vae-workers"}
"""... and before those of 2026-11-23, 01:18, ..."""

MET = frozenset({
    "language-model-tutorial", "gan-workers", "mnist-workers", "siamese-workers", "wgan-gp", "cgan", "dcgan",
    "fast-neural-style", "gan", "infogan", "tcn-copying", "vae",
})  # fmt: skip
"""... and after those, but before those of 2026-11-23, 05:14. The others have a third contact, ..."""

MET_SEVENTH = frozenset({"stargan", "char-rnn", "sasrec", "srgnn", "bigram"})
"""... but for these, whose patches were written on 2026-11-26 from 11:50, before any run of theirs, ..."""

MET_EIGHTH = frozenset({
    "rectified-flow", "lottery-ticket", "adversarial", "lstm-crf", "aspects", "improved-diffusion",
    "improved-diffusion-norms", "s4", "pyg-gcn", "zoology", "dlrm", "vq-autoencoder", "flows",
    "lottery-ticket-workers", "rectified-flow-workers", "vq-autoencoder-workers", "gpt2",
})  # fmt: skip
"""... and these, written on 2026-11-26 from 23:50, before any run of theirs; ``gpt2`` was from 11:50, but the seventh
contact did not get to it, ..."""

MET_NINTH = frozenset({"image-prior", "siren", "hifi-gan"})
"""... and these, written on 2026-11-28 from 08:16, before any timing of theirs."""

CONTACTS = {
    name: contact
    for contact, names in {0: RECORDED, 1: MET, 7: MET_SEVENTH, 8: MET_EIGHTH, 9: MET_NINTH}.items()
    for name in names
}

PARTS = 8
"""Stretches, about, in which a process is timed."""


@dataclass(frozen=True)
class Patched:
    """A program, unmodified and with its patch."""

    name: str
    program: str
    """Its name in ``benchmarks.public.table`` or ``MORE``."""
    question: str
    findings: tuple[Named, ...]
    arguments: str = ""
    """In place of those after the script; empty for those of the table."""
    data: dict[str, str] = field(default_factory=dict)
    """In place of those of the table."""
    kind: str = "wait"
    asked: str = ""
    """The question of the report that the patch answers, where it is no finding's."""
    first: str = ""
    """A command that makes the files which its processes would else all make at the same time."""
    gate: int = 10
    """Backwards before the process waits for its turn."""
    settle: int = 20
    """Backwards after that before the first that is timed: a loader's queue has filled meanwhile."""
    timed: int = 100
    """Backwards that are timed."""
    backwards: float = 1.0
    """Backwards of a step: a network each, or parts of a batch."""

    @property
    def part(self) -> int:
        """Backwards of a stretch that is timed: those of whole steps."""
        period = Fraction(self.backwards).limit_denominator(10).numerator
        return max(self.timed // PARTS // period, 1) * period

    @property
    def patch(self) -> Path:
        return PATCHES / f"{self.name}.patch"

    @property
    def whole(self) -> Program:
        """The program as it is started."""
        listed = next(program for program in (*PROGRAMS, *MORE) if program.name == self.program)
        command = f"{listed.command.split()[0]} {self.arguments}" if self.arguments else listed.command
        return replace(listed, command=command, data=self.data or listed.data)

    @property
    def pair(self) -> Pair:
        """The same as the scores know it."""
        return Pair(
            self.name, "patched", (), self.question, self.kind, self.findings, fresh=True, patched=True,
            asked=self.asked, newest=self.name not in SEEN,
            contact=CONTACTS.get(self.name, 3), backwards=self.backwards,
        )  # fmt: skip


def waits(*expressions: str) -> tuple[Named, ...]:
    """Findings of waits and of the copies that they complete."""
    return tuple(Named(rule, expression) for expression in expressions for rule in ("SYN", "CPY2"))


MNIST = {"data": "mnist60k"}
LLAMA = "--compile=False --eval_iters=1 --eval_interval=100000 --max_iters=100000 --batch_size=8 --warmup_iters=10"
TUTORIAL = "tutorials/02-intermediate/language_model/data/train.txt"
DIGITS = {"data/mnist": "mnist60k"}
LOSSES = ("d_loss.item()", "g_loss.item()")
SHAKESPEARE = (
    "config/train_shakespeare_char.py --max_iters=100000 --eval_interval=100000 --eval_iters=1 --log_interval=1"
    " --compile=False"
)
FACES = (
    "--dataset RaFD --rafd_image_dir {data}/imagefolder/train --rafd_crop_size 96 --image_size 64 --c_dim 10"
    " --num_workers 4 --num_iters 100000 --sample_step 100000 --model_save_step 100000 --use_tensorboard False"
)
SUBWORDS = (
    "gpt2 train --train_corpus {data}/subwords/train.txt --eval_corpus {data}/subwords/eval.txt --vocab_path"
    " {data}/subwords/vocabulary.txt --layers 4 --heads 4 --dims 256 --batch_train 32 --batch_eval 32"
    " --total_steps 100000 --eval_steps 100000 --save_steps 100000"
)
D_LOSSES = tuple(f"d_loss_{name}.item()" for name in ("real", "fake", "cls", "gp"))
G_LOSSES = tuple(f"g_loss_{name}.item()" for name in ("fake", "rec", "cls"))
NOISE = (
    "--data_dir {data}/pictures32 --image_size 32 --num_channels 32 --num_res_blocks 1"
    " --diffusion_steps 100 --batch_size 16 --microbatch 8 --lr_anneal_steps 100000 --save_interval 100000"
)
CLICKS = (
    "--use-gpu --data-generation=random --arch-sparse-feature-size=16 --arch-embedding-size=1000-1000-1000"
    " --arch-mlp-bot=13-4096-4096-16 --arch-mlp-top=8192-8192-1 --mini-batch-size=128 --nepochs=1 --print-time"
    " --data-size=1280000 --print-freq=1000"
)
PRUNING = "--arch_type lenet5 --dataset mnist --prune_iterations 2 --end_iter 100 --prune_percent 20"
CODES = "--train_iter 100000 --batch_size 64"
REVIEWS = "--model_name cabasc --dataset laptop --embed_dim 100 --lr 0.001 --num_epoch 100 --patience 100"
NAMES = "--device cuda --max-steps 100000 --batch-size 512 --n-embd 256 --n-embd2 256 --n-head 8 --n-layer 6"

LARGER = (
    "import os; from PIL import Image; name = 'data/denoising/F16_GT.png'; large = Image.open(name).resize((384, 384));"
    " os.remove(name); large.save(name)"
)
"""The picture that a network is fitted to, large enough for the device to have work."""
LONGER = "text = open('{data}/recitals/training.txt').read(); open('many.txt', 'w').write(60 * text)"
"""An epoch that does not end while it is timed."""
SPEECH = (
    "train.py --config config_v3.json --input_wavs_dir {data}/recitals --input_training_file many.txt"
    " --input_validation_file {data}/recitals/validation.txt --training_epochs 100 --checkpoint_interval 100000"
    " --summary_interval 100000 --validation_interval 100000 --stdout_interval 100000"
)
SINES = (
    "experiment_scripts/train_img.py --model_type sine --experiment_name at{port} --num_epochs 100000"
    " --steps_til_summary 100000 --epochs_til_ckpt 100000"
)
"""Each process has a folder of its own, since the program asks before it writes into one that is there."""

MORE = tuple(
    Program(name, "two networks, pictures every 400 steps", "eriklindernoren/PyTorch-GAN",
            f"{script}.py --n_epochs 5", folder=f"implementations/{script}", data=DIGITS)
    for name, script in {"gan": "gan", "cgan": "cgan", "infogan": "infogan", "dcgan-mnist": "dcgan",
                         "lsgan": "lsgan", "aae": "aae"}.items()
) + tuple(
    Program(name, "training", "yunjey/pytorch-tutorial", "main.py", folder=f"tutorials/{folder}",
            data={"tutorials/data": "mnist60k"})
    for name, folder in {"cnn-tutorial": "02-intermediate/convolutional_neural_network",
                         "vae-tutorial": "03-advanced/variational_autoencoder"}.items()
)  # fmt: skip
"""Programs of the same repositories that are not in that table."""

PATCHED = (
    Patched("makemore", "makemore", "all waits removed", waits("torch.cuda.synchronize()"),
            "--device cuda --max-steps 100000", timed=150),
    Patched("llama2.c", "llama2.c", "wait removed", waits("loss.item()"), LLAMA, gate=16, settle=16,
            timed=80, backwards=4),
    Patched("gat", "gat", "all waits removed", waits("loss.item()", "acc.item()"), "--epochs 100000", timed=100),
    Patched("acgan", "acgan", "all waits removed",
            waits("real_aux.data.cpu()", "fake_aux.data.cpu()", "labels.data.cpu()", "gen_labels.data.cpu()",
                  "d_loss.item()", "g_loss.item()"),
            "--n_epochs 5", {"data/mnist": "mnist60k"}, timed=160, backwards=2),
    Patched("fast-neural-style", "fast-neural-style", "all waits removed",
            waits("content_loss.item()", "style_loss.item()"), gate=4, settle=4, timed=24),
    Patched("word-language-model", "word-language-model", "wait removed", waits("loss.item()"), settle=8, timed=60),
    Patched("language-model-tutorial", "language-model-tutorial", "copies gone", waits("ids["),
            data={TUTORIAL: "wikitext/train.txt"}, settle=8, timed=60, kind="transform"),
    Patched("gan-tutorial", "gan-tutorial", "copies gone", waits("torch.ones(", "torch.zeros(", "torch.randn("),
            data={"tutorials/data": "mnist60k"}, timed=200, kind="transform", backwards=2),
    Patched("super-resolution", "super-resolution", "all waits removed", waits("loss.item()"),
            "--upscale_factor 3 --batchSize 1 --testBatchSize 10 --nEpochs 3 --accel", settle=15, timed=90),
    Patched("x-transformers", "x-transformers", "copies gathered", waits("full_seq.to(device)"),
            "--num_batches 100000 --validate_every 100000 --generate_every 100000 --generate_length 8",
            gate=12, settle=12, timed=40, kind="transform"),
    Patched("vae", "vae", "wait removed", waits("loss.item()"), data=MNIST, timed=200),
    Patched("mnist-workers", "mnist", "more workers", (), data=MNIST, kind="transform", asked=WORKERS, timed=200),
    Patched("vae-workers", "vae", "more workers", (), data=MNIST, kind="transform", asked=WORKERS, timed=200),
    Patched("siamese-workers", "siamese", "more workers", (), data=MNIST, kind="transform", asked=WORKERS, timed=60),
    Patched("wgan-gp", "wgan-gp", "more workers", (), "--n_epochs 6", {"data/mnist": "mnist60k"}, kind="transform",
            asked=FIRST_WORKERS, gate=12, settle=24, timed=120, backwards=1.2),
    Patched("gan", "gan", "all waits removed", waits(*LOSSES), timed=160, backwards=2),
    Patched("gan-workers", "gan", "more workers", (), kind="transform", asked=FIRST_WORKERS, settle=40,
            timed=160, backwards=2),
    Patched("cgan", "cgan", "all waits removed", waits(*LOSSES), timed=160, backwards=2),
    Patched("infogan", "infogan", "all waits removed", waits(*LOSSES, "info_loss.item()"), timed=150, backwards=3),
    Patched("dcgan-mnist", "dcgan-mnist", "all waits removed", waits(*LOSSES), timed=160, backwards=2),
    Patched("lsgan", "lsgan", "all waits removed", waits(*LOSSES), timed=160, backwards=2),
    Patched("dcgan", "dcgan", "all waits removed", waits("output.mean().item()", "errD.item()", "errG.item()"),
            "--dataset fake --niter 4 --accel --manualSeed 1 --batchSize 16", gate=12, settle=24,
            timed=120, backwards=3),
    Patched("tcn-adding", "tcn-adding", "wait removed", waits("loss.item()"), timed=150),
    Patched("tcn-copying", "tcn-copying", "all waits removed", waits("loss.item()", ".cpu()"), timed=100),
    Patched("imagenet", "imagenet", "wait removed", waits("loss.item()"),
            "{data}/imagefolder -a resnet18 -b 8 -j 4 --epochs 4 --seed 1", settle=15, timed=80),
    Patched("torchvision-classification", "torchvision-classification", "all waits removed",
            waits("loss.item()", "acc1.item()", "acc5.item()"),
            "--data-path {data}/imagefolder --model resnet18 --epochs 4 -b 8 -j 4 --amp", settle=15, timed=80),
    Patched("nanogpt", "nanogpt", "wait removed", waits("loss.item()"), SHAKESPEARE, timed=120),
    Patched("tcn-copying-long", "tcn-copying", "all waits removed", waits("loss.item()", ".cpu()"),
            "--epochs 2 --blank_len 2500", timed=120),
    Patched("tcn-adding-long", "tcn-adding", "wait removed", waits("loss.item()"),
            "--epochs 2 --seq_len 1000 --nhid 64 --batch_size 64", timed=120),
    Patched("makemore-large", "makemore", "all waits removed", waits("torch.cuda.synchronize()"), NAMES, timed=120),
    Patched("pygcn", "pygcn", "all waits removed",
            waits("loss_train.item()", "acc_train.item()", "loss_val.item()", "acc_val.item()"),
            "--epochs 100000", timed=200),
    Patched("mnist-rnn-workers", "mnist-rnn", "more workers", (), "--accel --epochs 3", MNIST, kind="transform",
            asked=WORKERS, timed=200),
    Patched("cnn-tutorial-workers", "cnn-tutorial", "more workers", (), kind="transform", asked=FIRST_WORKERS,
            settle=40, timed=160),
    Patched("vae-tutorial-workers", "vae-tutorial", "more workers", (), kind="transform", asked=FIRST_WORKERS,
            settle=40, timed=160),
    Patched("cgan-workers", "cgan", "more workers", (), kind="transform", asked=FIRST_WORKERS, settle=40, timed=160,
            backwards=2),
    Patched("acgan-workers", "acgan", "more workers", (), "--n_epochs 5", {"data/mnist": "mnist60k"},
            kind="transform", asked=FIRST_WORKERS, settle=40, timed=160, backwards=2),
    Patched("aae-workers", "aae", "more workers", (), kind="transform", asked=FIRST_WORKERS, settle=40, timed=160,
            backwards=2),
    Patched("stargan", "stargan", "all waits removed", waits(*D_LOSSES, *G_LOSSES), FACES, settle=24, timed=120,
            backwards=1.2),
    Patched("char-rnn", "char-rnn", "wait removed", waits("loss.item()"),
            data={"data/shakespeare.txt": "wikitext/valid.txt"}),
    Patched("sasrec", "sasrec", "wait removed", waits("loss.item()"),
            "--dataset ratings --train_dir default --maxlen 50 --num_epochs 1000 --device cuda --batch_size 64",
            timed=120),
    Patched("srgnn", "srgnn", "all waits removed", waits("variable.cuda()"),
            "--dataset sample --epoch 30 --batchSize 20", timed=120),
    Patched("gpt2", "gpt2", "allocator sync gone", (Named("SYN106", "torch.cuda.empty_cache()"),), SUBWORDS,
            {"src/matplotlib": "no_drawings/matplotlib"}, timed=80),
    Patched("bigram", "bigram", "all waits removed", waits("x.to(device)", "y.to(device)"), timed=160),
    Patched("adversarial", "adversarial", "all waits removed", waits("[I]"),
            "--attack pgd --attack-iters 20 --alpha 0.1 --epochs 100", {"mnist-data": "mnist60k"}, gate=42, settle=105,
            timed=840, backwards=21),
    Patched("lottery-ticket", "lottery-ticket", "copies gone",
            waits("p.data.cpu()", "p.grad.data.cpu()", "torch.from_numpy(grad_tensor)"),
            PRUNING, {"../data": "mnist60k"}, kind="transform", timed=120),
    Patched("aspects", "aspects", "all waits removed", waits("range(memory_len[i])", "int(memory_len[i])"), REVIEWS,
            first=f"train.py {REVIEWS} --num_epoch 0", gate=4, settle=8, timed=80),
    Patched("rectified-flow", "rectified-flow", "all waits removed", waits("int(t * 10)"),
            data={"data": "mnist60k"}, gate=4, settle=6, timed=40),
    Patched("improved-diffusion-norms", "improved-diffusion", "all waits removed",
            waits("(p.grad ** 2).sum().item()"), NOISE, gate=8, settle=12, timed=48, backwards=2),
    Patched("pyg-gcn", "pyg-gcn", "all waits removed",
            waits("[data.train_mask]", "[mask]", "mask.sum()"), "--epochs 100000", first="gcn.py --epochs 1",
            timed=200),
    Patched("lstm-crf", "lstm-crf", "all waits removed", waits("_h[y0]", "trans[x]"),
            "model train.char_to_idx train.word_to_idx train.tag_to_idx train.csv 200", gate=2, settle=4, timed=24),
    Patched("improved-diffusion", "improved-diffusion", "all waits removed", waits("th.isfinite(p.grad)"),
            NOISE + " --use_fp16 True", gate=8, settle=12, timed=48, backwards=2),
    Patched("s4", "s4", "all waits removed", waits("loss.item()", ".sum().item()"),
            "--dataset mnist --n_layers 4 --d_model 128 --batch_size 100 --num_workers 0 --weight_decay 0",
            {"data": "mnist60k"}, timed=96),
    Patched("zoology", "zoology", "all waits removed",
            waits("flat_embeds[mask]", "flat_targets[mask]", "loss.item()"), timed=120),
    Patched("dlrm", "dlrm", "all waits removed", waits("torch.cuda.synchronize()", "E.detach().cpu()"), CLICKS,
            timed=120),
    Patched("vq-autoencoder", "vq-autoencoder", "all waits removed",
            waits("rec_loss.item()", "cmt_loss.item()", "indices.unique()"), CODES,
            {"examples/data/fashion_mnist": "mnist60k"}, timed=120),
    Patched("flows", "flows", "all waits removed", waits("loss.item()"), "--dataset MOONS --flow realnvp --epochs 1000",
            timed=160),
    Patched("rectified-flow-workers", "rectified-flow", "more workers", (), data={"data": "mnist60k"},
            kind="transform", asked=FIRST_WORKERS, gate=4, settle=8, timed=40),
    Patched("lottery-ticket-workers", "lottery-ticket", "more workers", (), PRUNING, {"../data": "mnist60k"},
            kind="transform", asked=FIRST_WORKERS, settle=40, timed=160),
    Patched("vq-autoencoder-workers", "vq-autoencoder", "more workers", (), CODES,
            {"examples/data/fashion_mnist": "mnist60k"}, kind="transform", asked=FIRST_WORKERS, settle=40, timed=160),
    Patched("image-prior", "image-prior", "copies gone", waits("x.detach().cpu()"), first=f'-c "{LARGER}"',
            kind="transform", settle=10, timed=64),
    Patched("siren", "siren", "all waits removed", waits("writer.add_scalar(", "train_loss.item()"), SINES, settle=10,
            timed=64),
    Patched("hifi-gan", "hifi-gan", "all waits removed", waits("r_loss.item()", "g_loss.item()"), SPEECH,
            first=f'-c "{LONGER}"', settle=20, timed=96, backwards=2),
)  # fmt: skip
"""All of them, the most wanted first."""

HUNK = re.compile(r"@@ -(\d+)")


def apply(patch: Path, clone: Path) -> Path:
    """Change a file of a clone as a unified diff says, and return it. Raises ``ValueError`` where it does not fit."""
    head, *hunks = patch.read_text(encoding="utf-8").split("\n@@ ")
    changed = clone / re.search(r"^\+\+\+ b/(.+)$", head, re.MULTILINE)[1]  # type: ignore[index]
    lines = changed.read_text(encoding="utf-8").split("\n")
    moved = 0
    for hunk in hunks:
        first, *body = ("@@ " + hunk).rstrip("\n").split("\n")
        begin = int(HUNK.match(first)[1]) - 1 + moved  # type: ignore[index]
        old = [line[1:] for line in body if line[0] in " -"]
        new = [line[1:] for line in body if line[0] in " +"]
        if lines[begin : begin + len(old)] != old:
            raise ValueError(f"{patch.name} does not fit {changed}")
        lines[begin : begin + len(old)] = new
        moved += len(new) - len(old)
    if changed.is_symlink():  # what it leads to is everybody's
        changed.unlink()
    changed.write_text("\n".join(lines), encoding="utf-8")
    return changed
