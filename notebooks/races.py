"""The pinned-memory tutorial's races, and its copy that is always safe."""

import torch

import syncscope

torch.manual_seed(0)
N = 1 << 20
pageable, pinned = torch.ones(N), torch.ones(N, pin_memory=True)
cuda_tensor, shared = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
side = torch.cuda.Stream()

for _ in range(60):
    mean = cuda_tensor.to("cpu", non_blocking=True).mean()

    arrived = pinned.to("cuda", non_blocking=True)
    pinned.zero_()

    shared.add_(1)
    with torch.cuda.stream(side):
        total = shared.sum()

    safe = pageable.to("cuda", non_blocking=True)
    pageable.zero_()

    torch.cuda.synchronize()
    syncscope.step()
