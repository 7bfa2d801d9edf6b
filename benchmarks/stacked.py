"""Records ``benchmarks/stacked.json.gz`` on a GPU: ``torch.profiler`` with stacks and shapes, as its users record.

Three steps of a small transformer's training, each with a read of the loss. The file is as the profiler wrote it, its
``traceName`` aside.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

OUT = Path(__file__).with_name("stacked.json.gz")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 256)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(2))
        self.head = nn.Linear(256, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> float:
    tokens = tokens.to("cuda", non_blocking=True)
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main() -> None:
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randint(1000, (8, 64)).pin_memory()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            schedule=schedule(wait=5, warmup=3, active=3),
            on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
            with_stack=True,
            record_shapes=True,
        ) as prof:
            for _ in range(11):
                train_step(model, optimizer, batch)
                prof.step()
        text = re.sub(rb'"traceName": "[^"]*"', b'"traceName": "stacked.json"', path.read_bytes())
    OUT.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{OUT}: {len(text) / 1e6:.1f} MB, {OUT.stat().st_size / 1e3:.0f} KB gzipped")


if __name__ == "__main__":
    main()
