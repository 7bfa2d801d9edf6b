"""A recurrent reader packs its sequences by lengths that the device counts. The fix knows them from the loader."""

from __future__ import annotations

import torch
from models import Attention, Fit
from parts import Step, collate, profiled
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

SIZES = {"medium": (128, 96, 384, 2000), "short": (64, 32, 256, 1500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 6,
    "findings": [("SYN", "lengths.cpu()"), ("CPY2", "lengths.cpu()")],
}
PAD, WORDS = 0, 1000


class Reader(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Embedding(WORDS, width), Attention(width), Attention(width))
        self.reader, self.head = nn.GRU(width, width, batch_first=True), nn.Linear(width, 10)


def read(told: bool, batch: int, length: int, width: int, work: int) -> Step:
    fit = Fit(Reader(width))
    known = length - torch.arange(batch) * length // (2 * batch)
    text = (torch.arange(batch * length) * 7919 % (WORDS - 1) + 1).reshape(batch, length)
    text = torch.where(torch.arange(length) < known[:, None], text, PAD).to("cuda")
    labels = torch.arange(batch, device="cuda") % 10

    def step():
        hidden = fit.model.encoder(text)
        lengths = known if told else (text != PAD).sum(1)
        packed = pack_padded_sequence(hidden, lengths if told else lengths.cpu(), batch_first=True)
        collate(work)
        loss = nn.functional.cross_entropy(fit.model.head(fit.model.reader(packed)[1][0]), labels)
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, work: int) -> Step:
    return read(False, batch, length, width, work)


def after(batch: int, length: int, width: int, work: int) -> Step:
    return read(True, batch, length, width, work)


if __name__ == "__main__":
    profiled(before, SIZES)
